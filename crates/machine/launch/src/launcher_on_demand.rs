//! A launcher for a task that was started by hand, without one.
//!
//! Such a task is a world of one. When it first asks for something that needs a launcher it starts `regatta attend`, and
//! hands it the job's segment and one end of a socket. From then on everything is as under `regatta run`, but for the
//! task itself: it is nobody's child here, so its end is read from a descriptor, and it is not ended when another task
//! fails. When it dies, what it has started dies with it; when it leaves in good order, that goes on to its end.

use std::os::fd::OwnedFd;

use regatta_job::End;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::time::Timespec;

use crate::environment;
use crate::fleet::Fleet;
use crate::output::Output;
use crate::owner::Owner;
use crate::plan::{Form, OnFailure, Plan};
use crate::refusal::Refusal;
use crate::signals::Signals;
use crate::tasks::{Recipe, Tasks};
use crate::{front_process, supervise, sys, tree};
use regatta_segment::job::Job;

/// Under these numbers the task hands over the segment and the socket.
pub const SEGMENT: i32 = 60;
/// See [`SEGMENT`].
pub const CONTROL: i32 = 62;

/// A task that is not a child of its launcher.
pub(crate) struct Guest {
    pub pid: u32,
    pub fd: OwnedFd,
}

/// Attends the task with this process, until nothing of its job is left. Returns at once: who goes on is a child.
pub fn run(pid: u32) -> Result<u8, Refusal> {
    let failed = |what: &str, errno| {
        Refusal::of_regatta(format!(
            "the task {pid} cannot be attended: {what}: {errno}"
        ))
    };
    // It goes on when the program that has started it has ended, and has none of its files.
    sys::close_inherited(&[SEGMENT, CONTROL]);
    let segment = sys::inherited(SEGMENT).map_err(|errno| failed("its segment", errno))?;
    let control = sys::inherited(CONTROL).map_err(|errno| failed("its socket", errno))?;
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| Refusal::usage(format!("{pid} is no process")))?;
    let fd = rustix::process::pidfd_open(process, PidfdFlags::empty())
        .map_err(|errno| failed("its process", errno))?;
    let job = Job::open(segment).map_err(|error| Refusal::of_regatta(error.to_string()))?;
    match sys::fork().map_err(|errno| failed("no process for it", errno))? {
        Some(_) => Ok(0),
        None => {
            let guest = Guest { pid, fd };
            let status = serve(job, control, guest).unwrap_or_else(|refusal| {
                crate::report_refusal(Form::Inherit, &refusal);
                refusal.status
            });
            std::process::exit(i32::from(status));
        }
    }
}

fn serve(job: Job, control: OwnedFd, guest: Guest) -> Result<u8, Refusal> {
    let _ = rustix::thread::set_name(c"regatta-job");
    let signals = Signals::catch()?;
    front_process::adopt_orphans()?;
    let program =
        std::fs::read_link(tree::living_thread(guest.pid).join("exe")).unwrap_or_default();
    let most_tasks = job.capacity();
    let plan = Plan {
        on_failure: OnFailure::Continue,
        most_tasks,
        ..Plan::new(program.clone(), 1)
    };
    let group = rustix::process::getpgrp();
    let recipe = Recipe {
        name: plan.program.clone(),
        program,
        arguments: Vec::new(),
        environment: environment::with_libraries_of(std::env::vars_os().collect(), guest.pid),
        group,
        files: None,
    };
    let fleet = Fleet {
        size: 1,
        tasks: Some(Tasks::adopt(job, control, guest, recipe)?),
        here: None,
        remotes: Vec::new(),
        addresses: Vec::new(),
        names: Vec::new(),
        host_of: Vec::new(),
        join_socket: None,
        ready: None,
        ground: None,
    };
    let owner = Owner { leash: None, group };
    let output = Output::new(plan.form)?;
    supervise::run_fleet(&plan, signals, owner, output, fleet)
}

/// The end of a process, from the kernel's line about it, whose last word is the status that its parent will be told.
fn end_in(stat: &str) -> Option<End> {
    let status: i32 = stat.split_whitespace().last()?.parse().ok()?;
    Some(match status & 0x7f {
        0 => End::Exited(status >> 8),
        signal => End::Signalled {
            signal,
            core: status & 0x80 != 0,
        },
    })
}

impl Guest {
    pub(crate) fn try_clone(&self) -> std::io::Result<Guest> {
        let (pid, fd) = (self.pid, self.fd.try_clone()?);
        Ok(Guest { pid, fd })
    }

    /// The descriptors to wait for.
    pub(crate) fn poll(&self) -> PollFd<'_> {
        PollFd::new(&self.fd, PollFlags::IN)
    }

    /// How it has ended, as far as can be told, if it has. `left` says that it had left in good order.
    pub(crate) fn end(&self, left: bool) -> Option<End> {
        let now = Timespec::default();
        let ended = regatta_connection::ready::poll(&mut [self.poll()], Some(&now)) == Ok(1);
        ended.then(|| self.status().unwrap_or(End::Exited(i32::from(!left))))
    }

    /// The status that its parent has not asked for yet.
    fn status(&self) -> Option<End> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        end_in(&text)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            // It may have ended, which is told anyway.
            let _ = rustix::process::pidfd_send_signal(&self.fd, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_what_its_parent_will_be_told() {
        let line = |status: i32| format!("77 (a b) 3) Z 1 77 77 0 -1 4228364 0 0 {status}\n");
        assert_eq!(end_in(&line(0)), Some(End::Exited(0)));
        assert_eq!(end_in(&line(3 << 8)), Some(End::Exited(3)));
        for (status, signal, core) in [(9, 9, false), (11 | 0x80, 11, true)] {
            let end = End::Signalled { signal, core };
            assert_eq!(end_in(&line(status)), Some(end));
        }
        assert_eq!(end_in(""), None);
        assert_eq!(end_in("77 (x) Z"), None);
    }

    #[test]
    fn a_process_that_runs_has_no_end_even_if_it_has_left_the_job() {
        let process = rustix::process::getpid();
        let fd = rustix::process::pidfd_open(process, PidfdFlags::empty()).expect("its end");
        let pid = std::process::id();
        let guest = Guest { pid, fd };
        assert_eq!((guest.end(false), guest.end(true)), (None, None));
    }
}
