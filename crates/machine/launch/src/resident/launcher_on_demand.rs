//! A launcher for a task that was started by hand, without one.
//!
//! Such a task is a world of one. With its first request that needs a launcher it starts `regatta attend`, and passes
//! it the job's segment and one end of a socket. From then on everything is as under `regatta run`, except for the task
//! itself: it is not a child of the launcher, so its end is read from a pidfd, and it is not ended when another task
//! fails. When it dies, the tasks that it has started are killed. When it leaves in good order, they go on to their
//! end.

use std::os::fd::OwnedFd;

use regatta_program::Refusal;
use rustix::process::{Pid, PidfdFlags};

use crate::hosts::fleet::Fleet;
use crate::plan::{Form, OnFailure, Plan};
use crate::resident::guest::Guest;
use crate::streams::output::Output;
use crate::supervise;
use crate::supervise::owner::Owner;
use crate::sys;
use crate::system::signals::Signals;
use crate::system::tree;
use crate::tasks::{Recipe, Tasks};
use regatta_segment::job::Job;

/// The descriptor at which the task passes on the segment.
pub const SEGMENT: i32 = 60;
/// The descriptor at which the task passes on the socket.
pub const CONTROL: i32 = 62;

/// Serves the task `pid` as its launcher, until nothing of its job is left. Returns at once in the calling process. A
/// child goes on.
pub fn run(pid: u32) -> Result<u8, Refusal> {
    let failed = |what: &str, errno| {
        Refusal::of_regatta(format!(
            "no launcher can be started for the task {pid}: {what}: {errno}"
        ))
    };
    // The launcher outlives the program that has started it, and must hold none of its files.
    sys::close_inherited(&[SEGMENT, CONTROL]);
    let segment = sys::inherited(SEGMENT).map_err(|errno| failed("its segment", errno))?;
    let control = sys::inherited(CONTROL).map_err(|errno| failed("its socket", errno))?;
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| Refusal::usage(format!("{pid} is not a process")))?;
    let fd = rustix::process::pidfd_open(process, PidfdFlags::empty())
        .map_err(|errno| failed("its process", errno))?;
    let job = Job::open(segment).map_err(|error| Refusal::of_regatta(error.to_string()))?;
    match sys::fork().map_err(|errno| failed("no process can be started", errno))? {
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
    tree::adopt_orphans()?;
    let program =
        std::fs::read_link(tree::living_thread(guest.pid).join("exe")).unwrap_or_default();
    let maps = tree::living_thread(guest.pid).join("maps");
    let maps = std::fs::read_to_string(maps).unwrap_or_default();
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
        environment: regatta_program::with_libraries_of(std::env::vars_os().collect(), &maps),
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
