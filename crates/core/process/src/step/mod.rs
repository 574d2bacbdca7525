//! Tasks that a launcher of another system has started, such as `srun`, become one job, without any process between them and that launcher.
//!
//! The launcher gives each task its rank, its node, and the ranks on the same node (`regatta_foreign::Step`), but provides nothing that they share.
//! So the tasks of a node meet at a *node socket*, an abstract socket named after user, step and node. Both sides check by the kernel's credentials
//! that the other belongs to the same user. A task that finds no such socket creates it, and starts a *guardian* to listen there, a process of the
//! command `regatta` (`start_guardian`):
//!
//! ```text
//! node 0:  task 0  task 1          node 1:  task 2  task 3
//!             \    /                           \    /
//!            guardian ======= TCP ========== guardian
//! ```
//!
//! Each task sends hello to the node socket (`node_socket`). When all tasks of the step have, on all nodes, its guardian answers with the descriptor
//! of the job's segment. `crates/machine/guardian` describes how guardians find each other and watch their tasks.
//!
//! A task's connection to its guardian stays open until the task leaves. If the guardian is killed, no process would report deaths to this node any
//! more, and the other nodes consider its tasks dead. So the kernel is asked to kill them then (`fall`), as it is for tasks of `regatta run` whose
//! supervisor dies. A task whose first thread ends before others remains in its launcher's reach (`first_thread`).

mod fall;
mod first_thread;
mod node_socket;
mod start_guardian;

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use regatta_connection::local_socket;
use regatta_engine::{Error, Result};
use regatta_foreign::{Names, Step};
use regatta_segment::job::{Job, JoinToken, VERSION};
use regatta_wire::guardian::{self, Answer, Hello, Versions};

use crate::join::{Joined, join_error};
use node_socket::NodeSocket;

/// Maximum time in which all tasks of a step must have started, in seconds, unless the user sets another one.
const DEFAULT_JOIN_TIMEOUT_SECONDS: u64 = 60;
/// Additional time for which a task waits for the guardian's answer.
const GUARDIAN_GRACE: Duration = Duration::from_secs(5);

/// The versions of this program.
const OURS: Versions = Versions {
    rendezvous: guardian::VERSION,
    job: VERSION,
};

/// This task's connection to its guardian.
static LINE: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Returns the step of several tasks in which this process was started, if it was.
pub(crate) fn find() -> Result<Option<Step>> {
    regatta_foreign::step(&regatta_foreign::environment).map_err(|(names, what)| {
        let Names {
            launcher,
            command,
            instead,
        } = names;
        Error::Launcher(format!(
            "{command} started this task as one of several, but what {launcher} reports about them cannot be used: {what}. Start the program with {instead}, or set REGATTA_SINGLETON=allow if it is meant to run alone"
        ))
    })
}

/// Joins the job that consists of all tasks of the step.
pub(crate) fn join(step: &Step) -> Result<Joined> {
    let patience = patience()?;
    let until = Instant::now() + patience + GUARDIAN_GRACE;
    let name = node_socket::name(step);
    while Instant::now() < until {
        let socket = node_socket::open(&name);
        let socket = socket.map_err(|error| {
            Error::System(format!("no socket can be opened for this step: {error}"))
        })?;
        let line = match socket {
            NodeSocket::Connected(line) => line,
            NodeSocket::Bound(listener) => {
                start_guardian::start(step, listener, patience)?;
                continue;
            }
            NodeSocket::Busy => {
                std::thread::yield_now();
                continue;
            }
        };
        own(&line).map_err(Error::Launcher)?;
        let hello = Hello {
            versions: OURS,
            rank: step.rank,
        };
        // The guardian that closes its socket may be that of an earlier job in this step: then there is a new one.
        let Some((answer, descriptors)) = node_socket::ask(&line, &hello.encode(), until) else {
            continue;
        };
        return welcome(step, line, answer, descriptors);
    }
    Err(Error::Launcher(format!(
        "the tasks of step {} of {} have not formed a job within {} s, and no cause was reported; set REGATTA_JOIN_TIMEOUT to more seconds if they start slowly",
        step.id,
        step.names.launcher,
        patience.as_secs()
    )))
}

fn patience() -> Result<Duration> {
    match std::env::var("REGATTA_JOIN_TIMEOUT") {
        Err(_) => Ok(Duration::from_secs(DEFAULT_JOIN_TIMEOUT_SECONDS)),
        Ok(text) => text
            .parse()
            .ok()
            .filter(|&seconds| (1..=1_000_000).contains(&seconds))
            .map(Duration::from_secs)
            .ok_or_else(|| {
                Error::Argument(format!(
                    "REGATTA_JOIN_TIMEOUT={text:?} is not a number of seconds; write for example 120"
                ))
            }),
    }
}

/// Fails if the node socket belongs to another user.
fn own(line: &OwnedFd) -> std::result::Result<(), String> {
    local_socket::check_user(line).map_err(|other| {
        format!(
            "the name at which the tasks of this step meet on this node is taken: {other}. This is an attack or a serious misconfiguration; report it to the administrator of this machine, and use `regatta run` meanwhile"
        )
    })
}

fn welcome(
    step: &Step,
    line: OwnedFd,
    answer: Answer,
    descriptors: Vec<OwnedFd>,
) -> Result<Joined> {
    if let Answer::Refused { versions, sentence } = answer {
        return Err(match versions {
            true => Error::Version(sentence),
            false => Error::Launcher(sentence),
        });
    }
    let mut descriptors = descriptors.into_iter();
    let segment = descriptors.next().ok_or_else(|| {
        Error::System(
            "the guardian's answer arrived without the job's memory; this process may have no free file descriptor"
                .to_owned(),
        )
    })?;
    let token = JoinToken::handed(step.rank, step.size);
    let job = Job::join(segment, token).map_err(join_error)?;
    fall::with(&line);
    first_thread::notice_end();
    if let Ok(mut place) = LINE.lock() {
        *place = Some(line);
    }
    Ok(Joined {
        job,
        rank: step.rank,
        control: None,
        listener: descriptors.next(),
    })
}

/// Notifies the guardian that this task has left. Returns once the other nodes are being notified.
pub(crate) fn leave() {
    let line = LINE.lock().ok().and_then(|mut place| place.take());
    if let Some(line) = line {
        fall::no_more(&line);
        node_socket::part(&line);
    }
}
