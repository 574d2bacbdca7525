//! Whether one task may read another's memory (CMA, `process_vm_readv`). This is tried between two sibling processes,
//! as tasks are: a rule that lets a parent read its child says nothing about siblings.

use std::io::{BufRead, BufReader, Error, Write};
use std::process::{Child, Command, ExitCode, Stdio};

use super::finding::Finding;
use super::kernel::AREA;

const NAME: &str = "single copy (CMA)";
/// The option that starts the two siblings, after `regatta doctor`.
const OPTION: &str = "--single-copy-probe";

/// Returns the result of the read.
fn probe() -> std::io::Result<()> {
    let mut owner = sibling("own")?;
    let result = ask(&mut owner);
    // The end of its input ends it.
    drop(owner.stdin.take());
    owner.wait()?;
    result
}

/// Runs a second process that reads from the first, and returns the kernel's answer.
fn ask(owner: &mut Child) -> std::io::Result<()> {
    let output = owner
        .stdout
        .take()
        .ok_or_else(|| Error::other("no output"))?;
    let mut place = String::new();
    BufReader::new(output).read_line(&mut place)?;
    let reader = sibling(&format!("read {}", place.trim()))?.wait_with_output()?;
    match String::from_utf8_lossy(&reader.stdout)
        .trim()
        .parse::<i32>()
    {
        Ok(0) => Ok(()),
        Ok(errno) => Err(Error::from_raw_os_error(errno)),
        Err(_) => Err(Error::other("the probe did not answer")),
    }
}

fn sibling(part: &str) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["doctor", OPTION, part])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

/// Plays the role of one of the two processes.
pub fn play(part: &str) -> ExitCode {
    let words: Vec<&str> = part.split(' ').collect();
    match words[..] {
        ["own"] => own(),
        ["read", pid, address] => read(pid, address),
        _ => ExitCode::from(2),
    }
}

fn own() -> ExitCode {
    let word = Box::new(0x5245_4741_u64);
    let place = &raw const *word as usize;
    let _ = writeln!(std::io::stdout(), "{} {place}", std::process::id());
    let _ = std::io::stdout().flush();
    // Wait until the doctor closes standard input.
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(word);
    ExitCode::SUCCESS
}

fn read(pid: &str, address: &str) -> ExitCode {
    let (Ok(pid), Ok(address)) = (pid.parse(), address.parse()) else {
        return ExitCode::from(2);
    };
    let errno = match regatta_memory::remote::may_pull(pid, address) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(-1),
    };
    let _ = writeln!(std::io::stdout(), "{errno}");
    ExitCode::SUCCESS
}

/// Returns the finding.
pub fn finding() -> Finding {
    match probe() {
        Ok(()) => Finding::ok(
            AREA,
            NAME,
            "allowed between tasks: the receiver reads a large message from the sender's memory if the sender is not in a call",
        ),
        Err(error) => {
            let (why, next) = reason(&error);
            let value = format!(
                "refused between tasks ({error}): {why}. Large messages therefore wait until their sender copies its half"
            );
            Finding::slow(AREA, NAME, value).next(next)
        }
    }
}

/// Returns why the kernel refused, and what would change it.
fn reason(error: &Error) -> (String, String) {
    let errno = rustix::io::Errno::from_io_error(error);
    match (errno, yama()) {
        (Some(rustix::io::Errno::NOSYS), _) => (
            "this kernel is built without CONFIG_CROSS_MEMORY_ATTACH".to_owned(),
            "use a distribution's kernel".to_owned(),
        ),
        (_, Some(scope)) if scope > 0 => (
            format!(
                "kernel.yama.ptrace_scope is {scope}, so a process may read only the memory of its children"
            ),
            "sysctl -w kernel.yama.ptrace_scope=0 (as root), if you trust all your processes"
                .to_owned(),
        ),
        _ => (
            "a seccomp profile, or another user namespace, forbids it".to_owned(),
            "in a container: --cap-add SYS_PTRACE, or a profile that allows process_vm_readv"
                .to_owned(),
        ),
    }
}

/// Returns the setting of the Yama security module, if the kernel has it.
fn yama() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
        .ok()?
        .trim()
        .parse()
        .ok()
}
