//! The state that a process of the command `regatta` inherits from the program that has started it, and how it is
//! changed.
//!
//! [`normalize`] is the first call of every entry point (`run`, `mpiexec`, `up`, `daemon`, `agent`, `guardian`, `race`,
//! the console, ...). From then on the process has a known state, and the tasks of this host get what they would have
//! got from a shell in place of the launcher.
//!
//! | inherited | in processes of Regatta | in tasks |
//! |---|---|---|
//! | SIGCHLD ignored | default: otherwise the kernel would reap children before they are waited for | ignored |
//! | another signal ignored (`nohup`, `&` in a script) | ignored, so it is not passed on | ignored |
//! | SIGPIPE | ignored: a write without a reader returns an error | default |
//! | SIGXFSZ (a limit of file size is reached) | ignored: the write, or the allocation of a job's memory, returns an error | as inherited |
//! | blocked signals | only those that are read from a descriptor | blocked |
//! | umask | does not remove the owner's rights | as inherited |
//! | children (of a shell that has executed this command) | are not signalled, but reaped | not theirs |
//! | standard descriptors closed | `/dev/null` | `/dev/null` |
//! | other descriptors | closed by processes that go on after the command | open |
//! | limit of open files | raised as far as allowed | as inherited |
//! | other limits, niceness, control group, working directory | as inherited | as inherited |
//! | a timer (`alarm`) | of the process that the user sees, whose end by it ends the job | none |

use std::sync::OnceLock;

use rustix::fs::Mode;
use rustix::process::{Pid, Signal};

use crate::sys::{self, Mask};

/// The state that this process was started with.
#[derive(Debug)]
pub(crate) struct Inherited {
    /// Whether SIGCHLD was ignored.
    pub ignores_children: bool,
    /// Whether SIGXFSZ was ignored.
    pub ignores_file_size: bool,
    /// The signals that were blocked.
    pub mask: Mask,
    /// The umask.
    pub umask: Mode,
    /// Processes that were children of this one already.
    children: Vec<Pid>,
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Brings this process into the state that the module describes. To be called while it is single-threaded. Only the
/// first call has an effect.
pub fn normalize() {
    INHERITED.get_or_init(|| {
        let ignores_children = sys::is_ignored(Signal::CHILD);
        let ignores_file_size = sys::is_ignored(Signal::XFSZ);
        sys::expect_children();
        sys::ignore(Signal::XFSZ);
        let mask = sys::block(&[]);
        sys::unblock_all();
        let umask = rustix::process::umask(Mode::RWXU);
        rustix::process::umask(umask & !Mode::RWXU);
        Inherited {
            ignores_children,
            ignores_file_size,
            mask,
            umask,
            children: children(),
        }
    });
}

/// Returns the inherited state, if this process has been normalized.
pub(crate) fn get() -> Option<&'static Inherited> {
    INHERITED.get()
}

/// Returns the children that this process had before it executed this program.
pub(crate) fn spared() -> &'static [Pid] {
    get().map_or(&[], |inherited| &inherited.children)
}

fn children() -> Vec<Pid> {
    let pid = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/self/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let pids = children.split_whitespace();
    pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}
