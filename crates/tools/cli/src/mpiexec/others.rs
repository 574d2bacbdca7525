//! Options of the launchers of Open MPI, MPICH and Intel MPI: synonyms of options here, and options without effect.

use std::ffi::OsString;

use super::parse::{Request, Shows, number, text_of};
use super::placement;

/// Takes an option if it is one of these. Returns whether it is. `value` returns the next word.
pub fn option(
    name: &str,
    value: &mut dyn FnMut() -> Result<OsString, String>,
    request: &mut Request,
) -> Result<bool, String> {
    match name {
        "npernode" | "grr" => request.per_host = Some(number(name, &value()?)?),
        "pernode" => request.per_host = Some(1),
        "bynode" | "rr" => placement::option("map-by", "node", request)?,
        "byslot" | "bycore" => placement::option("map-by", "slot", request)?,
        "cpu-set" | "cpu-list" => {
            let list = format!("user:{}", text_of(&value()?));
            placement::option("bind-to", &list, request)?;
        }
        "enable-recovery" | "continuous" => request.goes_on = true,
        "launcher-exec" | "bootstrap-exec" => {
            let program = text_of(&value()?);
            if program.is_empty() {
                return Err(format!("-{name} names no program"));
            }
            let program =
                shlex::try_quote(&program).map_err(|error| format!("-{name}: {error}"))?;
            request.rsh = Some(format!("{program} {{host}}"));
        }
        "merge-stderr-to-stdout" => request.output.is_merged = true,
        "output" => output(&text_of(&value()?), request),
        "display" => display(&text_of(&value()?), request),
        "display-allocation" => request.reports_bindings = true,
        "info" => request.shows = Some(Shows::Version),
        "timestamp-output" | "get-stack-traces" | "report-state-on-timeout" => {
            not_followed(name, "", request);
        }
        "rankmap" | "xterm" => not_followed(name, &text_of(&value()?), request),
        // Components of other launchers.
        "mca" | "gmca" | "omca" | "prtemca" | "pmixmca" => drop((value()?, value()?)),
        "launcher" | "bootstrap" | "rmk" | "topolib" | "demux" | "tune" | "am" | "prefix" => {
            ignored(name, &text_of(&value()?))?;
        }
        // Regatta does these by default: it passes variables on, and ends a job after a failure.
        "genvlist" | "envlist" => drop(value()?),
        "genvall"
        | "envall"
        | "abort-on-non-zero-status"
        | "noprefix"
        | "nooversubscribe"
        | "allow-run-as-root"
        | "use-hwthread-cpus"
        | "q"
        | "quiet"
        | "v"
        | "verbose" => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Takes the value of an option without effect. A word that is an option is no value: Intel's `-tune` has none.
fn ignored(name: &str, value: &str) -> Result<(), String> {
    match value.starts_with('-') {
        false => Ok(()),
        true => Err(format!(
            "mpiexec: -{name} needs a value, but {value} is an option; omit -{name}: it has no effect here"
        )),
    }
}

/// Takes Open MPI's list of output destinations.
fn output(list: &str, request: &mut Request) {
    for word in list.split([',', ':']).filter(|word| !word.is_empty()) {
        match word.split_once('=').unwrap_or((word, "")) {
            ("tag" | "tag-detailed" | "tag-fullname" | "rank", _) => request.label = true,
            ("merge" | "merge-stderr-to-stdout", _) => request.output.is_merged = true,
            ("dir", folder) => request.output.folder = Some(folder.to_owned()),
            _ => not_followed("output", word, request),
        }
    }
}

/// Takes Open MPI's list of what to show about the job.
fn display(list: &str, request: &mut Request) {
    for word in list.split(',') {
        match word {
            "bind" | "bindings" | "map" | "map-devel" | "alloc" | "allocation" => {
                request.reports_bindings = true;
            }
            _ => not_followed("display", word, request),
        }
    }
}

fn not_followed(name: &str, value: &str, request: &mut Request) {
    let option = format!("-{name} {value}");
    request.warnings.push(format!(
        "{} is ignored: Regatta does not support it",
        option.trim_end()
    ));
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::parse::{Request, request};

    fn read(text: &str) -> Request {
        request(text.split(' ').map(OsString::from).collect()).expect(text)
    }

    #[test]
    fn options_of_other_launchers_do_what_ours_do() {
        for (others, ours) in [
            ("-npernode 2 p", "-ppn 2 p"),
            ("-pernode p", "-ppn 1 p"),
            ("--bynode p", "-map-by node p"),
            ("-rr p", "-map-by node p"),
            ("--bycore p", "-map-by slot p"),
            ("--cpu-set 0,2 p", "-bind-to user:0,2 p"),
            ("--enable-recovery p", "-disable-auto-cleanup p"),
            ("--output tag,dir=x p", "-l -output-filename x p"),
            ("--output :dir=x p", "-output-filename x p"),
            ("--display bind,map p", "-report-bindings p"),
            ("--gmca a b -launcher ssh -rmk slurm --quiet p", "p"),
        ] {
            assert_eq!(read(others), read(ours), "{others}");
        }
        let rsh = read("-launcher-exec /opt/rsh p").rsh;
        assert_eq!(rsh.as_deref(), Some("/opt/rsh {host}"));
        assert!(read("--merge-stderr-to-stdout p").output.is_merged);
    }

    #[test]
    fn a_program_that_reaches_hosts_may_have_blanks_in_its_path() {
        let words = ["-launcher-exec", "/opt/my tools/it's rsh", "p"];
        let rsh = request(words.map(OsString::from).to_vec())
            .expect("options")
            .rsh;
        let words = crate::hosts::words(&rsh.expect("a command"));
        assert_eq!(words, ["/opt/my tools/it's rsh", "{host}"]);
    }

    #[test]
    fn the_next_option_is_no_value() {
        for text in ["-tune -n 2 p", "-rmk -n 2 p"] {
            let words = text.split(' ').map(OsString::from).collect();
            let said = request(words).expect_err(text);
            assert!(
                said.contains("needs a value, but -n is an option"),
                "{said}"
            );
        }
    }

    #[test]
    fn what_cannot_be_done_and_changes_no_result_is_told_of() {
        for text in [
            "--timestamp-output p",
            "--output xml p",
            "--display topo p",
            "-rankmap 0,1 p",
        ] {
            let warnings = read(text).warnings;
            assert_eq!(warnings.len(), 1, "{text}");
            assert!(warnings[0].contains("is ignored"), "{warnings:?}");
        }
    }
}
