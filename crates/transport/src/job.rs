//! A job on one host: the shared segment, the table of its tasks, and the invitation to join.
//!
//! The launcher (or a task started alone) makes the job with [`Job::create`]; each task is told
//! descriptor, rank and size in one environment variable ([`Invitation`]) and calls [`Job::join`].
//! The task table is the one place where everybody sees who is there: the launcher writes who has
//! died, and every task that waits looks at the count of deaths now and then.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use regatta_memory::Corrupt;
use regatta_memory::bell::{Bell, Fencing};
use regatta_memory::segment::{RESERVED_FRONT, Segment};

use crate::halls::{Halls, SIZES};
use crate::meeting;

/// Version of everything in the segment; launcher and library must agree.
pub const VERSION: u32 = 2;
const MAGIC: u64 = u64::from_le_bytes(*b"regatta\x01");
/// More tasks than this on one host are refused.
pub const MOST_TASKS: u32 = 1 << 16;

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Not joined yet.
    Expected,
    /// Between init and finalize.
    Joined,
    /// Left in good order.
    Left,
    /// Ended without leaving.
    Dead,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// With an exit status.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// With its host: nobody can tell how.
    Lost,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Exited(status) => write!(f, "exited with status {status} without leaving"),
            Cause::Signalled(signal) => write!(f, "was killed by signal {signal}"),
            Cause::Lost => write!(f, "was on a host that was lost"),
        }
    }
}

/// Sizes that depend on how many tasks share the segment. Rings are opened when a pair first
/// talks; these sizes keep a job in which everybody talks to everybody affordable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Lines per ring.
    pub lines: u32,
    /// Bytes per bay.
    pub bay: u32,
    /// Data bytes per pipe.
    pub pipe: u32,
    /// Unmatched large messages a task may have in pipes of its own.
    pub pipes: u32,
}

impl Geometry {
    /// The sizes for a job of `tasks`.
    pub fn for_tasks(tasks: u32) -> Geometry {
        let (lines, bay, pipe, pipes) = match tasks {
            0..=8 => (256, 64 << 10, 256 << 10, 16),
            9..=64 => (64, 32 << 10, 128 << 10, 4),
            65..=512 => (32, 8 << 10, 64 << 10, 2),
            _ => (16, 4 << 10, 64 << 10, 1),
        };
        Geometry {
            lines,
            bay,
            pipe,
            pipes,
        }
    }
}

/// The job's words, at the front of the segment.
#[repr(C, align(64))]
pub(crate) struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    tasks: AtomicU32,
    cores: AtomicU32,
    fenced: AtomicU32,
    lines: AtomicU32,
    bay: AtomicU32,
    pipe: AtomicU32,
    pipes: AtomicU32,
    /// Which of the job's hosts this is, and how many tasks run on it.
    pub(crate) here: AtomicU32,
    pub(crate) tasks_here: AtomicU32,
    /// What the job's tasks prove to each other between hosts; see `place`.
    pub(crate) trusted: AtomicU32,
    pub(crate) key: [AtomicU64; 4],
    /// Head of the stack of free pipes.
    pool: Line<AtomicU64>,
    /// Heads of the stacks of halls that have been left; see `halls`.
    halls: Line<[AtomicU64; SIZES]>,
    /// Deaths and departures so far.
    losses: Line<AtomicU32>,
}

#[repr(C, align(64))]
pub(crate) struct Line<T>(pub(crate) T);

/// Where a task is; written before any task of the job starts.
#[repr(C)]
pub(crate) struct PlaceWords {
    pub(crate) host: AtomicU32,
    /// 0: it has no address.
    pub(crate) port: AtomicU32,
    /// As IPv6; IPv4 mapped into it.
    pub(crate) address: [AtomicU64; 2],
}

/// What a blocked sender shows.
#[repr(C)]
struct Blocked {
    on: AtomicU64,
    /// In the ring found last: next member + 1.
    ring_next: AtomicU32,
    /// How often it has looked around since, in vain.
    looks: AtomicU32,
}

/// A task's words. Zero is a valid start.
#[repr(C, align(64))]
pub(crate) struct Slot {
    state: AtomicU32,
    pid: AtomicU32,
    /// 0 none, 1 exited, 2 signalled, 3 lost with its host.
    cause: AtomicU32,
    value: AtomicU32,
    /// An address whose first byte others may try to read: the probe of the single copy.
    probe: AtomicU64,
    pub(crate) place: PlaceWords,
    /// Whom the task is blocked sending to; zero: not blocked.
    blocked_on: Line<Blocked>,
    pub(crate) bell: Bell,
    /// Stack of rings opened towards this task and not yet noticed: offset of the newest.
    pub(crate) opened: Line<AtomicU64>,
}

const HEADER_AT: u64 = RESERVED_FRONT as u64;
const SLOTS_AT: u64 = HEADER_AT + size_of::<Header>() as u64;

/// Why a job could not be made or joined.
#[derive(Debug)]
pub enum JobError {
    /// The number of tasks makes no sense.
    Tasks(u32),
    /// The operating system refused memory.
    Memory(io::Error),
    /// The invitation cannot be read.
    Invitation(String),
    /// Launcher and library are of different versions.
    Version {
        /// What the launcher speaks.
        launcher: u32,
    },
    /// This rank has been taken already, by that process.
    Taken {
        /// The rank.
        rank: u32,
        /// Who has it.
        pid: u32,
    },
    /// The segment holds nonsense.
    Corrupt(Corrupt),
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Tasks(tasks) => write!(
                f,
                "a job of {tasks} tasks cannot be made; a host holds 1 to {MOST_TASKS}"
            ),
            JobError::Memory(error) => write!(
                f,
                "shared memory could not be reserved: {error}. Start fewer tasks, or raise the \
                 memory limit"
            ),
            JobError::Invitation(what) => write!(
                f,
                "the launcher's invitation (REGATTA_JOB) is of no use: {what}. Was the program \
                 started in a way that closes inherited files? Start it by `regatta run`"
            ),
            JobError::Version { launcher } => write!(
                f,
                "the launcher speaks version {launcher} of the job protocol and this library \
                 version {VERSION}; install both from the same release of Regatta"
            ),
            JobError::Taken { rank, pid } => write!(
                f,
                "rank {rank} of this job already belongs to process {pid}; a task's child cannot \
                 join as well"
            ),
            JobError::Corrupt(corrupt) => write!(
                f,
                "the job's shared memory is damaged: {}. Start the job again",
                corrupt.what
            ),
        }
    }
}

impl std::error::Error for JobError {}

impl From<Corrupt> for JobError {
    fn from(corrupt: Corrupt) -> Self {
        JobError::Corrupt(corrupt)
    }
}

/// What a task is told by its launcher, in the environment variable [`Invitation::VARIABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Version of the launcher.
    pub version: u32,
    /// Number of the inherited descriptor of the segment.
    pub fd: i32,
    /// The task's rank.
    pub rank: u32,
    /// Tasks in the job.
    pub size: u32,
    /// Number of the inherited listening socket, in a job of several hosts.
    pub listener: Option<i32>,
}

impl Invitation {
    /// Where the launcher puts it.
    pub const VARIABLE: &'static str = "REGATTA_JOB";

    /// Read what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Result<Invitation, JobError> {
        let bad = || {
            JobError::Invitation(format!(
                "{text:?} is not of the form v:fd:rank:size or v:fd:rank:size:listener"
            ))
        };
        let mut parts = text.split(':');
        let mut number = || -> Result<u32, JobError> {
            parts
                .next()
                .and_then(|part| part.parse().ok())
                .ok_or_else(bad)
        };
        let version = number()?;
        if version != VERSION {
            return Err(JobError::Version { launcher: version });
        }
        let invitation = Invitation {
            version,
            fd: number()?.try_into().map_err(|_| bad())?,
            rank: number()?,
            size: number()?,
            listener: None,
        };
        let listener = match parts.next() {
            Some(part) => Some(
                part.parse::<u32>()
                    .ok()
                    .and_then(|n| n.try_into().ok())
                    .ok_or_else(bad)?,
            ),
            None => None,
        };
        if parts.next().is_some() || invitation.rank >= invitation.size {
            return Err(bad());
        }
        Ok(Invitation {
            listener,
            ..invitation
        })
    }
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Invitation {
            version,
            fd,
            rank,
            size,
            listener,
        } = self;
        write!(f, "{version}:{fd}:{rank}:{size}")?;
        listener.map_or(Ok(()), |listener| write!(f, ":{listener}"))
    }
}

/// The job, as launcher or task sees it.
#[derive(Debug)]
pub struct Job {
    segment: Segment,
    tasks: u32,
    geometry: Geometry,
    /// In the segment; checked once, looked at for every message.
    header: NonNull<Header>,
    slots: NonNull<Slot>,
}

// SAFETY: the pointers are into the segment the job owns, and lead to atomics only.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    /// Make the segment for `tasks` tasks, all on this host.
    pub fn create(tasks: u32) -> Result<Job, JobError> {
        Job::create_part(tasks, tasks)
    }

    /// Make this host's segment of a job of `tasks` tasks, of which `here` run on this host.
    pub(crate) fn create_part(tasks: u32, here: u32) -> Result<Job, JobError> {
        if tasks == 0 || tasks > MOST_TASKS || here > tasks {
            return Err(JobError::Tasks(tasks));
        }
        let geometry = Geometry::for_tasks(tasks);
        let table = SLOTS_AT as usize + tasks as usize * size_of::<Slot>();
        let meeting = meeting::footprint(tasks);
        let first = table + meeting + 4096;
        let segment = Segment::create("regatta-job", first).map_err(JobError::Memory)?;
        let reserve = |bytes, align| segment.allocate(bytes, align).map_err(JobError::Memory);
        let front = reserve(table - RESERVED_FRONT, 64)?;
        let hall = reserve(meeting, 128)?;
        debug_assert_eq!((front, hall), (HEADER_AT, meeting_at(tasks)));
        let job = Job::over(segment, tasks, geometry)?;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let header = job.header();
        let set = |word: &AtomicU32, value| word.store(value, Ordering::Relaxed);
        set(&header.version, VERSION);
        set(&header.tasks, tasks);
        set(&header.cores, cores);
        set(
            &header.fenced,
            (here > cores || !Fencing::available()) as u32,
        );
        set(&header.tasks_here, here);
        set(&header.lines, geometry.lines);
        set(&header.bay, geometry.bay);
        set(&header.pipe, geometry.pipe);
        set(&header.pipes, geometry.pipes);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(job)
    }

    /// Take the place an invitation names. `fd` is the inherited descriptor.
    pub fn join(fd: OwnedFd, invitation: Invitation) -> Result<Job, JobError> {
        let segment = Segment::attach(fd).map_err(|e| JobError::Invitation(e.to_string()))?;
        let mut job = Job::over(segment, invitation.size, Geometry::for_tasks(1))?;
        let header = job.header();
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(JobError::Invitation(
                "it names a file of another kind".into(),
            ));
        }
        let launcher = header.version.load(Ordering::Relaxed);
        if launcher != VERSION {
            return Err(JobError::Version { launcher });
        }
        let get = |word: &AtomicU32| word.load(Ordering::Relaxed);
        let geometry = Geometry {
            lines: get(&header.lines),
            bay: get(&header.bay),
            pipe: get(&header.pipe),
            pipes: get(&header.pipes),
        };
        if get(&header.tasks) != invitation.size || geometry != Geometry::for_tasks(invitation.size)
        {
            return Err(JobError::Corrupt(Corrupt {
                what: "its header does not fit its number of tasks",
            }));
        }
        job.geometry = geometry;
        job.take_place(invitation.rank)?;
        Ok(job)
    }

    fn take_place(&self, rank: u32) -> Result<(), JobError> {
        let slot = self.slot(rank);
        let joined = slot.state.compare_exchange(
            TaskState::Expected as u32,
            TaskState::Joined as u32,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if joined.is_err() {
            let pid = slot.pid.load(Ordering::Relaxed);
            return Err(JobError::Taken { rank, pid });
        }
        slot.pid.store(std::process::id(), Ordering::Release);
        Ok(())
    }

    /// Become the only task of a job just created.
    pub fn join_alone(&self) -> Result<(), JobError> {
        self.take_place(0)
    }

    /// The segment's descriptor, to hand to tasks.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// Children this process forks do not get the mapping.
    pub fn keep_from_children(&self) {
        self.segment.keep_from_children();
    }

    /// The memory.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// Cores the tasks may run on, as the launcher saw them.
    pub fn cores(&self) -> u32 {
        self.header().cores.load(Ordering::Relaxed).max(1)
    }

    /// Whoever makes the job, before any task joins: its tasks on this host may run on so many cores between them, not on
    /// those that its maker may use.
    pub fn set_cores(&self, cores: u32) {
        let header = self.header();
        let crowded = self.tasks_here() > cores;
        header.cores.store(cores.max(1), Ordering::Relaxed);
        let fenced = crowded || !Fencing::available();
        header.fenced.store(fenced as u32, Ordering::Relaxed);
    }

    /// Must senders run a fence before they look at a bell?
    pub fn fenced(&self) -> bool {
        self.header().fenced.load(Ordering::Relaxed) != 0
    }

    /// Sizes of rings and pipes.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Say which process will be this rank, before it joins.
    pub fn announce(&self, rank: u32, pid: u32) {
        self.slot(rank).pid.store(pid, Ordering::Release);
    }

    /// The process of a task; 0 before it is known.
    pub fn pid(&self, rank: u32) -> u32 {
        self.slot(rank).pid.load(Ordering::Acquire)
    }

    /// Where a task is in its life.
    pub fn state(&self, rank: u32) -> TaskState {
        match self.slot(rank).state.load(Ordering::Acquire) {
            0 => TaskState::Expected,
            1 => TaskState::Joined,
            2 => TaskState::Left,
            _ => TaskState::Dead,
        }
    }

    /// How a dead task ended, if that is known.
    pub fn cause(&self, rank: u32) -> Option<Cause> {
        let slot = self.slot(rank);
        let value = slot.value.load(Ordering::Relaxed) as i32;
        match slot.cause.load(Ordering::Acquire) {
            1 => Some(Cause::Exited(value)),
            2 => Some(Cause::Signalled(value)),
            3 => Some(Cause::Lost),
            _ => None,
        }
    }

    /// This task leaves in good order.
    pub fn leave(&self, rank: u32) {
        self.lose(rank, TaskState::Left);
    }

    /// Launcher: a task's process ended. If it had not left, it is dead and everybody hears of
    /// it; a task that had left stays `Left`.
    pub fn mark_dead(&self, rank: u32, cause: Cause) {
        let slot = self.slot(rank);
        if self.state(rank) == TaskState::Left {
            return;
        }
        let (kind, value) = match cause {
            Cause::Exited(status) => (1, status),
            Cause::Signalled(signal) => (2, signal),
            Cause::Lost => (3, 0),
        };
        slot.value.store(value as u32, Ordering::Relaxed);
        slot.cause.store(kind, Ordering::Release);
        self.lose(rank, TaskState::Dead);
    }

    /// Whoever watches a task without being its parent: it ended without leaving, nobody here knows how.
    pub fn mark_ended(&self, rank: u32) {
        if self.state(rank) != TaskState::Left {
            self.lose(rank, TaskState::Dead);
        }
    }

    fn lose(&self, rank: u32, state: TaskState) {
        self.slot(rank).state.store(state as u32, Ordering::Release);
        self.header().losses.0.fetch_add(1, Ordering::SeqCst);
        for other in 0..self.tasks {
            if other != rank && self.state(other) == TaskState::Joined {
                self.slot(other).bell.wake();
            }
        }
    }

    /// Changes when a task dies or leaves: look at the states again.
    pub fn losses(&self) -> u32 {
        self.losses_word().load(Ordering::Relaxed)
    }

    pub(crate) fn losses_word(&self) -> &AtomicU32 {
        &self.header().losses.0
    }

    /// A task's doorbell.
    pub fn bell(&self, rank: u32) -> &Bell {
        &self.slot(rank).bell
    }

    /// Whom a task is blocked sending to; see the process's `cycle`.
    pub fn blocked_on(&self, rank: u32) -> &AtomicU64 {
        &self.slot(rank).blocked_on.0.on
    }

    /// The member after a task in the ring of blocked senders that was found last, plus 1.
    pub fn ring_next(&self, rank: u32) -> &AtomicU32 {
        &self.slot(rank).blocked_on.0.ring_next
    }

    /// How often a blocked task has looked around and found nothing that could move.
    pub fn vain_looks(&self, rank: u32) -> &AtomicU32 {
        &self.slot(rank).blocked_on.0.looks
    }

    pub(crate) fn pool_head(&self) -> &AtomicU64 {
        &self.header().pool.0
    }

    pub(crate) fn halls(&self) -> Halls<'_> {
        Halls {
            segment: &self.segment,
            heads: &self.header().halls.0,
        }
    }

    pub(crate) fn set_probe(&self, rank: u32, address: u64) {
        self.slot(rank).probe.store(address, Ordering::Release);
    }

    pub(crate) fn probe(&self, rank: u32) -> u64 {
        self.slot(rank).probe.load(Ordering::Acquire)
    }

    /// Checks that header and table lie inside the segment.
    fn over(segment: Segment, tasks: u32, geometry: Geometry) -> Result<Job, Corrupt> {
        let header = segment.at(HEADER_AT, size_of::<Header>())?.cast();
        let slots = segment.at(SLOTS_AT, tasks as usize * size_of::<Slot>())?;
        Ok(Job {
            segment,
            tasks,
            geometry,
            header,
            slots: slots.cast(),
        })
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: inside the segment, aligned (see the assertions below), atomics only.
        unsafe { self.header.as_ref() }
    }

    /// The words of a task. Panics when `rank` is no rank: callers check.
    #[inline(always)]
    pub(crate) fn slot(&self, rank: u32) -> &Slot {
        assert!(rank < self.tasks);
        // SAFETY: inside the table, whose extent was checked; aligned; atomics only.
        unsafe { self.slots.add(rank as usize).as_ref() }
    }
}

const _: () = assert!(HEADER_AT.is_multiple_of(align_of::<Header>() as u64));
const _: () = assert!(SLOTS_AT.is_multiple_of(align_of::<Slot>() as u64));

/// Offset of the world's meeting hall in a job of `tasks`.
pub(crate) fn meeting_at(tasks: u32) -> u64 {
    (SLOTS_AT + tasks as u64 * size_of::<Slot>() as u64).next_multiple_of(128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invitations_round_trip_and_nonsense_is_named() {
        let invitation = Invitation {
            version: VERSION,
            fd: 17,
            rank: 3,
            size: 4,
            listener: None,
        };
        assert_eq!(
            Invitation::parse(&invitation.to_string()).unwrap(),
            invitation
        );
        let listening = Invitation {
            listener: Some(9),
            ..invitation
        };
        assert_eq!(
            Invitation::parse(&listening.to_string()).unwrap(),
            listening
        );
        for bad in [
            "",
            "2",
            "2:2:3",
            "2:x:0:1",
            "2:3:4:4",
            "2:3:0:1:9:9",
            "2:3:0:1:x",
            "2:-3:0:1",
        ] {
            let error = Invitation::parse(bad).unwrap_err().to_string();
            assert!(error.contains("REGATTA_JOB"), "{error}");
        }
        let error = Invitation::parse("99:3:0:1").unwrap_err().to_string();
        assert!(
            error.contains("version 99") && error.contains("version 2"),
            "{error}"
        );
    }

    #[test]
    fn a_rank_can_be_joined_once() {
        let job = Job::create(2).unwrap();
        let fd = || job.fd().try_clone_to_owned().unwrap();
        let invitation = |rank| Invitation {
            version: VERSION,
            fd: 0,
            rank,
            size: 2,
            listener: None,
        };
        assert_eq!(job.state(1), TaskState::Expected);
        let task = Job::join(fd(), invitation(1)).unwrap();
        assert_eq!(job.state(1), TaskState::Joined);
        assert_eq!(job.pid(1), std::process::id());
        assert!(matches!(
            Job::join(fd(), invitation(1)),
            Err(JobError::Taken { rank: 1, .. })
        ));
        let before = job.losses();
        task.leave(1);
        job.mark_dead(1, Cause::Exited(0));
        assert_eq!(job.state(1), TaskState::Left);
        job.mark_dead(0, Cause::Signalled(9));
        assert_eq!(job.state(0), TaskState::Dead);
        assert_eq!(task.cause(0), Some(Cause::Signalled(9)));
        assert_eq!(task.losses(), before + 2);
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let segment = Segment::create("other", 8192).unwrap();
        let fd = segment.fd().try_clone_to_owned().unwrap();
        let invitation = Invitation {
            version: VERSION,
            fd: 0,
            rank: 0,
            size: 1,
            listener: None,
        };
        assert!(matches!(
            Job::join(fd, invitation),
            Err(JobError::Invitation(_))
        ));
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(matches!(Job::create(0), Err(JobError::Tasks(0))));
        assert!(matches!(Job::create(u32::MAX), Err(JobError::Tasks(_))));
    }
}
