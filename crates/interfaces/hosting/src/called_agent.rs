//! The agent's side of a start that is separate from its launcher: by a task in the launcher's place, or by hand.
//!
//! ```text
//! starter                      agent                                launcher
//! runs the command        >    listens
//!                         <    a contact line: addresses and a key (`contact_line.rs`)
//! passes the line on                                           >    receives it
//!                              goes on without its streams
//!                                                              <    calls
//!                              both prove that they have the key; everything after that is encrypted
//!                              the usual messages of launcher and agent (`channel/messages.rs`)
//! ```
//!
//! So the command ends as soon as the line is printed, and before that only the agent knows the secret; it appears in
//! no argument and no environment variable. The agent itself handles two failures: it accepts only a call that proves
//! to have the key, and it ends if there is none after a while. All other failures are handled by its caller
//! (`lib.rs`): no line, an invalid line, an agent that cannot be reached.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use regatta_connection::calls::{CallListener, Conversation, Keys};
use regatta_launch::{Refusal, agent, bootstrap};
use regatta_trust::SHORT;
use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;

use crate::contact_line::ContactLine;

/// How long an agent waits for its launcher; PVM's daemons wait as long. A person may have to pass its line on.
const LAUNCHER_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval at which callers that have sent nothing are checked for their time limit.
const TICK: Duration = Duration::from_millis(100);

/// Returns the identity of this program as a single shell word.
fn identity_word() -> String {
    let identity = regatta_launch::identity();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let parts = identity
        .split(|c| !plain(c))
        .filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-")
}

/// Quotes a text as a shell word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Maximum length in bytes of a command that every program that starts PVM's daemons can take.
const MAX_COMMAND_BYTES: usize = 500;

/// Returns the command that starts an agent, as a line for any login shell. The program is the one that the host's line
/// names (`daemon`). Otherwise, or if that fails, it is the first trusted one among `regatta` in the path and `own`,
/// the path of the program here.
pub(crate) fn command(own: &Path, daemon: Option<&str>) -> String {
    let word = identity_word();
    let line = |own: &str| {
        let named = daemon.map(|daemon| {
            let daemon = quoted(daemon);
            format!("{daemon} agent --apart $w&&exit;")
        });
        let script = format!(
            r#"w={word};{named}{SHORT};for r in regatta{own};do r=$(command -v "$r")&&s "$r"&&"$r" agent --apart $w&&exit;done;echo no regatta $w>&2;exit 1"#,
            named = named.unwrap_or_default()
        );
        format!("sh -c '{}'", script.replace('\'', r"'\''"))
    };
    let whole = line(&format!(" {}", quoted(&own.to_string_lossy())));
    // A path below /proc refers to the current process, so it names another program there.
    match whole.len() <= MAX_COMMAND_BYTES && !own.starts_with("/proc") {
        true => whole,
        false => line(""),
    }
}

/// Prints the contact line and returns, while the agent continues in the background. Returns 1 if this program is not
/// the `wanted` one; the shell may then try another one.
pub fn run(wanted: &str) -> Result<u8, Refusal> {
    if wanted != identity_word() {
        return Ok(1);
    }
    // The process that has started this one waits until its descriptors are closed.
    regatta_launch::close_inherited();
    let failed = |what: &str, error: std::io::Error| {
        Refusal::of_regatta(format!("the agent {what}: {error}"))
    };
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)));
    let listener = listener.map_err(|error| failed("has no port for its launcher", error))?;
    let port = listener.local_addr().map(|address| address.port());
    let port = port.map_err(|error| failed("cannot determine its port", error))?;
    let contact_line = ContactLine::new(bootstrap::own_addresses(None), port)?;
    let keys = Keys::new(&contact_line.key());
    let mut output = std::io::stdout();
    writeln!(output, "{}", contact_line.text())
        .and_then(|()| output.flush())
        .map_err(|error| failed("cannot print its address", error))?;
    let listener = CallListener::new(listener.into());
    let listener = listener.map_err(|error| failed("cannot accept connections", error))?;
    agent::serve_caller(crate::starter, || {
        await_launcher(listener, &keys, LAUNCHER_TIMEOUT)
    })
}

/// Waits for a caller that has the key, and returns the connection. Returns `None` if there is none in time.
pub(crate) fn await_launcher(
    mut listener: CallListener,
    keys: &Keys,
    patience: Duration,
) -> Option<Conversation> {
    let until = Instant::now() + patience;
    loop {
        if let Some(conversation) = listener.attend(keys).into_iter().next() {
            return Some(conversation);
        }
        let left = until.checked_duration_since(Instant::now())?;
        let left = if listener.drop_overdue() {
            left.min(TICK)
        } else {
            left
        };
        let mut fds: Vec<PollFd> = listener
            .fds()
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let _ = regatta_connection::ready::poll(&mut fds, Timespec::try_from(left).ok().as_ref());
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_command_of_an_agent_apart_is_one_line_and_not_too_long() {
        let word = identity_word();
        assert_eq!(quoted(&word), word);
        let line = command(Path::new("/opt/r/regatta"), None);
        assert!(
            line.contains(";for r in regatta /opt/r/regatta;do "),
            "{line}"
        );
        assert!(!line.contains('\n') && line.len() <= MAX_COMMAND_BYTES);
        let far = format!("/{}", "x".repeat(400));
        let named = command(Path::new(&far), Some("r"));
        assert!(named.contains(";r agent --apart "), "{named}");
        assert!(
            named.contains("in regatta;") && named.len() <= MAX_COMMAND_BYTES,
            "{named}"
        );
    }

    #[test]
    fn a_shell_runs_the_first_program_that_is_there_whatever_its_name() {
        let folder = std::env::temp_dir().join(format!("ra-{}", std::process::id()));
        let odd = folder.join("it's \"$here\" | so");
        std::fs::create_dir_all(&odd).expect("a folder");
        let program = odd.join("r");
        std::os::unix::fs::symlink("/bin/echo", &program).expect("a link");
        let say = |program: &Path| {
            Command::new("/bin/sh")
                .args(["-c", &command(program, None)])
                .env("PATH", "/nowhere:/bin:/usr/bin")
                .stdin(Stdio::null())
                .output()
                .expect("a shell")
        };
        let open = folder.join("open");
        std::fs::create_dir(&open).expect("a folder");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&open, mode).expect("its mode");
        std::fs::copy("/bin/echo", open.join("r")).expect("a copy");
        let (there, gone) = (say(&program), say(&odd.join("none")));
        let foreign = say(&open.join("r"));
        std::fs::remove_dir_all(&folder).expect("the folder");
        let words = format!("agent --apart {}\n", identity_word());
        assert_eq!(String::from_utf8_lossy(&there.stdout), words, "{there:?}");
        assert!(!gone.status.success() && gone.stdout.is_empty(), "{gone:?}");
        assert!(foreign.stdout.is_empty(), "{foreign:?}");
    }
}
