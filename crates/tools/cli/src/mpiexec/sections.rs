//! Sections as a command line of `regatta run`.

use std::ffi::OsString;

use regatta_launch::{Refusal, python};

use super::parse::{Request, Section};

/// The command line that starts the sections.
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
        [section] => words.extend(found(section)),
        _ => words.extend(["sh".into(), "-c".into(), script(request)?.into()]),
    }
    Ok(words)
}

/// Variables for all processes of the job; those of one section of several are its script's affair.
pub fn environment(request: &Request) -> Vec<(OsString, OsString)> {
    let mut all = request.environment.clone();
    if let [section] = &request.sections[..] {
        all.extend(section.environment.iter().cloned());
    }
    all
}

/// The hosts, unless all of them are this one.
fn hosts(request: &Request) -> Option<String> {
    let here = |host: &String| {
        let name = host.split(':').next().unwrap_or_default();
        matches!(name, "localhost" | "127.0.0.1" | ".")
    };
    if request.hosts.iter().all(here) {
        return None;
    }
    let slots = request.per_host.map(|number| format!(":{number}"));
    let with_slots = |host: &String| match &slots {
        Some(slots) if !host.contains(':') => format!("{host}{slots}"),
        _ => host.clone(),
    };
    Some(
        request
            .hosts
            .iter()
            .map(with_slots)
            .collect::<Vec<_>>()
            .join(","),
    )
}

/// The command of a section, with its program as it was found in the section's own path.
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

/// The script of a shell that becomes the program of the section to which its number belongs. The third field of the join
/// token is the number.
fn script(request: &Request) -> Result<String, Refusal> {
    let mut script = "rank=${REGATTA_JOB#*:*:}; rank=${rank%%:*}\n".to_owned();
    let mut end = 0;
    for section in &request.sections {
        end += section.processes.unwrap_or(1);
        script += &format!("if [ \"$rank\" -lt {end} ]; then\n");
        let command = found(section);
        let known = [&request.environment[..], &section.environment].concat();
        let needed = match command.split_first() {
            Some((program, arguments)) => python::variables(program, arguments, &known)?,
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
        assert_eq!(words("-host a,b:3 -ppn 2 p")[2..4], ["--host", "a:2,b:3"]);
        let goes_on = words("-n 2 -disable-auto-cleanup p");
        assert!(goes_on.contains(&"--on-failure=continue".to_owned()));
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
