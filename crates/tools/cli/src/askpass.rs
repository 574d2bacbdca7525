//! Passes on a question of ssh if a host's line has `so=pw`. ssh runs this command with the question. The command asks
//! it at the terminal from which the host was requested, and prints the answer for ssh.
//!
//! The launcher has no terminal, so ssh has none either, and uses `SSH_ASKPASS`. Questions are asked one at a time.
//! When ssh ends, because the host is not wanted any more, the question ends too: what is typed afterwards is for other
//! programs.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use regatta_launch::ASK_AT;

/// Maximum length of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1024;

/// Asks the question, if ssh has run the command for that. Otherwise returns `None`.
pub fn if_asked() -> Option<ExitCode> {
    let path = std::env::var_os(ASK_AT)?;
    let question = std::env::args().nth(1).unwrap_or_default();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(path, flags, Mode::empty());
    let answer = match terminal.map(File::from) {
        Ok(terminal) if terminal.is_terminal() => ask(&terminal, &question),
        _ => None,
    };
    Some(match answer {
        Some(answer) if std::io::stdout().write_all(&answer).is_ok() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Returns the line that the user types, or `None` if the terminal or ssh is gone.
fn ask(terminal: &File, question: &str) -> Option<Vec<u8>> {
    let asker = pidfd_open(getppid()?, PidfdFlags::empty()).ok()?;
    rustix::fs::flock(terminal, FlockOperation::LockExclusive).ok()?;
    let before = tcgetattr(terminal).ok()?;
    // Only passwords are typed without echo.
    if !question.contains("(yes/no") {
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO;
        silent.local_modes |= LocalModes::ECHONL;
        tcsetattr(terminal, OptionalActions::Flush, &silent).ok()?;
    }
    let _ = (&*terminal).write_all(question.as_bytes());
    let answer = read(terminal, &asker);
    let _ = tcsetattr(terminal, OptionalActions::Now, &before);
    answer
}

fn read(terminal: &File, asker: &impl std::os::fd::AsFd) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    while !answer.contains(&b'\n') && answer.len() < MAX_ANSWER_BYTES {
        let mut fds = [
            PollFd::new(terminal, PollFlags::IN),
            PollFd::new(asker, PollFlags::IN),
        ];
        let waited = rustix::event::poll(&mut fds, None);
        if waited.is_err() {
            continue;
        }
        if !fds[1].revents().is_empty() {
            return None;
        }
        let mut bytes = [0; 256];
        match rustix::io::read(terminal, &mut bytes) {
            Ok(0) => return None,
            Ok(count) => answer.extend_from_slice(&bytes[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(answer)
}
