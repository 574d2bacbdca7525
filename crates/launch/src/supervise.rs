//! Starting the tasks of a job, and staying with them until nothing of it is left.
//!
//! One thread, one loop over one `poll`: signals (ended children among them), the front's leash, and the tasks' output
//! when it is labelled. What is to be done is decided by [`Course`]; this file does it.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Rlimit, Signal, WaitOptions, WaitStatus};
use rustix::time::Timespec;
use serde_json::json;

use crate::bind::Placement;
use crate::course::{Act, Course, End};
use crate::output::Output;
use crate::plan::{Form, Plan};
use crate::refusal::{Refusal, STATUS_REFUSED};
use crate::signals::{Arrived, Signals};
use crate::sys::{Image, Place, StartError};
use crate::{closing, front, limits, program, sys, tree, words};
use regatta_transport::job::{Invitation, Job, VERSION};

/// So many tasks are started before the loop looks at what else happened.
const BATCH: u32 = 16;
/// The segment's descriptor in the tasks. Shells and scripts use the small numbers; at 64 the kernel would have to
/// enlarge every task's table.
const SEGMENT_FD: i32 = 60;

/// A plan that has passed the checks which need no process.
pub(crate) struct Prepared {
    program: PathBuf,
}

/// Who the job belongs to.
pub(crate) struct Owner {
    /// Signals to pass on, and the owner's death: the end of the pipe.
    pub leash: Option<OwnedFd>,
    /// The process group of the tasks.
    pub group: Pid,
}

impl Prepared {
    pub(crate) fn new(plan: &Plan) -> Result<Self, Refusal> {
        if plan.tasks == 0 {
            return Err(Refusal::of_regatta(
                "a job needs at least one task: -n 1 or more",
            ));
        }
        let program = program::find(&plan.program, std::env::var_os("PATH").as_deref())?;
        limits::check(plan.tasks)?;
        Ok(Self { program })
    }
}

/// Runs a job to its end from the calling thread and returns the status to exit with.
///
/// Blocks the signals that concern a job for this thread, makes this process a subreaper, and reaps all its children:
/// it must have none of its own. If this process dies, the tasks die by their parent-death signal; [`front::run`] adds
/// the process that also ends what they started.
pub fn run(plan: &Plan) -> Result<u8, Refusal> {
    let prepared = Prepared::new(plan)?;
    let owner = Owner {
        leash: None,
        group: rustix::process::getpgrp(),
    };
    run_prepared(plan, prepared, Signals::catch()?, owner)
}

pub(crate) fn run_prepared(
    plan: &Plan,
    prepared: Prepared,
    signals: Signals,
    owner: Owner,
) -> Result<u8, Refusal> {
    front::adopt_orphans()?;
    Ok(Supervisor::new(plan, prepared, signals, owner)?.run())
}

struct Supervisor<'p> {
    plan: &'p Plan,
    program: PathBuf,
    signals: Signals,
    owner: Owner,
    job: Job,
    /// The job's segment, under the number that the tasks see.
    segment: OwnedFd,
    placement: Placement,
    image: Image,
    nothing: OwnedFd,
    files: Option<Rlimit>,
    output: Output,
    course: Course,
    started: Instant,
    /// The rank that is started next.
    next: u32,
    /// Set when no more tasks are to be started.
    stop: bool,
    ranks: HashMap<Pid, u32>,
    /// Nothing is left below this process.
    childless: bool,
}

impl<'p> Supervisor<'p> {
    fn new(
        plan: &'p Plan,
        prepared: Prepared,
        signals: Signals,
        owner: Owner,
    ) -> Result<Self, Refusal> {
        let failed =
            |what: &str, errno| Refusal::of_regatta(format!("the launcher cannot {what}: {errno}"));
        let files = match plan.form {
            Form::Inherit => None,
            _ => limits::make_room_for_pipes(plan.tasks)?,
        };
        let placement = Placement::new(&plan.bind, plan.tasks)?;
        if let Some(cores) = placement.squeezed(plan.tasks) {
            // The job counts its cores by our own affinity.
            let _ = rustix::thread::sched_setaffinity(None, &cores);
        }
        let job =
            Job::create(plan.tasks).map_err(|error| Refusal::of_regatta(error.to_string()))?;
        let segment = rustix::io::fcntl_dupfd_cloexec(job.fd(), SEGMENT_FD)
            .or_else(|_| rustix::io::fcntl_dupfd_cloexec(job.fd(), 3))
            .map_err(|errno| failed("hand on the job's segment", errno))?;
        let nothing =
            rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| failed("open /dev/null", errno))?;
        Ok(Self {
            image: image(plan, &prepared.program),
            program: prepared.program,
            placement,
            output: Output::new(plan.form)?,
            course: Course::new(plan),
            started: Instant::now(),
            next: 0,
            stop: false,
            ranks: HashMap::with_capacity(plan.tasks as usize),
            childless: false,
            plan,
            signals,
            owner,
            job,
            segment,
            nothing,
            files,
        })
    }

    fn run(mut self) -> u8 {
        loop {
            self.start_some();
            self.wait();
            self.heed_signals();
            self.reap();
            self.output.pump();
            self.tick();
            let gone = self.childless || self.course.is_given_up();
            if self.course.is_over() && gone {
                break;
            }
        }
        self.output.drain();
        self.conclude();
        self.flush();
        self.course.status()
    }

    /// Starts the next few tasks.
    fn start_some(&mut self) {
        for _ in 0..BATCH {
            if self.stop || self.next == self.plan.tasks {
                return;
            }
            if let Err(refusal) = self.start(self.next) {
                self.output.say(&refusal.sentence);
                let mut acts = Vec::new();
                self.course
                    .cannot_start(self.started.elapsed(), refusal.status, &mut acts);
                return self.perform(acts);
            }
            self.next += 1;
        }
    }

    fn start(&mut self, rank: u32) -> Result<(), Refusal> {
        let [output, error] = self.output.pipes(rank).map_err(|errno| {
            Refusal::of_regatta(format!("no pipe for the output of task {rank}: {errno}"))
        })?;
        let fd = self.segment.as_raw_fd();
        let invitation = Invitation {
            version: VERSION,
            fd,
            rank,
            size: self.plan.tasks,
            listener: None,
        };
        let input = (rank > 0).then(|| self.nothing.as_fd());
        let place = Place {
            stdio: [
                input,
                output.as_ref().map(AsFd::as_fd),
                error.as_ref().map(AsFd::as_fd),
            ],
            kept: self.segment.as_fd(),
            cores: self.placement.of(rank),
            group: self.owner.group,
            files: self.files,
            mask: self.signals.before(),
        };
        let variable = sys::c_string(format!("{}={invitation}", Invitation::VARIABLE).as_bytes());
        let pid = self
            .image
            .start(variable, &place)
            .map_err(|error| match error {
                StartError::NoProcess(errno) => limits::explain(errno, rank),
                StartError::Execute(errno) => program::explain(&self.program, errno),
                StartError::SetUp(errno) => Refusal::new(
                    STATUS_REFUSED,
                    format!("task {rank} cannot be set up: {errno}"),
                ),
            })?;
        self.job.announce(rank, pid.as_raw_nonzero().get() as u32);
        self.ranks.insert(pid, rank);
        self.course.task_started();
        self.output
            .event(&json!({"event": "start", "task": rank, "pid": pid.as_raw_nonzero().get()}));
        Ok(())
    }

    /// Waits until something happens, or not at all while tasks are being started.
    fn wait(&self) {
        let timeout = if !self.stop && self.next < self.plan.tasks {
            Some(Duration::ZERO)
        } else {
            self.course
                .deadline()
                .map(|at| at.saturating_sub(self.started.elapsed()))
        };
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        fds.extend(
            self.owner
                .leash
                .iter()
                .map(|leash| PollFd::new(leash, PollFlags::IN)),
        );
        fds.extend(
            self.output
                .sources()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        fds.extend(
            self.output
                .blocked()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)),
        );
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let _ = rustix::event::poll(&mut fds, timeout.as_ref());
    }

    fn heed_signals(&mut self) {
        let mut acts = Vec::new();
        let now = self.started.elapsed();
        let mut arrived: Vec<Arrived> = std::iter::from_fn(|| self.signals.next()).collect();
        if !self.read_leash(&mut arrived) {
            self.owner.leash = None;
            self.course.abandoned(now, &mut acts);
        }
        for Arrived {
            signal,
            from_terminal,
        } in arrived
        {
            self.course.signal(now, signal, from_terminal, &mut acts);
        }
        self.perform(acts);
    }

    /// Takes what the front passed on. Returns whether the front lives.
    fn read_leash(&self, arrived: &mut Vec<Arrived>) -> bool {
        let Some(leash) = &self.owner.leash else {
            return true;
        };
        let mut bytes = [0_u8; 64];
        match rustix::io::read(leash, &mut bytes) {
            Ok(0) => return false,
            Ok(count) => arrived.extend(
                bytes[..count]
                    .chunks_exact(2)
                    .filter_map(|b| Arrived::from_bytes([b[0], b[1]])),
            ),
            Err(_) => {}
        }
        true
    }

    fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.ended(pid, status),
                Ok(None) => return self.childless = false,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return self.childless = true,
            }
        }
    }

    fn ended(&mut self, pid: Pid, status: WaitStatus) {
        let Some(rank) = self.ranks.remove(&pid) else {
            return;
        };
        let end = match status.terminating_signal() {
            Some(signal) => End::Signalled {
                signal,
                core: status.as_raw() & 0x80 != 0,
            },
            None => End::Exited(status.exit_status().unwrap_or_default()),
        };
        let pid = pid.as_raw_nonzero().get() as u32;
        let mut acts = Vec::new();
        self.output.event(&closing::task_event(rank, pid, end));
        self.course.task_ended(
            self.started.elapsed(),
            rank,
            pid,
            end,
            self.job.state(rank),
            &mut acts,
        );
        self.perform(acts);
    }

    fn tick(&mut self) {
        if self.course.is_over() && self.childless {
            return;
        }
        let mut acts = Vec::new();
        let ranks = &self.ranks;
        self.course
            .tick(self.started.elapsed(), || left(ranks), &mut acts);
        self.perform(acts);
    }

    fn perform(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Say(sentence) => self.output.say(&sentence),
                Act::MarkDead(rank, cause) => self.job.mark_dead(rank, cause),
                Act::Signal(signal) => tree::signal_all(signal),
                Act::StopStarting => self.stop = true,
            }
        }
    }

    /// Says what can only be said when all is over.
    fn conclude(&mut self) {
        if let Some(sentence) = closing::never_joined(
            &self.course,
            self.plan.tasks,
            &self.plan.program,
            &self.program,
        ) {
            self.output.say(&sentence);
        }
        if let Some(sentence) = self.course.untold() {
            self.output.say(&sentence);
        }
        self.output.event(&closing::job_event(
            &self.course,
            self.plan.tasks,
            self.started.elapsed(),
        ));
    }

    /// Waits for a slow reader, but not for one who has lost interest.
    fn flush(&mut self) {
        while !self.output.is_flushed() && self.owner.leash.is_some() {
            self.wait();
            self.output.pump();
            let mut arrived: Vec<Arrived> = std::iter::from_fn(|| self.signals.next()).collect();
            let ends = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
            if !self.read_leash(&mut arrived)
                || arrived.iter().any(|arrived| ends.contains(&arrived.signal))
            {
                return;
            }
        }
    }
}

/// What still runs, for a sentence: tasks, or what they left behind.
fn left(ranks: &HashMap<Pid, u32>) -> String {
    if ranks.is_empty() {
        let strays = tree::descendants();
        return closing::few(
            &strays
                .iter()
                .map(|stray| format!("{} (pid {})", stray.name, stray.pid))
                .collect::<Vec<_>>(),
        );
    }
    let mut ranks: Vec<u32> = ranks.values().copied().collect();
    ranks.sort_unstable();
    words::tasks(&ranks)
}

/// The program with its arguments and our environment, less an invitation to another job.
fn image(plan: &Plan, program: &std::path::Path) -> Image {
    let arguments = std::iter::once(&plan.program).chain(&plan.arguments);
    let environment = std::env::vars_os()
        .filter(|(name, _)| name != Invitation::VARIABLE)
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
