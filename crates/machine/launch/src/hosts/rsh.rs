//! Getting a shell on another host, and turning it into an agent.
//!
//! The command is the user's own ssh, with all its configuration, or the one from `--rsh`. It only has to run the
//! command `sh` there and to carry bytes. The commands for the shell are its standard input ([`script`]), so nothing
//! needs quoting, and it does not matter which shell the user has there, or whether the command takes words or a line.
//!
//! The script starts the host's own regatta if it has the right one, and otherwise requests ours.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) use regatta_job::hosts::{READY, SEND, TROUBLE};
use regatta_program::Refusal;
use regatta_trust::SHELL;
use rustix::fs::FileType;

use crate::channel::{Link, messages};
use crate::hosts::slurm;
use crate::plan::Across;

/// Environment variable of a daemon's shell that names the daemon's program, which is usually the right one.
pub const OWN_PROGRAM: &str = "REGATTA_AGENT";
/// Environment variable that names the terminal for the `regatta` command that ssh runs to ask for a password.
pub const ASK_AT: &str = "REGATTA_ASK_AT";
/// Returns the text that must be equal for the programs of the launcher and the agents of one job.
pub fn identity() -> String {
    format!(
        "{} (channel {}, job {}, {})",
        env!("CARGO_PKG_VERSION"),
        messages::VERSION,
        regatta_segment::job::VERSION,
        std::env::consts::ARCH
    )
}

/// Returns the command that runs `sh` on a host, with pipes to it.
pub fn command(across: &Across, host: &str) -> Command {
    let seconds = across.connect.as_secs().max(1).to_string();
    let words = match &across.rsh {
        Some(words) => fill(across, words, host),
        // Without a terminal to ask at, a question is an error.
        None => [
            "ssh",
            "-T",
            "-x",
            "-o",
            match across.asks_at {
                Some(_) => "BatchMode=no",
                None => "BatchMode=yes",
            },
            "-o",
            &format!("ConnectTimeout={seconds}"),
            "--",
            host,
        ]
        .map(str::to_owned)
        .to_vec(),
    };
    // A command that the user has named is searched in the user's own path.
    let mut command = match across.rsh {
        Some(_) => Command::new(&words[0]),
        None => Command::new(regatta_trust::tool(&words[0])),
    };
    if let Some(terminal) = &across.asks_at {
        command
            .env("SSH_ASKPASS", regatta_trust::own_command())
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env(ASK_AT, terminal);
    }
    if slurm::is_srun(&words[0]) {
        slurm::forget_shape(&mut command);
    }
    command
        .args(&words[1..])
        .arg("sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns the command by which a person reaches a host of a virtual machine for a job, as its launcher does through
/// the daemons.
pub fn reach_command(own: &str, machine: &str, job: &str) -> Vec<String> {
    [own, "reach", "--vm", machine, "--job", job, "{host}"]
        .map(str::to_owned)
        .into()
}

/// Opens the channel on standard input and output to the process that has started this program on its host. `temporary`
/// means that the program is a copy made for this purpose, which is removed. `by_hand` is the error if the program was
/// started by hand.
pub(crate) fn channel_to_starter(temporary: bool, by_hand: &str) -> Result<Link, Refusal> {
    if !is_channel() {
        return Err(Refusal::usage(by_hand));
    }
    if temporary {
        remove_copy();
    }
    let copy = |fd: BorrowedFd| rustix::io::fcntl_dupfd_cloexec(fd, 3);
    let link = copy(std::io::stdin().as_fd())
        .and_then(|input| Link::new(input, copy(std::io::stdout().as_fd())?));
    link.map_err(|errno| {
        Refusal::of_regatta(format!(
            "the channel to the program that started this one cannot be used: {errno}"
        ))
    })
}

/// Returns whether standard input can be a channel: it is a pipe or a socket. Standard output is not checked: srun
/// connects it to a pseudo terminal.
fn is_channel() -> bool {
    let kind = rustix::fs::fstat(std::io::stdin().as_fd())
        .map(|found| FileType::from_raw_mode(found.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// Removes the copy of this program that [`script`] has made, with its directory. A program elsewhere is no copy.
fn remove_copy() {
    let Ok(path) = std::env::current_exe() else {
        return;
    };
    let Some(folder) = path.parent() else { return };
    let named_so = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("regatta-");
    if folder.file_name().is_some_and(named_so) {
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir(folder);
    }
}

/// Returns the words of a command that leads to a host.
fn fill(across: &Across, words: &[String], host: &str) -> Vec<String> {
    let known = across.hosts.iter().find(|known| known.name == host);
    let processors = known.and_then(|host| host.processors).unwrap_or(1);
    words
        .iter()
        .map(|word| {
            word.replace("{host}", host)
                .replace("{cpus}", &processors.to_string())
        })
        .collect()
}

/// The role of the program on another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The agent of a launcher, for one job.
    Agent,
    /// The starter of a daemon.
    Starter,
}

impl Role {
    /// Returns the subcommand.
    fn word(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::Starter => "daemon",
        }
    }
}

/// The part of the script that searches for a program to start: the one in the environment, then those in the path.
const SEARCH: &str = r#"[ -z "${REGATTA_AGENT:-}" ] || become "$REGATTA_AGENT"
IFS=:; set -f
for folder in $PATH; do
    case $folder in /*) unset IFS; try "$folder/regatta" ;; esac
done
unset IFS; set +f
"#;

/// Returns the script for the shell of a host. `size` is the size of the program at `own`, which is requested if the
/// host has none that fits, or always with `send`. A daemon names its own program in the environment of its shell.
///
/// The braces make the shell read the whole script before it begins. The input after it is not for the shell.
pub(crate) fn script(own: &Path, size: u64, send: bool, role: Role) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let identity = quote(&identity());
    let search = match (send, own.starts_with("/proc")) {
        (true, _) => String::new(),
        // Another process would resolve the link in /proc to its own program.
        (false, true) => SEARCH.to_owned(),
        (false, false) => {
            let own = quote(&own.to_string_lossy());
            format!("{SEARCH}try {own}\n")
        }
    };
    let (kib, role) = (size.div_ceil(1024), role.word());
    format!(
        r#"{{
{SHELL}passed=
trouble() {{ printf '\n{TROUBLE} %s\n' "$1${{passed:+. These files were not started, because other users could have placed them there:$passed}}"; exit 1; }}
fits() {{ [ "$("$1" agent --identity </dev/null 2>/dev/null)" = {identity} ]; }}
become() {{ if fits "$1"; then exec "$1" {role}; fi; }}
try() {{
    [ -f "$1" ] || return
    if safe "$1"; then become "$1"; else passed="$passed $1"; fi
}}
{search}file=
for folder in "${{XDG_RUNTIME_DIR:-}}" "${{TMPDIR:-}}" /tmp /var/tmp "${{HOME:-}}" /dev/shm; do
    [ -n "$folder" ] || continue
    place=$(umask 077; mktemp -d "$folder/regatta-XXXXXXXX" 2>/dev/null) || continue
    file=$place/regatta
    if printf '#!/bin/sh\n' >"$file" && chmod 700 "$file" && safe "$file" && "$file" </dev/null; then
        free=$(df -Pk "$folder" | {{ read -r title; read -r name blocks used free rest; echo "$free"; }})
        [ "${{free:-0}}" -ge {kib} ] && break
    fi
    rm -rf "$place"
    file=
done 2>/dev/null
[ -n "$file" ] || trouble "no directory there has {kib} KiB free, lets programs run and is safe from other users (tried XDG_RUNTIME_DIR, TMPDIR, /tmp, /var/tmp, HOME, /dev/shm)"
trap 'rm -rf "$place"' 0
trap 'exit 1' 1 2 15
printf '\n{SEND} %s %s\n' "$(uname -s)" "$(uname -m)"
head -c {size} >"$file" 2>/dev/null || trouble "it could not be written to $folder there: is the disk full?"
[ "$(wc -c <"$file")" -eq {size} ] || trouble "only a part of it arrived in $folder there"
fits "$file" || trouble "it does not run there: $("$file" agent --identity </dev/null 2>&1 | head -n 1 | sed 's/^regatta: //')"
exec "$file" {role} --temporary
}}
"#
    )
}

fn is_ssh(across: &Across) -> bool {
    let program = across
        .rsh
        .as_ref()
        .map(|words| Path::new(&words[0]).file_name());
    program.is_none_or(|name| name == Some("ssh".as_ref()))
}

/// Returns why a channel ended before the agent answered. `said` is the standard error of the command.
pub(crate) fn explain(across: &Across, host: &str, status: Option<i32>, said: &str) -> String {
    let last = said
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim();
    let with = |part: &str| said.contains(part);
    // Commands of our own end with a complete sentence.
    if let Some(sentence) = last.strip_prefix("regatta: ") {
        return sentence.to_owned();
    }
    let words = match () {
        () if !is_ssh(across) => None,
        () if with("Could not resolve hostname") => Some((
            "is unknown here",
            "check the name, or add it to ~/.ssh/config or /etc/hosts",
        )),
        () if with("Host key verification failed") => Some((
            "has a key that ssh does not know, or that has changed",
            "log in once by hand (`ssh HOST`) to look at the key and accept it",
        )),
        () if with("Permission denied") || with("Too many authentication failures") => Some((
            "asks for a password or refuses your key, and a job cannot answer prompts",
            "make login work without a prompt: run `ssh-copy-id HOST`, or start an ssh-agent",
        )),
        () if with("Connection refused") => Some((
            "does not run an ssh server",
            "start sshd there, or name its port in ~/.ssh/config",
        )),
        () if with("timed out") || with("No route to host") || with("is unreachable") => Some((
            "cannot be reached",
            "it may be down, or a firewall may block ssh. Try `ssh HOST true`",
        )),
        () => None,
    };
    if let Some((what, next)) = words {
        let next = next.replace("HOST", host);
        return format!("the host {host} {what} ({last}): {next}");
    }
    let command = command_words(across, host);
    let status = status.map_or(String::new(), |status| format!(" with status {status}"));
    let reason = if last.is_empty() {
        "it reported no error".to_owned()
    } else {
        format!("its last line was: {last}")
    };
    format!(
        "no agent could be started on the host {host}: `{command}` ended{status}, and {reason}. Try `{command}` by hand: it must run a shell on {host} without a prompt"
    )
}

/// Returns the command as the user would type it.
pub(crate) fn command_words(across: &Across, host: &str) -> String {
    match &across.rsh {
        None => format!("ssh {host} sh"),
        Some(words) => format!("{} sh", fill(across, words, host).join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_becomes_a_sentence_with_a_remedy() {
        let across = Across::new(Vec::new());
        for (said, part, remedy) in [
            (
                "ssh: Could not resolve hostname beta: Name or service not known",
                "unknown here",
                "/etc/hosts",
            ),
            (
                "me@beta: Permission denied (publickey,password).",
                "asks for a password",
                "ssh-copy-id beta",
            ),
            (
                "Host key verification failed.",
                "key that ssh does not know",
                "`ssh beta`",
            ),
            (
                "ssh: connect to host beta port 22: Connection refused",
                "not run an ssh server",
                "sshd",
            ),
            (
                "ssh: connect to host beta port 22: Connection timed out",
                "cannot be reached",
                "firewall",
            ),
            ("sh: not found", "status 127", "by hand"),
        ] {
            let sentence = explain(&across, "beta", Some(127), said);
            assert!(
                sentence.contains("beta") && sentence.contains(part),
                "{sentence}"
            );
            assert!(
                sentence.contains(remedy) && sentence.contains(said),
                "{sentence}"
            );
        }
    }
}
