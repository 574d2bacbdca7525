//! The tasks of one host: started, entered in the job's table, reaped.
//!
//! The process that owns this is the parent of the tasks. It may have other threads, since nothing here forks. Tasks
//! that other tasks spawn are in `prepared.rs`. What a loop does for all tasks is in `worker.rs`.

pub(crate) mod bind;
pub mod cores;
pub mod prepared;
pub(crate) mod unjoined;
pub(crate) mod worker;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CString, OsString};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use regatta_job::{End, Ended};
use regatta_program::{Refusal, STATUS_REFUSED};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Rlimit, Signal, WaitOptions, WaitStatus};

use crate::channel::messages::Preparation;
use crate::plan::Bind;
use crate::resident::guest::Guest;
use crate::streams::Streams;
use crate::streams::caught::Caught;
use crate::summary;
use crate::supervise::controls::Controls;
use crate::sys;
use crate::sys::{Image, Mask, StartError, TaskPlacement};
use crate::system::limits;
use crate::system::tree;
use crate::tasks::bind::{Placement, Share};
use crate::tasks::prepared::PreparedTasks;
use crate::tasks::unjoined::Unjoined;
use regatta_segment::job::{Cause, Job, JoinToken, TaskState, VERSION};
use regatta_segment::place::listen_at;
use regatta_wire::control::Route;

/// Maximum number of tasks that are started before the loop checks other events.
const MAX_BATCH: u32 = 16;
/// The numbers of the segment, the listening socket and the socket to the launcher in the tasks. Shells and scripts use
/// small numbers, and from 64 on the kernel would have to enlarge every task's table.
const SEGMENT_FD: i32 = 60;
const LISTENER_FD: i32 = 61;
const CONTROL_FD: i32 = 62;

/// How the tasks are started.
pub(crate) struct Recipe {
    /// The program as the user named it, and its path.
    pub name: OsString,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    /// The process group of the tasks.
    pub group: Pid,
    /// The limit of open files to restore, if it was raised in this process.
    pub files: Option<Rlimit>,
}

/// A task that has been started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Started {
    pub rank: u32,
    pub pid: u32,
}

/// The tasks of a job that run on this host.
pub(crate) struct Tasks {
    job: Job,
    /// The job's segment, with the same number as in the tasks.
    segment: OwnedFd,
    /// The ranks of this host, ascending, and the listening socket of each until it has been started.
    here: Vec<u32>,
    listeners: Vec<Option<TcpListener>>,
    program: PathBuf,
    placement: Placement,
    image: Image,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The sockets on which the tasks send requests.
    pub(crate) controls: Controls,
    /// Output of tasks for the tasks that have started them.
    pub(crate) caught: Caught,
    /// Tasks that other tasks spawn.
    pub(crate) prepared: PreparedTasks,
    /// Spawned tasks that were started on this host.
    pub(crate) later: HashSet<u32>,
    /// Tasks started on this host that are checked if they do not join.
    pub(crate) unjoined: Unjoined,
    /// The address at which the tasks of this host listen, if they do.
    pub(crate) address: Option<IpAddr>,
    /// The standard input of all tasks except task 0, and of task 0 if it does not get that of this process.
    nothing: OwnedFd,
    input: Option<OwnedFd>,
    group: Pid,
    pub(crate) files: Option<Rlimit>,
    /// Number of tasks in `here` that have been started.
    next: usize,
    pub(crate) stopped: bool,
    /// Whether task 0 was not started by this process.
    pub(crate) adopted: bool,
    running: HashMap<Pid, u32>,
    /// Tasks that are not children of this process.
    pub(crate) guests: BTreeMap<u32, Guest>,
}

/// Settings that differ between starts.
pub(crate) struct Start<'a> {
    pub rank: u32,
    pub listener: Option<TcpListener>,
    pub input: Option<OwnedFd>,
    pub cores: Option<rustix::thread::CpuSet>,
    pub outlet: Outlet<'a>,
    pub mask: &'a Mask,
}

/// The destination of a task's output.
pub(crate) enum Outlet<'a> {
    /// The standard output and error of this process.
    Ours,
    /// Pipes that this process reads for the job's output.
    Streams(&'a mut Streams),
    /// Pipes that this process reads for another task.
    Caught(&'a mut Caught, Route),
}

impl<'a> Outlet<'a> {
    pub(crate) fn of(streams: Option<&'a mut Streams>) -> Self {
        streams.map_or(Outlet::Ours, Outlet::Streams)
    }

    fn pipes(self, rank: u32) -> rustix::io::Result<Option<[OwnedFd; 2]>> {
        match self {
            Outlet::Ours => Ok(None),
            Outlet::Streams(streams) => streams.pipes(rank).map(Some),
            Outlet::Caught(caught, route) => caught.pipes(rank, route).map(Some),
        }
    }
}

/// The reason why a task was not started.
pub(crate) enum Unstarted {
    /// This host could not set the task up.
    Refused(Refusal),
    /// The kernel could not start it.
    Failed(StartError),
}

impl Tasks {
    /// Prepares the ranks `here` of a job whose table is created by `job`. The cores are chosen first, since the job
    /// counts those that it gets. `share` describes the tasks of the job on other hosts of this machine.
    pub(crate) fn new(
        job: impl FnOnce() -> Result<Job, regatta_segment::job::JobError>,
        here: Vec<u32>,
        bind: &Bind,
        share: Share,
        recipe: Recipe,
    ) -> Result<Self, Refusal> {
        let failed =
            |what: &str, errno| Refusal::of_regatta(format!("the launcher cannot {what}: {errno}"));
        let count = here.len() as u32;
        let placement = Placement::new(bind, count, share)?;
        if let Some(cores) = placement.squeezed(count) {
            let _ = rustix::thread::sched_setaffinity(None, &cores);
        }
        let job = job().map_err(|error| Refusal::of_regatta(error.to_string()))?;
        if share.others > 0 {
            job.set_neighbours(share.others);
        }
        let segment = under(SEGMENT_FD, job.fd())
            .map_err(|errno| failed("hand on the job's segment", errno))?;
        let nothing =
            rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| failed("open /dev/null", errno))?;
        Ok(Self {
            image: image(&recipe),
            environment: recipe.environment,
            controls: Controls::new()?,
            caught: Caught::default(),
            prepared: PreparedTasks::default(),
            later: HashSet::new(),
            unjoined: Unjoined::default(),
            address: None,
            program: recipe.program,
            group: recipe.group,
            files: recipe.files,
            listeners: here.iter().map(|_| None).collect(),
            running: HashMap::with_capacity(here.len()),
            job,
            segment,
            here,
            placement,
            nothing,
            input: None,
            next: 0,
            stopped: false,
            adopted: false,
            guests: BTreeMap::new(),
        })
    }

    /// Prepares the tasks of the host that a preparation is for. Returns them and the addresses at which they will
    /// listen. `recipe` gets their number.
    pub(crate) fn prepared(
        job: &Preparation,
        recipe: impl FnOnce(u32) -> Result<Recipe, Refusal>,
    ) -> Result<(Self, Vec<(u32, SocketAddr)>), Refusal> {
        let here = ranks_on(&job.host_of, job.here);
        let recipe = recipe(here.len() as u32)?;
        let places = job.places();
        let segment = || Job::create_across(&places);
        let mut tasks = Self::new(segment, here, &job.bind, job.share, recipe)?;
        let addresses = tasks.listen(job.address)?;
        Ok((tasks, addresses))
    }

    /// Returns the only task of `job`, which runs already and sends requests on this socket.
    pub(crate) fn adopt(
        job: Job,
        control: OwnedFd,
        guest: Guest,
        recipe: Recipe,
    ) -> Result<Self, Refusal> {
        let mut tasks = Self::new(|| Ok(job), vec![0], &Bind::Free, Share::default(), recipe)?;
        let heard =
            rustix::io::ioctl_fionbio(&control, true).and_then(|()| tasks.controls.add(0, control));
        heard.map_err(|errno| {
            Refusal::of_regatta(format!(
                "the launcher cannot receive requests of its task: {errno}"
            ))
        })?;
        tasks.next = 1;
        tasks.adopted = true;
        tasks.guests.insert(0, guest);
        Ok(tasks)
    }

    /// Returns the tasks of a `job` whose only number belongs to no task. Tasks are added later.
    pub(crate) fn vacant(
        job: impl FnOnce() -> Result<Job, regatta_segment::job::JobError>,
        recipe: Recipe,
    ) -> Result<Self, Refusal> {
        let mut tasks = Self::new(job, vec![0], &Bind::Free, Share::default(), recipe)?;
        tasks.job.leave(0);
        tasks.job.count_living(-1);
        tasks.next = 1;
        Ok(tasks)
    }

    /// Opens a listening socket for each task, and returns their addresses.
    pub(crate) fn listen(&mut self, address: IpAddr) -> Result<Vec<(u32, SocketAddr)>, Refusal> {
        let refused = |error: std::io::Error| {
            Refusal::of_regatta(format!(
                "a socket cannot be opened at the address {address}: {error}"
            ))
        };
        self.address = Some(address);
        let mut addresses = Vec::with_capacity(self.here.len());
        for (rank, place) in self.here.iter().zip(&mut self.listeners) {
            let listener = listen_at(address).map_err(refused)?;
            addresses.push((*rank, listener.local_addr().map_err(refused)?));
            *place = Some(listener);
        }
        Ok(addresses)
    }

    /// Makes tasks that are added later listen at this address.
    pub(crate) fn will_listen(&mut self, address: IpAddr) {
        self.address = Some(address);
    }

    /// Records the addresses at which the ranks of the job listen.
    pub(crate) fn locate(&self, addresses: &[SocketAddr]) {
        for (rank, &address) in (0..self.job.tasks()).zip(addresses) {
            self.job.set_address(rank, address);
        }
    }

    /// Gives task 0 this standard input instead of that of this process.
    pub(crate) fn set_input(&mut self, input: OwnedFd) {
        self.input = Some(input);
    }

    pub(crate) fn segment(&self) -> BorrowedFd<'_> {
        self.segment.as_fd()
    }

    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    /// Returns whether a task runs or has run on this host.
    pub(crate) fn has(&self, rank: u32) -> bool {
        self.later.contains(&rank) || self.here.binary_search(&rank).is_ok()
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns whether there are tasks to be started.
    pub(crate) fn are_to_start(&self) -> bool {
        !self.stopped && self.next < self.here.len()
    }

    /// Returns whether tasks run, or are still to be started.
    pub(crate) fn are_left(&self) -> bool {
        self.are_to_start() || self.are_prepared_to_start() || !self.processes().is_empty()
    }

    pub(crate) fn stop_starting(&mut self) {
        self.stopped = true;
        self.listeners
            .iter_mut()
            .for_each(|listener| *listener = None);
        self.prepared.stop();
    }

    /// Starts the next few tasks. Their output goes to `streams`, or directly to the output of this process. A refusal
    /// ends the starting.
    pub(crate) fn start_some(
        &mut self,
        mut streams: Option<&mut Streams>,
        mask: &Mask,
        mut started: impl FnMut(Started),
    ) -> Result<(), Refusal> {
        for _ in 0..MAX_BATCH {
            if !self.are_to_start() {
                return Ok(());
            }
            match self.start(self.next, streams.as_deref_mut(), mask) {
                Ok(task) => started(task),
                Err(refusal) => {
                    self.stop_starting();
                    return Err(refusal);
                }
            }
            self.next += 1;
            if !self.are_to_start() {
                self.job.reserve_ahead();
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        index: usize,
        streams: Option<&mut Streams>,
        mask: &Mask,
    ) -> Result<Started, Refusal> {
        let rank = self.here[index];
        let start = Start {
            rank,
            listener: self.listeners[index].take(),
            input: match rank {
                0 => self.input.take(),
                _ => None,
            },
            cores: self.placement.of(index as u32),
            outlet: Outlet::of(streams),
            mask,
        };
        let mut image = std::mem::replace(&mut self.image, Image::empty());
        let started = self.start_from(&mut image, start);
        self.image = image;
        started.map_err(|unstarted| match unstarted {
            Unstarted::Refused(refusal) => refusal,
            Unstarted::Failed(StartError::NoProcess(errno)) => limits::explain(errno, index as u32),
            Unstarted::Failed(StartError::Execute(errno)) => {
                regatta_program::explain(&self.program, errno)
            }
            Unstarted::Failed(StartError::SetUp(errno)) => cannot_set_up(rank, errno),
        })
    }

    /// Starts one task from an image.
    pub(crate) fn start_from(
        &mut self,
        image: &mut Image,
        start: Start,
    ) -> Result<Started, Unstarted> {
        let rank = start.rank;
        let set_up = |errno| Unstarted::Refused(cannot_set_up(rank, errno));
        let pipes = start.outlet.pipes(rank).map_err(|errno| {
            Unstarted::Refused(Refusal::of_regatta(format!(
                "no pipe can be opened for the output of task {rank}: {errno}"
            )))
        })?;
        let listener = start
            .listener
            .map(|listener| under(LISTENER_FD, listener.as_fd()))
            .transpose()
            .map_err(set_up)?;
        let control = self.open_control(rank).map_err(set_up)?;
        let token = JoinToken {
            version: VERSION,
            fd: self.segment.as_raw_fd(),
            rank,
            size: self.job.first(),
            control: control.as_ref().map(AsRawFd::as_raw_fd),
            listener: listener.as_ref().map(AsRawFd::as_raw_fd),
        };
        let place = TaskPlacement {
            stdio: [
                start
                    .input
                    .as_ref()
                    .or((rank > 0).then_some(&self.nothing))
                    .map(AsFd::as_fd),
                pipes.as_ref().map(|[output, _]| output.as_fd()),
                pipes.as_ref().map(|[_, error]| error.as_fd()),
            ],
            kept: [
                Some(self.segment.as_fd()),
                listener.as_ref().map(AsFd::as_fd),
                control.as_ref().map(AsFd::as_fd),
            ],
            cores: start.cores,
            group: self.group,
            files: self.files,
            mask: start.mask,
        };
        let variable = sys::c_string(format!("{}={token}", JoinToken::VARIABLE).as_bytes());
        let pid = image.start(variable, &place).map_err(|error| {
            self.controls.close(rank);
            Unstarted::Failed(error)
        })?;
        self.running.insert(pid, rank);
        let pid = pid.as_raw_nonzero().get() as u32;
        self.job.announce(rank, pid);
        Ok(Started { rank, pid })
    }

    /// Returns the task's end of its control socket. A job may be larger than the launcher's limit of open files. It runs,
    /// but those of its first tasks that are beyond the limit have no socket (`None`) and cannot send requests.
    fn open_control(&mut self, rank: u32) -> rustix::io::Result<Option<OwnedFd>> {
        match self.controls.open(rank) {
            Err(Errno::MFILE | Errno::NFILE) if rank < self.job.first() => Ok(None),
            opened => under(CONTROL_FD, opened?.as_fd()).map(Some),
        }
    }

    /// Sends a signal to a running task. Returns false if it does not run.
    pub(crate) fn signal(&self, rank: u32, signal: i32) -> bool {
        if let Some(guest) = self.guests.get(&rank) {
            guest.signal(signal);
            return true;
        }
        let running = self.running.iter().find(|(_, task)| **task == rank);
        let signal = Signal::from_named_raw(signal);
        match (running, signal) {
            (Some((pid, _)), Some(signal)) => rustix::process::kill_process(*pid, signal).is_ok(),
            _ => false,
        }
    }

    /// Sends a message to a task of this host.
    pub(crate) fn send(&mut self, rank: u32, bytes: &[u8]) {
        if rank < self.job.tasks() {
            self.controls.send(rank, bytes);
            self.job.announce_news(rank);
        }
    }

    /// Reads the requests of this host's tasks that have arrived completely. Returns the tasks that have closed their
    /// sockets.
    pub(crate) fn read_requests(&mut self, asked: impl FnMut(u32, &[u8])) -> Vec<u32> {
        let ended = self.controls.read_requests(asked);
        // A task that has not read its messages reads them when it is woken.
        for rank in std::mem::take(&mut self.controls.written) {
            if rank < self.job.tasks() {
                self.job.announce_news(rank);
            }
        }
        ended
    }

    /// Handles the end of a child. Returns `None` if it was no task.
    pub(crate) fn ended(&mut self, pid: Pid, status: WaitStatus) -> Option<Ended> {
        let rank = self.running.remove(&pid)?;
        self.controls.close(rank);
        self.later_ended(rank);
        self.job.count_living(-1);
        let end = match status.terminating_signal() {
            Some(signal) => End::Signalled {
                signal,
                core: status.as_raw() & 0x80 != 0,
            },
            None => End::Exited(status.exit_status().unwrap_or_default()),
        };
        let state = self.job.state_at_end(rank);
        // A task that has left was known to be gone. Now it is also known that its process has ended.
        self.job.mark_dead(rank, end.cause());
        Some(Ended {
            rank,
            pid: pid.as_raw_nonzero().get() as u32,
            end,
            state,
        })
    }

    /// Enters into the table that a task of any host is gone, unless the table has that already: a new launcher repeats
    /// what an old one may have sent.
    pub(crate) fn note_gone(&self, rank: u32, cause: Option<Cause>) {
        let is_there = |state: TaskState| !matches!(state, TaskState::Dead | TaskState::Left);
        if rank >= self.job.tasks() || !is_there(self.job.state(rank)) {
            return;
        }
        match cause {
            Some(cause) => self.job.mark_dead(rank, cause),
            None => self.job.leave(rank),
        }
    }

    /// Returns the ranks that are still to be started on this host.
    pub(crate) fn unstarted(&self) -> Vec<u32> {
        let first = match self.stopped {
            true => &[],
            false => &self.here[self.next..],
        };
        first.iter().copied().chain(self.starting()).collect()
    }

    /// Returns the running ranks with their pids.
    pub(crate) fn processes(&self) -> Vec<(u32, u32)> {
        let numbered = |(pid, &rank): (&Pid, &u32)| (rank, pid.as_raw_nonzero().get() as u32);
        let guests = self.guests.iter().map(|(&rank, guest)| (rank, guest.pid));
        self.running.iter().map(numbered).chain(guests).collect()
    }

    /// Returns the running tasks that have closed their sockets. They read no more messages.
    pub(crate) fn silent(&self) -> Vec<u32> {
        let running = self.processes().into_iter().map(|(rank, _)| rank);
        running.filter(|rank| !self.controls.has(*rank)).collect()
    }

    /// Returns whether this process runs as the task with this number.
    pub(crate) fn runs(&self, rank: u32, pid: Pid) -> bool {
        self.running.get(&pid) == Some(&rank)
    }

    pub(crate) fn running_count(&self) -> u32 {
        self.running.len() as u32
    }

    /// Returns the running ranks, ascending.
    pub(crate) fn running(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> = self.running.values().copied().collect();
        ranks.sort_unstable();
        ranks
    }
}

/// Duplicates a descriptor to this number or one after it, or to any number if the limit of open files is lower.
fn under(number: i32, fd: BorrowedFd) -> rustix::io::Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(fd, number).or_else(|_| rustix::io::fcntl_dupfd_cloexec(fd, 3))
}

fn cannot_set_up(rank: u32, errno: rustix::io::Errno) -> Refusal {
    Refusal::new(
        STATUS_REFUSED,
        format!("task {rank} cannot be set up: {errno}"),
    )
}

/// Returns all children that have ended, and whether none is left.
pub(crate) fn reap() -> (Vec<(Pid, WaitStatus)>, bool) {
    let mut ended = Vec::new();
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(child)) => ended.push(child),
            Ok(None) => return (ended, false),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return (ended, true),
        }
    }
}

/// Returns the processes that tasks have left behind, for a sentence.
pub(crate) fn strays(others: &[Pid]) -> String {
    let names = tree::descendants(others)
        .iter()
        .map(|stray| format!("{} (pid {})", stray.name, stray.pid))
        .collect::<Vec<_>>();
    summary::few(&names)
}

/// Returns the processes that were killed and still exist, each with the reason, for a sentence.
pub(crate) fn unkillable(others: &[Pid]) -> String {
    let held = tree::descendants(others)
        .iter()
        .map(|it| format!("{} (pid {}, {})", it.name, it.pid, it.obstacle()))
        .collect::<Vec<_>>();
    summary::few(&held)
}

/// Returns the tasks on a host, given the hosts of all tasks.
pub(crate) fn ranks_on(host_of: &[u32], number: u32) -> Vec<u32> {
    let ranks = (0..).zip(host_of);
    ranks
        .filter(|(_, host)| **host == number)
        .map(|(rank, _)| rank)
        .collect()
}

fn image(recipe: &Recipe) -> Image {
    let arguments = std::iter::once(&recipe.name).chain(&recipe.arguments);
    image_of(&recipe.program, arguments, recipe.environment.iter())
}

/// Returns the image of a program with its arguments and environment, without a join token of another job.
pub(crate) fn image_of<'a>(
    program: &Path,
    arguments: impl Iterator<Item = &'a OsString>,
    environment: impl Iterator<Item = &'a (OsString, OsString)>,
) -> Image {
    let environment = environment
        .filter(|(name, _)| name != JoinToken::VARIABLE)
        .map(|(name, value)| {
            let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
            sys::c_string(&entry)
        });
    Image::new(
        sys::c_string(program.as_os_str().as_bytes()),
        arguments
            .map(|argument| sys::c_string(argument.as_bytes()))
            .collect::<Vec<CString>>(),
        environment.collect(),
    )
}

/// Sends a signal to all descendants of an agent.
pub(crate) fn signal_orphans(signal: Signal) {
    // The tasks of an agent are an orphaned process group, which the kernel does not stop by SIGTSTP, since nothing
    // could continue it. SIGSTOP does stop it.
    let signal = if signal == Signal::TSTP {
        Signal::STOP
    } else {
        signal
    };
    tree::signal_all(signal, &[]);
}
