//! The tasks of one node: their arrival, and the watch over each to its end.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use regatta_connection::{local_socket, ready};
use regatta_foreign::Step;
use regatta_segment::job::{Cause, Job, TaskState};
use regatta_wire::guardian::{self, Answer, Hello, Record};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, SocketFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;

use crate::mesh::{BEAT_INTERVAL, Mesh, News};
use crate::{OURS, Refusal, meet};

/// A task that has sent its hello.
struct Task {
    rank: u32,
    pid: u32,
    /// Readable when the process has ended.
    process: OwnedFd,
    /// Closed by the other end when the task has left.
    line: Option<OwnedFd>,
    /// Whether the other nodes know that it has left or ended.
    told: bool,
}

/// Serves the tasks that send a hello to `listener`, until the last of them has ended. `maker` is the task that has
/// started this process.
pub(crate) fn serve(listener: OwnedFd, maker: u32, step: &Step, patience: Duration) {
    let maker =
        Pid::from_raw(maker as i32).and_then(|maker| pidfd_open(maker, PidfdFlags::empty()).ok());
    let until = Instant::now() + patience;
    let mut tasks = Vec::new();
    let gathered = gather(&listener, step, &mut tasks, patience, until);
    let founded = Arc::new(AtomicBool::new(false));
    let watched = end_with(maker, &tasks, founded.clone()).map_err(|error| {
        Refusal::new(format!(
            "the guardian of the tasks on this node cannot start a thread ({error}); end processes, or raise the limit of processes (ulimit -u, or pids.max of the control group)"
        ))
    });
    if let Err(refusal) = gathered.and(watched) {
        return refuse(&listener, step, &tasks, &refusal, until);
    }
    // From now on a later job in the same step may create another node socket.
    drop(listener);
    let found = found(step, &mut tasks, until);
    founded.store(true, Ordering::Relaxed);
    match found {
        Ok((job, mesh)) => watch(&job, tasks, mesh),
        Err(refusal) => tasks.iter().for_each(|task| send_refusal(task, &refusal)),
    }
}

/// Ends this process if all known tasks end before there is a job, as no task is left to use it. The task that started
/// this process is known from the beginning.
fn end_with(
    maker: Option<OwnedFd>,
    tasks: &[Task],
    founded: Arc<AtomicBool>,
) -> std::io::Result<()> {
    let processes: Vec<OwnedFd> = tasks
        .iter()
        .filter_map(|task| task.process.try_clone().ok())
        .chain(maker)
        .collect();
    std::thread::Builder::new().spawn(move || {
        for process in processes {
            ready(std::iter::once(process.as_fd()), None);
        }
        if !founded.load(Ordering::Relaxed) {
            std::process::exit(1);
        }
    })?;
    Ok(())
}

/// Pause before the next accept after there was no free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of this user's processes that connect and send nothing; beyond that the oldest one is dropped.
const MAX_SILENT_CALLERS: usize = 64;

/// Waits until all tasks of this node have sent their hello.
fn gather(
    listener: &OwnedFd,
    step: &Step,
    tasks: &mut Vec<Task>,
    patience: Duration,
    until: Instant,
) -> Result<(), Refusal> {
    let mut callers: Vec<OwnedFd> = Vec::new();
    while tasks.len() < step.here.len() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Refusal::new(missing(step, tasks, patience)));
        }
        let fds = std::iter::once(listener.as_fd())
            .chain(callers.iter().map(AsFd::as_fd))
            .chain(tasks.iter().flat_map(|task| &task.line).map(AsFd::as_fd));
        let ready = ready(fds, Some(left));
        let (called, lines) = ready[1..].split_at(callers.len());
        if let Some(at) = lines.iter().position(|&ready| ready) {
            return Err(ended_early(step, tasks[at].rank, tasks[at].pid));
        }
        let mut called = called.iter();
        let (speaking, silent): (Vec<_>, Vec<_>) = callers
            .drain(..)
            .partition(|_| called.next().copied().unwrap_or_default());
        callers = silent;
        for line in speaking {
            tasks.extend(read_hello(line, step, tasks)?);
        }
        if ready[0] {
            let accept = || rustix::net::accept_with(listener, SocketFlags::CLOEXEC);
            let caller = rustix::io::retry_on_intr(accept);
            if caller.is_err() {
                give_way(&mut callers);
                continue;
            }
            // Anybody on this node can connect, and would occupy descriptors.
            let ours = caller
                .ok()
                .filter(|caller| local_socket::check_user(caller).is_ok());
            if ours.is_some() && callers.len() >= step.here.len() + MAX_SILENT_CALLERS {
                callers.remove(0);
            }
            callers.extend(ours);
        }
    }
    // A task may have ended since its line was polled, for example the last one.
    let lines = tasks.iter().flat_map(|task| &task.line).map(AsFd::as_fd);
    let ready = ready(lines, Some(Duration::ZERO));
    match ready.iter().position(|&ready| ready) {
        Some(at) => Err(ended_early(step, tasks[at].rank, tasks[at].pid)),
        None => Ok(()),
    }
}

/// Frees a descriptor for another caller: drops the oldest one or, if there is none, waits for a while.
fn give_way(callers: &mut Vec<OwnedFd>) {
    match callers.is_empty() {
        true => std::thread::sleep(ACCEPT_PAUSE),
        false => drop(callers.remove(0)),
    }
}

fn missing(step: &Step, tasks: &[Task], patience: Duration) -> String {
    let come: BTreeSet<u32> = tasks.iter().map(|task| task.rank).collect();
    let names: Vec<String> = step
        .here
        .iter()
        .filter(|rank| !come.contains(rank))
        .map(u32::to_string)
        .collect();
    format!(
        "within {} s only {} of the {} tasks of step {} on this node have called rg_init; missing: {}. They may have ended, or do not use Regatta. Set REGATTA_JOIN_TIMEOUT to more seconds if they start slowly",
        patience.as_secs(),
        come.len(),
        step.here.len(),
        step.id,
        names.join(", ")
    )
}

fn ended_early(step: &Step, rank: u32, pid: u32) -> Refusal {
    Refusal::new(format!(
        "task {rank} (pid {pid}) of step {} ended before all tasks of its node had called rg_init",
        step.id
    ))
}

fn unseen(step: &Step, rank: u32) -> Refusal {
    Refusal::new(format!(
        "task {rank} cannot be watched: the tasks of this node do not see each other's processes; each may run in a container of its own. Start the program with {}",
        step.names.instead
    ))
}

/// Reads a caller's hello. Drops strangers, and refuses tasks that have joined already. An error of the whole job is
/// returned.
fn read_hello(line: OwnedFd, step: &Step, tasks: &[Task]) -> Result<Option<Task>, Refusal> {
    let Some((pid, _)) = local_socket::peer(&line) else {
        return Ok(None);
    };
    let mut bytes = [0_u8; 64];
    let said = match rustix::net::recv(&line, &mut bytes[..], RecvFlags::DONTWAIT) {
        Ok((length, _)) => &bytes[..length],
        Err(_) => return Ok(None),
    };
    match guardian::versions(said) {
        None => return Ok(None),
        Some(versions) if versions != OURS => {
            let refusal = other_version(versions);
            answer(&line, &refusal);
            return Err(refusal);
        }
        Some(_) => {}
    }
    let Some(Hello { rank, .. }) = Hello::decode(said) else {
        return Ok(None);
    };
    if let Some(task) = tasks.iter().find(|task| task.rank == rank) {
        let sentence = format!(
            "rank {rank} of this step already belongs to process {}; a task's child cannot join as well",
            task.pid
        );
        answer(&line, &Refusal::new(sentence));
        return Ok(None);
    }
    if !step.here.contains(&rank) {
        let sentence = format!(
            "rank {rank} of step {} does not belong to this node",
            step.id
        );
        answer(&line, &Refusal::new(sentence));
        return Ok(None);
    }
    let process = local_socket::peer_process(&line).map_err(|_| {
        let refusal = match local_socket::has_hung_up(&line) {
            true => ended_early(step, rank, pid),
            false => unseen(step, rank),
        };
        answer(&line, &refusal);
        refusal
    })?;
    Ok(Some(Task {
        rank,
        pid,
        process,
        line: Some(line),
        told: false,
    }))
}

pub(crate) fn other_version(theirs: guardian::Versions) -> Refusal {
    Refusal {
        versions: true,
        sentence: format!(
            "the tasks of this step use different versions of Regatta: one speaks version {}.{} of the job protocol, \
             another {}.{}; build all with the same release, and install it on all nodes",
            OURS.rendezvous, OURS.job, theirs.rendezvous, theirs.job
        ),
    }
}

fn answer(line: &OwnedFd, refusal: &Refusal) {
    let answer = Answer::Refused {
        versions: refusal.versions,
        sentence: refusal.sentence.clone(),
    };
    // A task that does not receive it is gone.
    let _ = local_socket::send(line, &answer.encode(), &[]);
}

fn send_refusal(task: &Task, refusal: &Refusal) {
    task.line.iter().for_each(|line| answer(line, refusal));
}

/// Time limit for the hello of a task that is refused; tasks send it at once.
const HELLO_TIMEOUT: Duration = Duration::from_secs(1);

/// Tells all tasks of this node, including those that have not called yet, that there will be no job.
fn refuse(listener: &OwnedFd, step: &Step, tasks: &[Task], refusal: &Refusal, until: Instant) {
    tasks.iter().for_each(|task| send_refusal(task, refusal));
    let mut told = tasks.len();
    while told < step.here.len() && local_socket::readable(listener.as_fd(), until) {
        let accept = || rustix::net::accept_with(listener, SocketFlags::CLOEXEC);
        let Ok(line) = rustix::io::retry_on_intr(accept) else {
            give_way(&mut Vec::new());
            continue;
        };
        if local_socket::check_user(&line).is_err() {
            continue;
        }
        // Read its hello first: closing a socket with unread bytes would discard what was sent to it.
        let soon = until.min(Instant::now() + HELLO_TIMEOUT);
        if local_socket::readable(line.as_fd(), soon)
            && rustix::net::recv(&line, &mut [0_u8; 64][..], RecvFlags::DONTWAIT).is_ok()
        {
            answer(&line, refusal);
            told += 1;
        }
    }
}

/// Creates the job, together with the other nodes if there are any, and answers the tasks.
fn found(step: &Step, tasks: &mut [Task], until: Instant) -> Result<(Job, Mesh), Refusal> {
    tasks.sort_by_key(|task| task.rank);
    let failed = |error: &dyn std::fmt::Display| Refusal::new(error.to_string());
    let (job, listeners, mesh) = if step.nodes.len() == 1 {
        let job = Job::create_for(step.size, step.size).map_err(|error| failed(&error))?;
        (job, Vec::new(), Mesh::default())
    } else {
        let met = meet::together(step, until)?;
        let job = Job::create_across(&met.places).map_err(|error| failed(&error))?;
        (0..)
            .zip(&met.addresses)
            .for_each(|(rank, &address)| job.set_address(rank, address));
        (job, met.listeners, met.mesh)
    };
    job.set_cores(cores(tasks));
    tasks
        .iter()
        .for_each(|task| job.announce(task.rank, task.pid));
    let mut listeners = listeners.iter();
    for task in tasks.iter() {
        let descriptors: Vec<BorrowedFd> = std::iter::once(job.fd())
            .chain(listeners.next().map(AsFd::as_fd))
            .collect();
        if let Some(line) = &task.line {
            // If the task has ended, its pidfd reports that.
            let _ = local_socket::send(line, &Answer::Welcome.encode(), &descriptors);
        }
    }
    Ok((job, mesh))
}

/// Returns how many cores the tasks may use together.
fn cores(tasks: &[Task]) -> u32 {
    let mut all = BTreeSet::new();
    for task in tasks {
        let pid = Pid::from_raw(task.pid as i32);
        if let Ok(set) = rustix::thread::sched_getaffinity(pid) {
            all.extend((0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| set.is_set(core)));
        }
    }
    all.len() as u32
}

/// Watches the tasks until the last of them has left or ended.
fn watch(job: &Job, mut tasks: Vec<Task>, mut mesh: Mesh) {
    while !tasks.is_empty() {
        let timeout = (!mesh.is_empty()).then_some(BEAT_INTERVAL);
        let fds = tasks
            .iter()
            .map(|task| task.process.as_fd())
            .chain(tasks.iter().flat_map(|task| &task.line).map(AsFd::as_fd))
            .chain(mesh.fds());
        let ready = ready(fds, timeout);
        let (ended, rest) = ready.split_at(tasks.len());
        let mut parted = rest.iter().copied();
        for (task, &ended) in tasks.iter_mut().zip(ended) {
            let parted = task.line.is_some() && parted.next().unwrap_or_default();
            if ended || parted {
                attend(job, task, ended, &mut mesh);
            }
        }
        tasks.retain(|task| !task.told);
        for news in mesh.receive() {
            note(job, news);
        }
        mesh.beat();
    }
    mesh.finish();
}

/// Handles a task that has ended or closed its line.
fn attend(job: &Job, task: &mut Task, ended: bool, mesh: &mut Mesh) {
    let state = match ended {
        true => job.state_at_end(task.rank),
        false => job.state(task.rank),
    };
    if state == TaskState::Left {
        task.told = true;
        mesh.send_to_all(Record::Left(task.rank));
    } else if ended {
        task.told = true;
        job.mark_ended(task.rank);
        mesh.send_to_all(Record::Dead(task.rank));
    }
    // Only now, because the task waits for this.
    task.line = None;
}

/// Records a message about tasks on other nodes.
fn note(job: &Job, news: News) {
    let is_there = |rank: u32| {
        let state = job.state(rank);
        state != TaskState::Left && state != TaskState::Dead
    };
    match news {
        News::Told(node, Record::Left(rank)) if is_of(job, rank, node) && is_there(rank) => {
            job.leave(rank);
        }
        News::Told(node, Record::Dead(rank)) if is_of(job, rank, node) && is_there(rank) => {
            job.mark_ended(rank);
        }
        News::Told(..) => {}
        News::Lost(node) => (0..job.tasks())
            .filter(|&rank| is_of(job, rank, node) && is_there(rank))
            .for_each(|rank| job.mark_dead(rank, Cause::Lost)),
    }
}

fn is_of(job: &Job, rank: u32, node: u32) -> bool {
    rank < job.tasks() && job.host_of(rank) == node
}

/// Waits until a descriptor is readable or closed. Returns for each whether it is.
fn ready<'a>(fds: impl Iterator<Item = BorrowedFd<'a>>, timeout: Option<Duration>) -> Vec<bool> {
    let mut fds: Vec<PollFd> = fds
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let _ = ready::poll(&mut fds, timeout.as_ref());
    fds.iter().map(|fd| !fd.revents().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

    use super::*;

    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    fn socket() -> OwnedFd {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket")
    }

    /// Returns a node socket and its address.
    fn node_socket(name: &str) -> (OwnedFd, SocketAddrUnix) {
        let name = format!("regatta-node-{name}-{}", std::process::id());
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
        let listener = socket();
        rustix::net::bind(&listener, &address).expect("a socket");
        rustix::net::listen(&listener, 8).expect("a listener");
        (listener, address)
    }

    /// Connects a task that sends its hello. Returns its end of the line.
    fn hello(address: &SocketAddrUnix, rank: u32) -> OwnedFd {
        let line = socket();
        rustix::net::connect(&line, address).expect("a listener");
        let versions = OURS;
        let hello = Hello { versions, rank };
        local_socket::send(&line, &hello.encode(), &[]).expect("room");
        line
    }

    fn gathered(listener: &OwnedFd) -> Result<(), Refusal> {
        let step = Step {
            names: regatta_foreign::slurm::NAMES,
            id: "7.0".to_owned(),
            rank: 0,
            size: 2,
            node: 0,
            nodes: vec!["n1".to_owned()],
            here: vec![0, 1],
        };
        gather(
            listener,
            &step,
            &mut Vec::new(),
            TEST_TIMEOUT,
            Instant::now() + TEST_TIMEOUT,
        )
    }

    #[test]
    fn tasks_that_have_all_said_hello_and_are_there_are_gathered() {
        let (listener, address) = node_socket("all");
        let _lines = [hello(&address, 1), hello(&address, 0)];
        assert_eq!(gathered(&listener), Ok(()));
    }

    #[test]
    fn a_task_that_has_ended_is_noticed_also_if_it_was_the_last_to_say_hello() {
        for ends in 0..2 {
            let (listener, address) = node_socket(&format!("end-{ends}"));
            let mut lines = vec![hello(&address, 0), hello(&address, 1)];
            drop(lines.remove(ends));
            let refusal = gathered(&listener).expect_err("one has ended");
            let begin = format!("task {ends} (pid {})", std::process::id());
            assert!(refusal.sentence.starts_with(&begin), "{}", refusal.sentence);
        }
    }
}
