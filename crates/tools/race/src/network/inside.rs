//! Namespaces of the race: the command runs itself again inside new ones.
//!
//! Inside, the race is the first process of its process namespace. When it ends for any reason, the kernel kills all
//! processes that it has started, and removes the networks, mounts and names with the last process. The command outside
//! only waits. It sends a byte for each signal through a pipe to the race, and the race ends when the pipe is closed.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Variable that is set for the command inside.
const INSIDE: &str = "REGATTA_RACE_INSIDE";

/// Returns whether this process is the race inside. The variable alone is no proof: a race that wrongly believed to be
/// inside would mount over the /run of its host.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some() && std::process::id() == 1
}

/// Returns the command that runs another command in new namespaces.
fn apart() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args([
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    command
}

/// Fails if this user may not create namespaces.
pub fn check() -> Result<()> {
    let tried = apart().arg("true").stdin(Stdio::null()).output();
    let output =
        tried.context("a race between hosts needs the command unshare (package util-linux)")?;
    if !output.status.success() {
        bail!(
            "a race between hosts needs namespaces of its own, which this user may not create ({}): run it as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Runs this command again inside new namespaces, and waits for its end.
pub fn run() -> Result<ExitCode> {
    check()?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let own = std::env::current_exe().context("the path of this command is unknown")?;
    let mut child = apart()
        .arg(own)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .stdin(Stdio::piped())
        // In its own process group the child gets no signals of the terminal. They are sent through the pipe.
        .process_group(0)
        .spawn()
        .context("cannot run unshare")?;
    let mut pipe = child.stdin.take().context("no pipe")?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if pipe.write_all(&[signal as u8]).is_err() {
                break;
            }
        }
    });
    let status = child.wait()?;
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}

/// Starts to take signals from the pipe, inside. The process exits when the command outside has ended.
pub fn follow() {
    // The process group of the command outside has no number in this namespace.
    let _ = rustix::process::setpgid(None, None);
    std::thread::spawn(|| {
        let mut byte = [0];
        while let Ok(1) = std::io::stdin().read(&mut byte) {
            let signal = match i32::from(byte[0]) {
                SIGTERM => SIGTERM,
                _ => SIGINT,
            };
            let _ = signal_hook::low_level::raise(signal);
        }
        std::process::exit(1);
    });
}
