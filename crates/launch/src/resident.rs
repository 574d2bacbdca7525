//! A job that stays: it begins without tasks, processes enter it by its door, and it ends when it is told to.
//!
//! `regatta run` starts what belongs together and ends with it. Programs of other ways of thinking are started one by one,
//! by hand or by each other, and find each other as long as their virtual machine is up. This is the launcher of these.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use regatta_transport::job::{Job, MOST_TASKS};
use regatta_transport::place::{Key, Places};
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::channel::messages::Preparation;
use crate::door::Door;
use crate::fleet::{Fleet, Ground};
use crate::hosts::Host;
use crate::output::Output;
use crate::owner::Owner;
use crate::plan::{Across, Bind, Form, Growth, OnFailure, Plan};
use crate::refusal::Refusal;
use crate::remote::WINDOW;
use crate::signals::Signals;
use crate::tasks::{Recipe, Tasks};
use crate::{front, reach, supervise, sys};

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
    let ground = ground()?;
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let plan = Plan {
        stays: true,
        form: Form::Labelled,
        on_failure: OnFailure::Continue,
        across: Some(across(&name)),
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
    let places = Places {
        here: 0,
        host_of: vec![0],
        key: ground.template.key,
        trusted: ground.template.trusted,
        most: MOST_TASKS,
    };
    let mut tasks = Tasks::vacant(|| Job::create_across(&places), recipe)?;
    tasks.will_listen(ground.template.address);
    let fleet = Fleet {
        size: 1,
        tasks: Some(tasks),
        here: Some(0),
        remotes: Vec::new(),
        names: vec![name],
        host_of: vec![0],
        guest: None,
        door: Some(Door::new(door).map_err(|error| refused("its door", error))?),
        ground: Some(ground),
    };
    let owner = Owner { leash, group };
    let output = Output::new(plan.form)?;
    supervise::run_fleet(&plan, signals, owner, output, fleet)
}

/// The command by which PVM's users reach other hosts, if it is not ssh.
const SHELL: &str = "PVM_RSH";

/// How hosts are reached that tasks ask for.
fn across(name: &str) -> Across {
    let shell = std::env::var(SHELL).ok().filter(|shell| !shell.is_empty());
    Across {
        rsh: shell.map(|shell| vec![shell, "{host}".to_owned()]),
        growth: Some(Growth::default()),
        ..Across::new(vec![Host {
            name: name.to_owned(),
            slots: None,
            processors: None,
        }])
    }
}

/// What hosts that come later are told: a job of this host alone, whose only number is nobody's.
fn ground() -> Result<Ground, Refusal> {
    let mut key = Key::default();
    getrandom(&mut key, GetRandomFlags::empty()).map_err(|errno| {
        Refusal::of_regatta(format!(
            "the system gives no random numbers for the job's key: {errno}"
        ))
    })?;
    let bytes = |text: OsString| text.as_bytes().to_vec();
    let candidates = reach::chosen(&reach::candidates(None), None);
    let address = candidates
        .first()
        .copied()
        .unwrap_or(IpAddr::from([127, 0, 0, 1]));
    let template = Preparation {
        here: 0,
        host_of: vec![0],
        key,
        trusted: false,
        address,
        program: Vec::new(),
        arguments: Vec::new(),
        environment: std::env::vars_os()
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect(),
        directory: Vec::new(),
        bind: Bind::Free,
        window: WINDOW,
        most: MOST_TASKS,
        silence: Across::new(Vec::new())
            .silence
            .as_millis()
            .try_into()
            .unwrap_or(u32::MAX),
    };
    Ok(Ground {
        template,
        // Nobody listens there: the number is nobody's.
        addresses: vec![SocketAddr::new(address, 1)],
    })
}
