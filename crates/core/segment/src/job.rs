//! A job on one host: the shared segment, the table of its tasks, and joining.
//!
//! The launcher (or a task started alone) makes the job with [`Job::create`]. Each task receives descriptor, rank and
//! size in one environment variable ([`JoinToken`]) and calls [`Job::join`]. The task table holds the states of all
//! tasks: the launcher records deaths there, and every task that waits checks the count of losses from time to time.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use regatta_memory::bell::{Bell, Fencing};
use regatta_memory::ends::Made;
use regatta_memory::list::List;
use regatta_memory::losses::Losses;
use regatta_memory::remote::Remote;
use regatta_memory::segment::{RESERVED_FRONT, Segment};
use regatta_memory::shared_barrier::SharedBarrier;
use regatta_memory::stack::Stack;
use regatta_memory::{Corrupt, LINE};

use crate::collective_buffer::{self, CollectiveBuffer};
use crate::free_collective_buffers::FreeCollectiveBuffers;
pub use crate::geometry::{Geometry, NARROW_PIPE, PIPE_SIZES};
pub use crate::job_error::JobError;
pub use crate::join_token::JoinToken;
use crate::ring_marks::Marks;
use crate::ring_memory::{ALIGN, RingMemory};
use crate::table::{
    ENDED, HEADER_AT, Header, MAGIC, MAY_END, NOTES_AT, SLOTS_AT, TaskEntry, table_end,
    world_buffer_at,
};
pub use regatta_wire::life::{Cause, TaskState};

/// Flag in a task's [`Job::blocked_on`] word: this wait is part of a detected cycle of blocked senders.
pub const IN_RING: u64 = 1 << 62;
/// Flag in a task's [`Job::blocked_on`] word: the message of this wait has been taken back, or its recall requested.
pub const ASKS: u64 = 1 << 61;
/// Flag in a task's [`Job::blocked_on`] word: this wait has ended.
pub const OVER: u64 = 1 << 63;

/// Version of the segment's contents and of the join protocol; launcher and library must have the same.
pub const VERSION: u32 = 22;

/// Maximum number of tasks that a job may ever have.
pub const MAX_TASKS: u32 = 1 << 16;

const MISFIT: Corrupt = Corrupt {
    what: "its header does not fit its number of tasks",
};

/// A job, as mapped by a launcher or a task.
#[derive(Debug)]
pub struct Job {
    segment: Segment,
    /// Number of tasks at the start.
    first: u32,
    capacity: u32,
    geometry: Geometry,
    /// Pointer into the segment. It is checked once when the job is opened, and read for every message.
    header: NonNull<Header>,
    slots: NonNull<TaskEntry>,
}

// SAFETY: the pointers lead into the segment that the job owns, to atomics only.
unsafe impl Send for Job {}
// SAFETY: all that is shared are atomics in the segment.
unsafe impl Sync for Job {}

/// Name of a job's memory among the mappings of a process.
pub const MEMORY_NAME: &str = "regatta-job";

/// Number of rings of each task for which memory is reserved in advance: those to its neighbours, or to its partners
/// in a tree.
const RINGS_AHEAD: u64 = 3;
/// Maximum number of bytes reserved in advance: about 0.2 ms of the launcher's time.
const MAX_AHEAD: u64 = 1 << 20;

impl Job {
    /// Makes the segment for a job of `tasks` tasks, all on this host.
    pub fn create(tasks: u32) -> Result<Job, JobError> {
        Job::create_part(tasks, tasks, MAX_TASKS)
    }

    /// Makes the segment for a job that begins with `tasks` tasks and may ever have at most `most`.
    pub fn create_for(tasks: u32, most: u32) -> Result<Job, JobError> {
        Job::create_part(tasks, tasks, most)
    }

    /// Makes this host's segment of a job that begins with `tasks` tasks, of which `here` run on this host.
    pub(crate) fn create_part(tasks: u32, here: u32, most: u32) -> Result<Job, JobError> {
        if tasks == 0 || tasks > MAX_TASKS || here > tasks {
            return Err(JobError::Tasks(tasks));
        }
        let capacity = most.clamp(tasks, MAX_TASKS);
        // Where file sizes or memory are limited, there may be no room for the larger table.
        Job::create_with(tasks, here, capacity).or_else(|error| match capacity > tasks {
            true => Job::create_with(tasks, here, tasks),
            false => Err(error),
        })
    }

    fn create_with(tasks: u32, here: u32, capacity: u32) -> Result<Job, JobError> {
        let geometry = Geometry::for_tasks(tasks);
        // Entries of the table that belong to no task yet are not backed by memory.
        let hole = table_end(tasks).next_multiple_of(4096)..table_end(capacity) / 4096 * 4096;
        let world_buffer = collective_buffer::footprint(tasks);
        let bytes = world_buffer_at(capacity) as usize + world_buffer + 4096;
        let segment =
            Segment::create_with_hole(MEMORY_NAME, bytes, hole).map_err(JobError::Memory)?;
        let reserve = |bytes, align| segment.allocate(bytes, align).map_err(JobError::Memory);
        let front = reserve(table_end(capacity) - RESERVED_FRONT, 64)?;
        let behind = reserve(world_buffer, 128)?;
        debug_assert_eq!((front, behind), (HEADER_AT, world_buffer_at(capacity)));
        let job = Job::over(segment, tasks, capacity, geometry)?;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let header = job.header();
        let set = |word: &AtomicU32, value| word.store(value, Ordering::Relaxed);
        set(&header.version, VERSION);
        set(&header.first, tasks);
        set(&header.capacity, capacity);
        set(&header.given, tasks);
        set(&header.living, here);
        set(&header.cores, cores);
        header.payers.begin(here > cores || !Fencing::available());
        set(&header.tasks_here, here);
        set(&header.lines, geometry.lines);
        set(&header.payload_buffer, geometry.payload_buffer);
        set(&header.pipe, geometry.pipe);
        set(&header.pipes, geometry.pipes);
        set(&header.wide, geometry.wide);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(job)
    }

    /// Reserves memory for the rings that the tasks open first. This happens while they start, so that the program's
    /// first messages do not wait for it.
    pub fn reserve_ahead(&self) {
        let here = self.header().tasks_here.load(Ordering::Relaxed) as u64;
        let rings = here * here.saturating_sub(1).min(RINGS_AHEAD);
        // Rings begin on pages, so the first may begin up to a page behind the end of the allocated memory.
        let ring = RingMemory::footprint(self.geometry()).next_multiple_of(ALIGN);
        let bytes = if rings > 0 {
            rings * ring as u64 + ALIGN as u64
        } else {
            0
        };
        self.segment.reserve_ahead(bytes.min(MAX_AHEAD));
    }

    /// Joins the job as the task that the token names. `fd` is the inherited descriptor of the segment.
    pub fn join(fd: OwnedFd, token: JoinToken) -> Result<Job, JobError> {
        let job = Job::open(fd)?;
        if job.first() != token.size {
            return Err(JobError::Corrupt(MISFIT));
        }
        if token.rank >= job.tasks() {
            return Err(JobError::JoinToken(
                "it names a task that the job does not have".into(),
            ));
        }
        job.take_place(token.rank)?;
        Ok(job)
    }

    /// Opens a job that another process has made, without joining it.
    pub fn open(fd: OwnedFd) -> Result<Job, JobError> {
        let segment = Segment::attach(fd).map_err(|e| JobError::JoinToken(e.to_string()))?;
        // SAFETY: `Header` consists of atomics only.
        let header: &Header = unsafe { segment.words(HEADER_AT) }?;
        let capacity = header.capacity.load(Ordering::Relaxed);
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(JobError::JoinToken(
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
            payload_buffer: get(&header.payload_buffer),
            pipe: get(&header.pipe),
            pipes: get(&header.pipes),
            wide: get(&header.wide),
        };
        let size = get(&header.first);
        let fits = size > 0
            && (size..=MAX_TASKS).contains(&capacity)
            && geometry == Geometry::for_tasks(size);
        if !fits {
            return Err(JobError::Corrupt(MISFIT));
        }
        Ok(Job::over(segment, size, capacity, geometry)?)
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

    /// Joins a job that this process has just created, as its only task.
    pub fn join_alone(&self) -> Result<(), JobError> {
        self.take_place(0)
    }

    /// Returns the segment's descriptor, which tasks inherit.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// Excludes the mapping from children that this process forks.
    pub fn keep_from_children(&self) {
        self.segment.keep_from_children();
    }

    /// Returns the shared memory.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Returns how many tasks the job has had so far: all smaller task numbers have been given. The count only grows.
    pub fn tasks(&self) -> u32 {
        let given = self.header().given.load(Ordering::Acquire);
        given.clamp(self.first, self.capacity)
    }

    /// Returns how many tasks the job began with.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Returns how many tasks the job may ever have.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns the number of cores on which the tasks may run, as the launcher determined it.
    pub fn cores(&self) -> u32 {
        self.header().cores.load(Ordering::Relaxed).max(1)
    }

    /// Sets the number of cores on which the job's tasks on this host may run together, if they differ from the cores
    /// of the process that made the job. Call it in that process before any task joins.
    pub fn set_cores(&self, cores: u32) {
        let header = self.header();
        let crowded = self.tasks_here() > cores;
        header.cores.store(cores.max(1), Ordering::Relaxed);
        header.payers.begin(crowded || !Fencing::available());
    }

    /// Sets the number of tasks on other hosts of the job that use the same cores. Call it in the process that made
    /// the job, before any task joins.
    pub fn set_neighbours(&self, tasks: u32) {
        let header = self.header();
        header.neighbours.store(tasks, Ordering::Relaxed);
        let crowded = self.is_crowded();
        header.payers.begin(crowded || !Fencing::available());
    }

    /// Returns how tasks of this job pay for the fences of bells. Valid as long as the job is mapped.
    pub fn fencing(&self) -> Fencing {
        // SAFETY: the callers keep the job mapped for as long as they use the result.
        unsafe { Fencing::of_job(&self.header().payers) }
    }

    /// Decides anew which side pays for the fences, as the host becomes crowded or ceases to be.
    pub(crate) fn settle_fences(&self) {
        let senders = self.is_crowded() || !Fencing::available();
        self.header().payers.change(senders);
    }

    /// Returns the sizes of rings and pipes.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Records which process will be this rank, before it joins.
    pub fn announce(&self, rank: u32, pid: u32) {
        self.slot(rank).pid.store(pid, Ordering::Release);
    }

    /// Returns the process of a task, or 0 if it is not known yet.
    pub fn pid(&self, rank: u32) -> u32 {
        self.slot(rank).pid.load(Ordering::Acquire)
    }

    /// Returns the state of a task.
    pub fn state(&self, rank: u32) -> TaskState {
        match self.slot(rank).state.load(Ordering::Acquire) {
            0 => TaskState::Expected,
            1 | MAY_END => TaskState::Joined,
            2 => TaskState::Left,
            _ => TaskState::Dead,
        }
    }

    /// Returns how a task's process ended. Returns `None` if it has not, or if that is not known.
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

    /// Sets whether the end of this task's process counts as leaving (true) or as a death (false). Until it ends, the
    /// task's state stays `Joined`.
    pub fn set_may_end(&self, rank: u32, may_end: bool) {
        let joined = TaskState::Joined as u32;
        let (from, to) = match may_end {
            true => (joined, MAY_END),
            false => (MAY_END, joined),
        };
        let state = &self.slot(rank).state;
        let _ = state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Returns the state of a task whose process has ended. A task that was allowed to end (`set_may_end`) is
    /// recorded as having left.
    pub fn state_at_end(&self, rank: u32) -> TaskState {
        if self.slot(rank).state.load(Ordering::Acquire) == MAY_END {
            self.leave(rank);
        }
        self.state(rank)
    }

    /// Records that this task leaves in good order.
    pub fn leave(&self, rank: u32) {
        self.lose(rank, TaskState::Left);
    }

    /// Records, in the launcher, that a task's process ended. If the task had not left, it becomes `Dead` and all
    /// tasks are notified. A task that had left stays `Left`; what changes is that its process is now known to have
    /// ended.
    pub fn mark_dead(&self, rank: u32, cause: Cause) {
        self.list_what_is_left(rank);
        let slot = self.slot(rank);
        let (kind, value) = match cause {
            Cause::Exited(status) => (1, status),
            Cause::Signalled(signal) => (2, signal),
            Cause::Lost => (3, 0),
        };
        slot.value.store(value as u32, Ordering::Relaxed);
        slot.cause.store(kind, Ordering::Release);
        if self.state_at_end(rank) != TaskState::Left {
            self.lose(rank, TaskState::Dead);
        }
    }

    /// For a process that watches a task without being its parent: records that the task's process ended, for an
    /// unknown cause.
    pub fn mark_ended(&self, rank: u32) {
        self.list_what_is_left(rank);
        // From now on other tasks may reuse its memory.
        let cause = &self.slot(rank).cause;
        let _ = cause.compare_exchange(0, ENDED, Ordering::Release, Ordering::Relaxed);
        if self.state_at_end(rank) != TaskState::Left {
            self.lose(rank, TaskState::Dead);
        }
    }

    fn lose(&self, rank: u32, state: TaskState) {
        self.slot(rank).state.store(state as u32, Ordering::Release);
        self.header().losses.0.add();
        // Wakes only sleeping tasks, so that many departures in a row wake each task once. `add` ended with a full
        // fence.
        for other in 0..self.tasks() {
            if other != rank && self.state(other) == TaskState::Joined {
                self.slot(other).bell.wake_if_asleep();
            }
        }
    }

    /// Returns the count of losses. It changes when a task dies or leaves; the states must then be read again.
    pub fn losses(&self) -> u32 {
        self.losses_seen_by_all().count()
    }

    /// Returns the count of losses in the segment, which all tasks read.
    pub fn losses_seen_by_all(&self) -> &Losses {
        &self.header().losses.0
    }

    /// Returns the list of rings opened towards a task that it has not noticed yet.
    #[inline(always)]
    pub fn opened_rings(&self, rank: u32) -> &List {
        &self.slot(rank).inlet.0.opened
    }

    /// Returns the marks that say which rings towards a task have been written to.
    #[inline(always)]
    pub fn marks(&self, rank: u32) -> &Marks {
        &self.slot(rank).inlet.0.marks
    }

    /// Returns the collective buffer of the first tasks' world.
    pub fn world_collective_buffer(&self) -> Result<CollectiveBuffer, Corrupt> {
        let at = world_buffer_at(self.capacity);
        CollectiveBuffer::at(&self.segment, at, self.first)
    }

    /// Returns a task's doorbell.
    #[inline(always)]
    pub fn bell(&self, rank: u32) -> &Bell {
        &self.slot(rank).bell
    }

    /// Returns the word that names the receiver to which a task is blocked sending; see the process's
    /// `deadlock_detector`.
    pub fn blocked_on(&self, rank: u32) -> &AtomicU64 {
        &self.slot(rank).shown.0.on
    }

    /// Returns the word with the successor of a task in the cycle of blocked senders that was detected last, plus 1.
    pub fn ring_next(&self, rank: u32) -> &AtomicU32 {
        &self.slot(rank).shown.0.ring_next
    }

    /// Records a detected cycle of blocked senders: for each member, the member that it waits for.
    pub fn write_down_ring(&self, members: &[u32]) {
        for (at, &member) in members.iter().enumerate() {
            let next = members[(at + 1) % members.len()];
            self.ring_next(member).store(next + 1, Ordering::SeqCst);
        }
    }

    /// Notifies a member that its wait is part of a cycle, unless its word has changed from `word`. Returns whether
    /// it was notified.
    pub fn notify_in_ring(&self, member: u32, word: u64) -> bool {
        let on = self.blocked_on(member);
        let told = on.compare_exchange(word, word | IN_RING, Ordering::SeqCst, Ordering::SeqCst);
        told.is_ok()
    }

    /// Returns the count of the times a blocked task has looked for something that could proceed and found nothing.
    pub fn vain_looks(&self, rank: u32) -> &AtomicU32 {
        &self.slot(rank).shown.0.looks
    }

    /// Returns the free pipes of each size.
    pub(crate) fn free_pipes(&self) -> &[Stack; PIPE_SIZES] {
        &self.header().pool.0
    }

    /// Returns all pipes of each size.
    pub(crate) fn pipes(&self) -> &[List; PIPE_SIZES] {
        &self.header().pipes_made.0
    }

    /// Returns the rings of this host. Each begins with its ends.
    pub(crate) fn rings(&self) -> Made<'_> {
        Made {
            segment: &self.segment,
            list: &self.header().rings.0,
            ends_at: 0,
        }
    }

    /// Returns the list of all blocks for loans.
    pub fn blocks(&self) -> &List {
        &self.header().loans.0
    }

    /// Returns whether the task's process has ended.
    fn has_ended(&self, rank: u32) -> bool {
        self.slot(rank).cause.load(Ordering::Acquire) != 0
    }

    /// Returns whether this task will never again access memory of the job.
    pub fn is_gone(&self, rank: u32) -> bool {
        rank >= self.tasks() || self.state(rank) == TaskState::Left || self.has_ended(rank)
    }

    /// Returns the access to collective buffers that groups have left.
    pub fn free_collective_buffers(&self) -> FreeCollectiveBuffers<'_> {
        FreeCollectiveBuffers {
            segment: &self.segment,
            buffers: &self.header().collective_buffers.0,
        }
    }

    /// Allocates a shared barrier of this many members, and returns its name.
    pub fn new_shared_barrier(&self, members: u32) -> io::Result<u64> {
        self.segment
            .allocate(SharedBarrier::footprint(members), LINE)
    }

    /// Returns the shared barrier of this name.
    pub fn shared_barrier(&self, name: u64, members: u32) -> Result<SharedBarrier<'_>, Corrupt> {
        SharedBarrier::at(&self.segment, name, members)
    }

    /// Records the address of a task's probe word ([`Job::word`]) in the memory of its process.
    pub fn set_probe(&self, rank: u32, address: u64) {
        self.slot(rank).probe.store(address, Ordering::Release);
    }

    /// Returns access to the memory of a task's process.
    pub fn remote(&self, rank: u32) -> Remote {
        Remote {
            pid: self.pid(rank),
            address: self.slot(rank).probe.load(Ordering::Acquire),
            word: self.word(rank),
        }
    }

    /// Returns the value of a task's probe word. It is computed from the segment's inode, which no other job on this
    /// machine has, and the task's rank.
    pub fn word(&self, rank: u32) -> u64 {
        let inode = rustix::fs::fstat(self.segment.fd()).map_or(0, |file| file.st_ino);
        MAGIC ^ inode ^ u64::from(rank + 1) << 40
    }

    /// Makes a job of an attached segment, after it has checked that header and table lie inside.
    fn over(
        segment: Segment,
        first: u32,
        capacity: u32,
        geometry: Geometry,
    ) -> Result<Job, Corrupt> {
        let header = segment.at(HEADER_AT, size_of::<Header>())?.cast();
        segment.keep_front_from_dumps(SLOTS_AT as usize);
        segment.keep_notes(NOTES_AT, size_of::<TaskEntry>() as u64, capacity);
        let slots = segment.at(SLOTS_AT, capacity as usize * size_of::<TaskEntry>())?;
        Ok(Job {
            segment,
            first,
            capacity,
            geometry,
            header,
            slots: slots.cast(),
        })
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the header is inside the segment, aligned (see the assertions below), and consists of atomics only.
        unsafe { self.header.as_ref() }
    }

    /// Returns a task's entry in the table. Panics if `rank` is not below the capacity: callers check it.
    #[inline(always)]
    pub(crate) fn slot(&self, rank: u32) -> &TaskEntry {
        assert!(rank < self.capacity);
        // SAFETY: the entry is inside the table, whose extent was checked; it is aligned and consists of atomics
        // only.
        unsafe { self.slots.add(rank as usize).as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_for_the_first_rings_is_there_before_they_are_opened() {
        for tasks in [2, 3, 20] {
            let job = Job::create(tasks).unwrap();
            job.reserve_ahead();
            let size = || rustix::fs::fstat(job.fd()).unwrap().st_size;
            let reserved = size();
            for me in 0..2 {
                RingMemory::open(&job, me, 1 - me, &mut 0).unwrap();
            }
            assert_eq!(size(), reserved, "{tasks} tasks");
        }
    }

    #[test]
    fn a_rank_can_be_joined_once() {
        let job = Job::create(2).unwrap();
        let fd = || job.fd().try_clone_to_owned().unwrap();
        let token = |rank| JoinToken::handed(rank, 2);
        assert_eq!(job.state(1), TaskState::Expected);
        let task = Job::join(fd(), token(1)).unwrap();
        assert_eq!(job.state(1), TaskState::Joined);
        assert_eq!(job.pid(1), std::process::id());
        assert!(matches!(
            Job::join(fd(), token(1)),
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
    fn a_task_that_may_end_is_there_until_it_ends_and_has_left_then() {
        let job = Job::create(2).unwrap();
        let fd = || job.fd().try_clone_to_owned().unwrap();
        for rank in 0..2 {
            Job::join(fd(), JoinToken::handed(rank, 2)).unwrap();
            job.set_may_end(rank, true);
            assert_eq!(job.state(rank), TaskState::Joined);
        }
        let before = job.losses();
        job.mark_dead(0, Cause::Exited(0));
        assert_eq!(job.state(0), TaskState::Left);
        assert_eq!(job.losses(), before + 1);
        job.set_may_end(1, false);
        assert_eq!(job.state_at_end(1), TaskState::Joined);
        job.mark_dead(1, Cause::Exited(0));
        job.set_may_end(1, true);
        assert_eq!(job.state(1), TaskState::Dead);
    }

    #[test]
    fn a_task_that_has_ended_touches_no_memory_whoever_watched_it() {
        let job = Job::create(4).unwrap();
        job.mark_ended(0);
        job.mark_dead(1, Cause::Lost);
        job.leave(2);
        assert_eq!(
            [0, 1, 2, 3].map(|rank| job.is_gone(rank)),
            [true, true, true, false]
        );
        assert_eq!((job.state(0), job.cause(0)), (TaskState::Dead, None));
        job.mark_dead(0, Cause::Exited(1));
        assert_eq!(job.cause(0), Some(Cause::Exited(1)));
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let segment = Segment::create("other", 8192).unwrap();
        let fd = segment.fd().try_clone_to_owned().unwrap();
        let token = JoinToken::handed(0, 1);
        assert!(matches!(Job::join(fd, token), Err(JobError::JoinToken(_))));
    }

    #[test]
    fn room_for_tasks_to_come_costs_no_memory() {
        let blocks = |job: &Job| rustix::fs::fstat(job.fd()).unwrap().st_blocks;
        let (few, many) = (Job::create_for(1, 1).unwrap(), Job::create(1).unwrap());
        assert!(many.capacity() == MAX_TASKS && few.capacity() == 1);
        assert!(blocks(&many) <= blocks(&few) + 2 * 4096 / 512);
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(matches!(Job::create(0), Err(JobError::Tasks(0))));
        assert!(matches!(Job::create(u32::MAX), Err(JobError::Tasks(_))));
    }
}
