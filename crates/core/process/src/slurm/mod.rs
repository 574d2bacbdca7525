//! Tasks that `srun` has started become one job, with nothing between them and Slurm.
//!
//! Slurm tells each task its rank, its node, and the ranks beside it, but it makes nothing that they share. So the tasks of
//! a node meet at a *node socket*, an abstract socket named after user, step and node; both sides check by the kernel's word
//! that the other is of the same user. A task that finds no such socket makes it, and forks a *guardian* to listen there:
//!
//! ```text
//! node 0:  task 0  task 1          node 1:  task 2  task 3
//!             \    /                           \    /
//!            guardian ======= TCP ========== guardian
//! ```
//!
//! 1. Each task says hello at the node socket (`node_socket`). When all of the node have, the guardian closes it (`guardian`).
//! 2. With several nodes, the guardians meet on the first one (`meet`). The way there is a few ports that follow from the
//!    number of the step; what proves who they are, and hides the job's key, are letters sealed by munge, which only
//!    processes of this user on nodes of this cluster can open. A caller that proves nothing is served within bounds (`callers`). So `srun` needs no option, and nobody has to trust the ports.
//!    Where there is no munge, the job ends with a sentence that names `regatta run`, which needs none.
//! 3. The guardian makes the node's segment with the table of all ranks, and answers each task with its descriptor.
//! 4. It stays until the last of its tasks has left or ended, watching them by their pidfds, and tells its own table and
//!    all other guardians at once (`mesh`). Every record between guardians is proved with the job's key. A guardian that is silent or
//!    gone takes its node's tasks with it, as a lost host does.
//!
//! A task's connection to its guardian stays open until it leaves. If the guardian is killed, nobody would tell this node of deaths any
//! more, and the others take its tasks for dead: so the kernel is asked to kill them then, as it is for tasks of
//! `regatta run` whose supervisor dies.
//!
//! The consequence of a failure is Slurm's affair (`srun --kill-on-bad-exit`, `--wait`): here it is only reported. Nobody here is the
//! parent of a task, so how it ended is not known, only that it has.

mod callers;
mod guardian;
mod meet;
mod mesh;
mod node_socket;
mod stand;

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use regatta_engine::{Error, Result};
use regatta_segment::job::{Job, JoinToken, VERSION};
use regatta_slurm::Step;
use regatta_slurm::rendezvous::{self, Answer, Hello, Versions};

use crate::join::{Joined, join_error};
use node_socket::NodeSocket;

/// How long all tasks of a step may take to come, in seconds, unless the user says otherwise.
const PATIENCE: u64 = 60;
/// So much longer a task waits for the guardian's word on it.
const GRACE: Duration = Duration::from_secs(5);

/// The versions of this program.
const OURS: Versions = Versions {
    rendezvous: rendezvous::VERSION,
    job: VERSION,
};

/// Why tasks do not become a job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    /// Because versions differ.
    versions: bool,
    sentence: String,
}

impl Refusal {
    fn new(sentence: impl Into<String>) -> Self {
        Self {
            versions: false,
            sentence: sentence.into(),
        }
    }

    fn error(self) -> Error {
        match self.versions {
            true => Error::Version(self.sentence),
            false => Error::Launcher(self.sentence),
        }
    }
}

/// This task's connection to its guardian.
static LINE: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// The step of several tasks that this process was started in.
pub(crate) fn step() -> Result<Option<Step>> {
    Step::find(&regatta_slurm::environment).map_err(|what| {
        Error::Launcher(format!(
            "srun has started this task as one of several, and what Slurm says of them cannot be used: {what}. Start the \
             program with `regatta run PROGRAM` inside salloc or sbatch; or clear SLURM_STEP_ID to run it alone on purpose"
        ))
    })
}

/// Becomes a task of the job that all tasks of the step are.
pub(crate) fn join(step: &Step) -> Result<Joined> {
    let system = |what: &str, error: std::io::Error| Error::System(format!("{what}: {error}"));
    let patience = patience()?;
    let until = Instant::now() + patience + GRACE;
    let name = node_socket::name(step);
    while Instant::now() < until {
        let socket = node_socket::open(&name).map_err(|e| system("no socket for this step", e))?;
        let line = match socket {
            NodeSocket::Connected(line) => line,
            NodeSocket::Bound(listener) => {
                stand::beside(listener, step, patience)
                    .map_err(|e| system("no guardian for this step", e))?;
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
        // The guardian that closes its socket may be that of a job before us in this step: then there is a new one.
        let Some((answer, descriptors)) = node_socket::ask(&line, &hello.encode(), until) else {
            continue;
        };
        return welcome(step, line, answer, descriptors);
    }
    Err(Error::Launcher(format!(
        "the tasks of step {} of Slurm have not become a job within {} s, and nobody says why; set REGATTA_JOIN_TIMEOUT to \
         more seconds if they start so slowly",
        step.id,
        patience.as_secs()
    )))
}

fn patience() -> Result<Duration> {
    match std::env::var("REGATTA_JOIN_TIMEOUT") {
        Err(_) => Ok(Duration::from_secs(PATIENCE)),
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

/// Refuses a node socket that somebody else has made.
fn own(line: &OwnedFd) -> std::result::Result<(), String> {
    let user = rustix::process::geteuid().as_raw();
    match node_socket::peer(line) {
        Some((_, other)) if other == user => Ok(()),
        Some((_, other)) => Err(format!(
            "a process of user {other} holds the name at which the tasks of this step would meet on this node: that is an \
             attack or a great mistake; tell who runs this machine, and use `regatta run` meanwhile"
        )),
        None => Err("the kernel does not say whose socket this is".to_owned()),
    }
}

fn welcome(
    step: &Step,
    line: OwnedFd,
    answer: Answer,
    descriptors: Vec<OwnedFd>,
) -> Result<Joined> {
    if let Answer::Refused { versions, sentence } = answer {
        return Err(Refusal { versions, sentence }.error());
    }
    let mut descriptors = descriptors.into_iter();
    let segment = descriptors.next().ok_or_else(|| {
        Error::System(
            "the guardian's answer came without the job's memory: are there no descriptors left?"
                .to_owned(),
        )
    })?;
    let token = JoinToken::handed(step.rank, step.size);
    let job = Job::join(segment, token).map_err(join_error)?;
    stand::fall_with(&line);
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

/// Tells the guardian that this task has left; returns when the other nodes are being told.
pub(crate) fn leave() {
    let line = LINE.lock().ok().and_then(|mut place| place.take());
    if let Some(line) = line {
        stand::fall_no_more(&line);
        node_socket::part(&line);
    }
}
