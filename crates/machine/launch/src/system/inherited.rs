//! The state that a process of the command `regatta` inherits from the program that has started it, and what becomes of that.
//!
//! [`normalize`] is the first thing that every entry does (`run`, `mpiexec`, `up`, `daemon`, `agent`, `guardian`, `race`, the console, ...).
//! From then on the process has known values, and the tasks of this host get what a shell in the launcher's place would have given them.
//!
//! | inherited | in processes of Regatta | in tasks |
//! |---|---|---|
//! | SIGCHLD ignored | default: the kernel would reap children before they are waited for | ignored |
//! | another signal ignored (`nohup`, `&` in a script) | ignored, and so it is not passed on | ignored |
//! | SIGPIPE | ignored: a reader that goes away is an error of a write | default |
//! | SIGXFSZ (a limit of file size is reached) | ignored: it is an error of a write, or of the memory of a job | as it was |
//! | blocked signals | none but those that are read from a descriptor | blocked |
//! | umask | does not take away the owner's rights | the same |
//! | children (of a shell that has executed this command) | are let be, and reaped | not theirs |
//! | standard descriptors closed | `/dev/null` | `/dev/null` |
//! | other descriptors | closed by what goes on after the command | open |
//! | limit of open files | raised as far as may be | the same |
//! | other limits, niceness, control group, working directory | the same | the same |
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
    /// Whether SIGXFSZ was.
    pub ignores_file_size: bool,
    /// The signals that were blocked.
    pub mask: Mask,
    /// The rights that files were not to be made with.
    pub umask: Mode,
    /// Processes that were children already.
    children: Vec<Pid>,
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Gives this process the state that the module describes. To be called while it has one thread; only the first call does something.
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

/// The state that was found, if this process has been normalized.
pub(crate) fn get() -> Option<&'static Inherited> {
    INHERITED.get()
}

/// The children that this process had before it was this program.
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
