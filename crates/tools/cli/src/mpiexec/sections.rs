//! Conversion of sections to a command line of `regatta run`.

use std::ffi::OsString;

use regatta_launch::{Refusal, variables_for_python};

use super::parse::{Output, Request, Section};

/// Returns the command line that starts the sections.
pub fn run_words(request: &Request) -> Result<Vec<OsString>, Refusal> {
    let mut words: Vec<OsString> = ["regatta", "run"].map(OsString::from).into();
    let processes = match &request.sections[..] {
        [section] => section.processes,
        sections => Some(
            sections
                .iter()
                .map(|section| section.processes.unwrap_or(1))
                .sum(),
        ),
    };
    if let Some(processes) = processes {
        words.extend(["-n".into(), processes.to_string().into()]);
    }
    if let Some(hosts) = hosts(request) {
        words.extend(["--host".into(), hosts.into()]);
    }
    if let Some(number) = request.per_host {
        words.extend(["--per-host".into(), number.to_string().into()]);
    }
    if let Some(bind) = &request.bind {
        words.extend(["--bind".into(), bind.into()]);
    }
    if request.is_dealt_in_turn {
        words.push("--map=round".into());
    }
    if request.oversubscribes {
        words.push("--oversubscribe".into());
    }
    if let Some(rsh) = &request.rsh {
        words.extend(["--rsh".into(), rsh.into()]);
    }
    if let Some(interface) = &request.interface {
        words.extend(["--interface".into(), interface.into()]);
    }
    if request.label {
        words.push("--label".into());
    }
    if let Some(timeout) = &request.timeout {
        words.extend(["--timeout".into(), timeout.into()]);
    }
    if request.goes_on {
        words.push("--on-failure=continue".into());
    }
    words.push("--".into());
    match &request.sections[..] {
        [section] if !needs_script(request) => words.extend(found(section)),
        _ => words.extend(["sh".into(), "-c".into(), script(request)?.into()]),
    }
    Ok(words)
}

/// Returns the variables for all processes of the job. If there are several sections, the script sets those of each.
pub fn environment(request: &Request) -> Vec<(OsString, OsString)> {
    let mut all = request.environment.clone();
    if let [section] = &request.sections[..] {
        all.extend(section.environment.iter().cloned());
    }
    all
}

/// Returns the hosts, unless all of them are this one.
fn hosts(request: &Request) -> Option<String> {
    let here = |host: &String| {
        let name = host.split(':').next().unwrap_or_default();
        matches!(name, "localhost" | "127.0.0.1" | ".")
    };
    if request.hosts.iter().all(here) {
        return None;
    }
    Some(request.hosts.join(","))
}

/// Returns whether a process must do something before it executes its program, even with a single section.
fn needs_script(request: &Request) -> bool {
    request.output != Output::default() || request.has_no_input || request.reports_bindings
}

/// Returns the command of a section, with the program's path if it is in the section's own search path.
fn found(section: &Section) -> Vec<OsString> {
    let mut command = section.command.clone();
    if let (Some(path), Some(first)) = (&section.path, command.first_mut())
        && !first.to_string_lossy().contains('/')
    {
        let mut files = std::env::split_paths(path).map(|folder| folder.join(&*first));
        if let Some(file) = files.find(|file| file.is_file()) {
            *first = file.into();
        }
    }
    command
}

/// Returns the shell script that executes the program of the section to which a process's number belongs. The third
/// field of the join token is the number.
fn script(request: &Request) -> Result<String, Refusal> {
    let mut script = "rank=${REGATTA_JOB#*:*:}; rank=${rank%%:*}\n".to_owned();
    if request.reports_bindings {
        script += REPORT;
    }
    if request.has_no_input {
        script += "exec </dev/null\n";
    }
    script += &output(&request.output)?;
    let mut end = 0;
    for section in &request.sections {
        end += section.processes.unwrap_or(1);
        script += &match request.sections.len() {
            1 => "if true; then\n".to_owned(),
            _ => format!("if [ \"$rank\" -lt {end} ]; then\n"),
        };
        let command = found(section);
        let known = [&request.environment[..], &section.environment].concat();
        let needed = match command.split_first() {
            Some((program, arguments)) => variables_for_python(program, arguments, &known)?,
            None => Vec::new(),
        };
        for (name, value) in section.environment.iter().chain(&needed) {
            script += &format!("export {}={}\n", name.to_string_lossy(), quoted(value));
        }
        if let Some(directory) = &section.directory {
            script += &format!("cd {} || exit 2\n", quoted(directory));
        }
        let command: Vec<String> = command.iter().map(quoted).collect();
        script += &format!("exec {}\nfi\n", command.join(" "));
    }
    Ok(script)
}

/// The command with which each process reports its host and the cores that it may use.
const REPORT: &str = r#"echo "rank $rank on $(uname -n): cores $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)" >&2
"#;

/// Returns the redirections of a process's output. The files are on the host where it runs.
fn output(output: &Output) -> Result<String, Refusal> {
    let mut script = String::new();
    if let Some(folder) = &output.folder {
        let folder = format!("{}/1/rank.\"$rank\"", quoted(&folder.into()));
        script += &format!("mkdir -p {folder} || exit 2\n");
        script += &format!("exec >{folder}/stdout 2>{folder}/stderr || exit 2\n");
    }
    for (pattern, redirection) in [(&output.file, ">"), (&output.errors, "2>")] {
        if let Some(pattern) = pattern {
            script += &format!("exec {redirection}{} || exit 2\n", expanded(pattern)?);
        }
    }
    if output.is_merged {
        script += "exec 2>&1\n";
    }
    Ok(script)
}

/// Returns a file name pattern as a word of the shell.
fn expanded(pattern: &str) -> Result<String, Refusal> {
    let mut parts = pattern.split('%');
    let literal = |text: &str| quoted(&text.into());
    let mut word = literal(parts.next().unwrap_or_default());
    while let Some(part) = parts.next() {
        let mut letters = part.chars();
        let value = match letters.next() {
            Some('r') => "\"$rank\"",
            Some('h') => "\"$(uname -n)\"",
            Some('g') => "0",
            // `%%` stands for one percent sign.
            None if parts.clone().next().is_some() => {
                letters = parts.next().unwrap_or_default().chars();
                "%"
            }
            _ => {
                return Err(Refusal::usage(format!(
                    "mpiexec: the pattern {pattern} may contain only %r (the rank), %h (the host), %g (the group of processes, 0) and %%"
                )));
            }
        };
        word += value;
        word += &literal(letters.as_str());
    }
    Ok(word)
}

fn quoted(word: &OsString) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::super::parse::request;
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let request = request(text.split(' ').map(OsString::from).collect()).expect("a request");
        let words = run_words(&request).expect("words").into_iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn one_section_is_a_run_of_its_program() {
        let said = words("-n 3 -l ./solver fast");
        let expected = [
            "regatta", "run", "-n", "3", "--label", "--", "./solver", "fast",
        ];
        assert_eq!(said, expected);
        assert_eq!(
            words("-host localhost -n 1 p"),
            ["regatta", "run", "-n", "1", "--", "p"]
        );
        let hosts = ["--host", "a,b:3", "--per-host", "2", "--"];
        assert_eq!(words("-host a,b:3 -ppn 2 p")[2..7], hosts);
        let placed = words("-bind-to core -map-by node -oversubscribe -iface eth0 p");
        let options = [
            "--bind",
            "core",
            "--map=round",
            "--oversubscribe",
            "--interface",
            "eth0",
            "--",
        ];
        assert_eq!(placed[2..9], options);
        let goes_on = words("-n 2 -disable-auto-cleanup p");
        assert!(goes_on.contains(&"--on-failure=continue".to_owned()));
    }

    /// Runs the script for a process, and returns its output and its errors.
    fn played(text: &str, token: &str, folder: &std::path::Path) -> (String, String) {
        let said = words(text);
        let script = said.last().expect("a script");
        let output = std::process::Command::new("sh")
            .args(["-c", script])
            .env("REGATTA_JOB", token)
            .current_dir(folder)
            .output()
            .expect("a shell");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    #[test]
    fn output_goes_to_files_by_pattern_or_below_a_folder() {
        let folder = std::env::temp_dir().join(format!("regatta-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
        let nothing = (String::new(), String::new());
        let text = "-n 3 -outfile-pattern it's.%r.%g.%%x -errfile-pattern e%r ls . /nowhere";
        assert_eq!(played(text, "9:3:2:3", &folder), nothing);
        assert!(read("it's.2.0.%x").contains("it's.2.0.%x"));
        assert!(read("e2").contains("/nowhere"));
        let text = "-output-filename all echo below";
        assert_eq!(played(text, "9:3:1:3", &folder), nothing);
        assert_eq!(read("all/1/rank.1/stdout"), "below\n");
        assert_eq!(read("all/1/rank.1/stderr"), "");
        let text = "-outfile-pattern merged --merge-stderr-to-stdout ls /nowhere";
        assert_eq!(played(text, "9:3:1:3", &folder), nothing);
        assert!(read("merged").contains("/nowhere"));
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
        let request = request(["-outfile-pattern", "%p", "p"].map(OsString::from).into());
        let refusal = run_words(&request.expect("a request")).expect_err("no such letter");
        assert!(refusal.sentence.contains("only %r"), "{refusal}");
    }

    #[test]
    fn a_process_tells_its_cores_and_has_no_input_when_that_is_wanted() {
        let here = std::env::temp_dir();
        let (output, said) = played("-report-bindings -stdin none cat", "9:3:1:3", &here);
        assert_eq!(output, "");
        assert!(said.starts_with("rank 1 on "), "{said}");
        assert!(said.contains(": cores "), "{said}");
    }

    #[test]
    fn several_sections_are_a_script_that_looks_at_the_rank() {
        let said = words("-n 1 echo first : -n 2 -env A it's echo rest");
        assert_eq!(said[..4], ["regatta", "run", "-n", "3"]);
        let script = &said[7];
        for (token, expected) in [("9:3:0:3", "first\n"), ("9:3:2:3:5", "rest\n")] {
            let output = std::process::Command::new("sh")
                .args(["-c", script])
                .env("REGATTA_JOB", token)
                .output()
                .expect("a shell");
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                expected,
                "{script}"
            );
        }
    }
}
