//! Starts the guardian of a node, from the task that is first there.
//!
//! The guardian is the command `regatta guardian`, found where no other user can have put it. So it inherits nothing of the task: no memory, no
//! descriptor, no signal handler, no lock. The command reports its versions, and starts a process that stays if they are the library's.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use regatta_engine::{Error, Result};
use regatta_foreign::{Names, Step};
use regatta_wire::guardian::{STARTED, Versions};

use super::OURS;
use crate::launcher_on_demand::program;

/// Maximum number of bytes that are read of the command's output.
const MAX_OUTPUT_BYTES: u64 = 4096;

/// Starts the guardian that listens at this node socket. Tasks of the step have to come there within `patience`.
pub(super) fn start(step: &Step, listener: OwnedFd, patience: Duration) -> Result<()> {
    let names = step.names;
    let command = program().map_err(|error| no_guardian(names, &error.to_string()))?;
    let said = run(&command, listener, patience);
    let said =
        said.map_err(|error| no_guardian(names, &format!("{}: {error}", command.display())))?;
    judge(names, &command, &said)
}

/// Runs the command until it exits, and returns its output. The guardian that it has started continues.
fn run(command: &Path, listener: OwnedFd, patience: Duration) -> io::Result<String> {
    let (reader, writer) = io::pipe()?;
    let mut guardian = Command::new(command);
    guardian
        .args(["guardian", "--versions", &OURS.to_string()])
        .args(["--maker", &std::process::id().to_string()])
        .args(["--patience", &patience.as_secs().to_string()])
        .stdin(listener)
        .stdout(writer.try_clone()?)
        .stderr(Stdio::from(writer));
    let mut child = guardian.spawn()?;
    // `guardian` owns the write ends of the pipe: unless they are closed here, the read below never ends.
    drop(guardian);
    let mut said = Vec::new();
    let read = reader.take(MAX_OUTPUT_BYTES).read_to_end(&mut said);
    // Fails if the program ignores SIGCHLD or reaps all children: then the child was reaped already.
    let _ = child.wait();
    read?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Decides by the output of the command whether it has started the guardian.
fn judge(names: Names, command: &Path, said: &str) -> Result<()> {
    let (first, rest) = said.split_once('\n').unwrap_or((said, ""));
    match first.parse::<Versions>() {
        Ok(OURS) if rest.lines().any(|line| line == STARTED) => Ok(()),
        Ok(OURS) => {
            let rest = rest.trim();
            let why = rest.strip_prefix("regatta: ").unwrap_or(rest);
            Err(no_guardian(names, why))
        }
        Ok(theirs) => Err(other_version(
            command,
            &format!("the command speaks version {theirs} of the job protocol, the library {OURS}"),
        )),
        Err(()) => Err(other_version(
            command,
            "the command does not support guardians",
        )),
    }
}

fn no_guardian(names: Names, why: &str) -> Error {
    Error::Launcher(format!(
        "no guardian could be started for the tasks of this step on this node: {why}. The guardian is the command regatta; without it these tasks cannot form a job. Put the command of the same release beside the library or in a directory of PATH, on every node; or start the program with {}",
        names.instead
    ))
}

fn other_version(command: &Path, how: &str) -> Error {
    Error::Version(format!(
        "the command {} has another version of Regatta than the library of this task ({how}), so it cannot be the guardian of the tasks of this step. Install command and library of the same release on every node",
        command.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(said: &str) -> Result<()> {
        judge(
            regatta_foreign::slurm::NAMES,
            Path::new("/opt/regatta"),
            said,
        )
    }

    #[test]
    fn a_command_of_our_versions_that_has_started_a_guardian_is_taken() {
        assert_eq!(judged(&format!("{OURS}\n{STARTED}\n")), Ok(()));
    }

    #[test]
    fn a_command_of_other_versions_is_named_with_both() {
        let other = Versions { job: 99, ..OURS };
        // Its guardian would not understand these tasks.
        let Err(Error::Version(sentence)) = judged(&format!("{other}\n{STARTED}\n")) else {
            panic!("another version");
        };
        for part in ["/opt/regatta", &other.to_string(), &OURS.to_string()] {
            assert!(sentence.contains(part), "{part}: {sentence}");
        }
    }

    #[test]
    fn a_command_that_knows_no_guardian_is_of_another_version() {
        for said in [
            "error: unrecognized subcommand 'guardian'\n",
            "",
            "1.x\nstarted\n",
        ] {
            let Err(Error::Version(sentence)) = judged(said) else {
                panic!("{said:?}");
            };
            assert!(
                sentence.contains("does not support guardians"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn the_reason_of_a_command_that_starts_none_is_passed_on() {
        let Err(Error::Launcher(sentence)) = judged(&format!("{OURS}\nregatta: no process\n"))
        else {
            panic!("no guardian");
        };
        assert!(
            sentence.contains("on this node: no process. "),
            "{sentence}"
        );
    }
}
