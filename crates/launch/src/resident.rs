//! A job that stays: it begins without tasks, processes enter it by its door, and it ends when it is told to.
//!
//! `regatta run` starts what belongs together and ends with it. Programs of other ways of thinking are started one by one,
//! by hand or by each other, and find each other as long as their virtual machine is up. This is the launcher of these.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use regatta_transport::job::{Job, MOST_TASKS};
use rustix::fs::OFlags;

use crate::door::Door;
use crate::fleet::Fleet;
use crate::output::Output;
use crate::owner::Owner;
use crate::plan::{Form, OnFailure, Plan};
use crate::refusal::Refusal;
use crate::signals::Signals;
use crate::tasks::{Recipe, Tasks};
use crate::{front, supervise, sys};

/// Until when it stays.
pub enum Stays<'a> {
    /// Until it is told to end. Its tasks write to this file.
    UntilTold(&'a Path),
    /// Until standard input, a pipe, is closed as well: for owners that may be killed. Its tasks write to standard error.
    OnLeash,
}

/// Runs such a job. Returns at once: who goes on is a child.
///
/// `door` is made ready already. `keep` is dropped by the child at its end, and by nobody else.
pub fn run<K>(door: UnixListener, stays: &Stays<'_>, keep: K) -> Result<u8, Refusal> {
    let refused = |what: &str, error: std::io::Error| {
        Refusal::of_regatta(format!("the job cannot stay: {what}: {error}"))
    };
    let (log, leash) = match stays {
        Stays::UntilTold(log) => {
            let log = open_log(log).map_err(|error| refused(&log.display().to_string(), error))?;
            (log, None)
        }
        Stays::OnLeash => {
            let log = std::io::stderr().as_fd().try_clone_to_owned();
            let leash = leash().map_err(|error| refused("standard input", error))?;
            (
                log.map_err(|error| refused("standard error", error))?
                    .into(),
                Some(leash),
            )
        }
    };
    let nothing = File::open("/dev/null").map_err(|error| refused("/dev/null", error))?;
    match sys::fork().map_err(|errno| refused("no process for it", errno.into()))? {
        Some(_) => {
            // The child has it.
            std::mem::forget(keep);
            Ok(0)
        }
        None => {
            let status = serve(door, &nothing, &log, leash).unwrap_or_else(|refusal| {
                crate::tell(Form::Inherit, &refusal);
                refusal.status
            });
            drop(keep);
            std::process::exit(i32::from(status));
        }
    }
}

/// The end of the owner's pipe, by which its death is heard of.
fn leash() -> std::io::Result<OwnedFd> {
    let leash = std::io::stdin().as_fd().try_clone_to_owned()?;
    let flags = rustix::fs::fcntl_getfl(&leash)?;
    rustix::fs::fcntl_setfl(&leash, flags | OFlags::NONBLOCK)?;
    Ok(leash)
}

/// Nobody else reads what the tasks write, and no link leads it elsewhere.
fn open_log(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

fn serve(
    door: UnixListener,
    nothing: &File,
    log: &File,
    leash: Option<OwnedFd>,
) -> Result<u8, Refusal> {
    let refused = |what: &str, error: std::io::Error| {
        Refusal::of_regatta(format!("the job cannot stay: {what}: {error}"))
    };
    let _ = rustix::thread::set_name(c"regatta-job");
    rustix::process::setsid().map_err(|errno| refused("no session of its own", errno.into()))?;
    // Where tasks begin, whoever started us where.
    if let Some(home) = std::env::var_os("HOME") {
        let _ = std::env::set_current_dir(home);
    }
    let streams = [
        rustix::stdio::dup2_stdin(nothing),
        rustix::stdio::dup2_stdout(log),
        rustix::stdio::dup2_stderr(log),
    ];
    for stream in streams {
        stream.map_err(|errno| refused("its output", errno.into()))?;
    }
    let signals = Signals::catch()?;
    front::adopt_orphans()?;
    let plan = Plan {
        stays: true,
        form: Form::Labelled,
        on_failure: OnFailure::Continue,
        ..Plan::new("", 1)
    };
    let group = rustix::process::getpgrp();
    let recipe = Recipe {
        name: OsString::new(),
        program: Path::new("").to_owned(),
        arguments: Vec::new(),
        environment: std::env::vars_os().collect(),
        group,
        files: None,
    };
    let fleet = Fleet {
        size: 1,
        tasks: Some(Tasks::vacant(|| Job::create_for(1, MOST_TASKS), recipe)?),
        here: None,
        remotes: Vec::new(),
        names: Vec::new(),
        host_of: Vec::new(),
        guest: None,
        door: Some(Door::new(door).map_err(|error| refused("its door", error))?),
        ground: None,
    };
    let owner = Owner { leash, group };
    let output = Output::new(plan.form)?;
    supervise::run_fleet(&plan, signals, owner, output, fleet)
}
