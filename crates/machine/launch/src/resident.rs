//! A resident job: it begins without tasks, processes join it by its join socket, and it ends on request.
//!
//! `regatta run` starts tasks that belong together, and ends with them. In other programming models programs are
//! started one by one, by hand or by each other, and find each other as long as their virtual machine is up. This is
//! the launcher for those.

pub(crate) mod guest;
pub(crate) mod guests;
pub(crate) mod join_socket;
pub mod launcher_on_demand;
pub(crate) mod newcomers;
pub mod place;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use regatta_job::credits::HOST_WINDOW_BYTES;
use regatta_program::{Refusal, Variable};
use regatta_segment::job::{Job, MAX_TASKS};
use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, WaitOptions};

use crate::channel::messages::Preparation;
use crate::hosts::Host;
use crate::hosts::environment;
use crate::hosts::fleet::{Fleet, Ground, new_key};
use crate::hosts::host_starter::NewHostStarter;
use crate::hosts::reach;
use crate::hosts::rsh::reach_command;
use crate::plan::{Across, Bind, Form, Growth, OnFailure, Plan};
use crate::resident::join_socket::JoinSocket;
use crate::resident::place::Claimed;
use crate::streams::output::Output;
use crate::supervise;
use crate::supervise::owner::Owner;
use crate::sys;
use crate::system::signals::Signals;
use crate::system::tree;
use crate::tasks::bind::Share;
use crate::tasks::{Recipe, Tasks};

/// What ends a resident job, and where its tasks write.
pub enum Stays<'a> {
    /// A request to end. Its tasks write to this file.
    UntilTold(&'a Path),
    /// A request to end, or the end of standard input, a pipe: for owners that may be killed. Its tasks write to
    /// standard error.
    OnLeash,
}

/// A virtual machine whose hosts are the job's.
pub struct Machine {
    /// This host alone, and the settings for reaching and adding others.
    pub across: Across,
    /// The address at which this host is reached.
    pub address: IpAddr,
}

/// How a resident job begins.
pub struct Beginning<'a> {
    /// The name by which processes join it.
    pub name: &'a str,
    /// The socket at which processes join it on this host.
    pub socket: Claimed,
    /// What ends it, and where its tasks write.
    pub stays: Stays<'a>,
    /// Its hosts, or `None` for this one alone and those that tasks request.
    pub machine: Option<Machine>,
    /// The command that leads to hosts outside of a machine, as words, or `None` for ssh.
    pub shell: Option<Vec<String>>,
    /// Creates the host starter for such hosts.
    pub starter: NewHostStarter,
    /// The environment of the process on another host that wanted the job, or `None` for this process's own.
    pub environment: Option<Vec<(OsString, OsString)>>,
}

fn refused(what: &str, error: impl Into<std::io::Error>) -> Refusal {
    let error = error.into();
    Refusal::of_regatta(format!(
        "the resident job cannot be started: {what}: {error}"
    ))
}

/// Runs a resident job in a child. Returns in the calling process when the hosts with which it begins are ready.
pub fn run(beginning: Beginning<'_>) -> Result<u8, Refusal> {
    let (log, leash) = match beginning.stays {
        Stays::UntilTold(log) => {
            let begun = beginning.socket.begin_log();
            let log = begun.map_err(|error| refused(&log.display().to_string(), error))?;
            (log, None)
        }
        Stays::OnLeash => {
            let log = std::io::stderr().as_fd().try_clone_to_owned();
            let leash = leash().map_err(|error| refused("standard input", error))?;
            let log = log.map_err(|error| refused("standard error", error))?;
            (log.into(), Some(leash))
        }
    };
    let nothing = File::open("/dev/null").map_err(|error| refused("/dev/null", error))?;
    let ready = rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    let (gathered, ready) = ready.map_err(|errno| refused("no pipe can be opened", errno))?;
    match sys::fork().map_err(|errno| refused("no process can be started", errno))? {
        Some(child) => {
            // The child has it.
            std::mem::forget(beginning.socket);
            drop(ready);
            match File::from(gathered).read(&mut [0]) {
                Ok(1) => Ok(0),
                _ => Err(ended_early(child, beginning.stays)),
            }
        }
        None => {
            let streams = (&nothing, &log);
            let status = serve(beginning, streams, leash, ready).unwrap_or_else(|refusal| {
                crate::report_refusal(Form::Inherit, &refusal);
                refusal.status
            });
            std::process::exit(i32::from(status));
        }
    }
}

/// Returns the refusal that the job has ended before it was ready. Its own message is in its log.
fn ended_early(child: Pid, stays: Stays<'_>) -> Refusal {
    let wait = || rustix::process::waitpid(Some(child), WaitOptions::empty());
    let end = rustix::io::retry_on_intr(wait);
    let status = end.ok().flatten().map(|(_, status)| status);
    let how = status.map_or_else(String::new, |status| {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!(" with status {code}"),
            (_, Some(signal)) => format!(" by signal {signal}"),
            _ => String::new(),
        }
    });
    let more = match stays {
        Stays::UntilTold(log) => format!("; see {}", log.display()),
        Stays::OnLeash => String::new(),
    };
    Refusal::of_regatta(format!(
        "the launcher of the resident job ended{how} before processes could join the job{more}"
    ))
}

/// Waits until the resident job whose launcher is at the other end has the hosts with which it begins.
pub fn await_ready(stream: UnixStream) -> Result<(), Refusal> {
    join_socket::await_open(stream).map_err(|error| refused("its socket", error))
}

/// Returns the reading end of the owner's pipe. Its end of file reports that the owner has died.
fn leash() -> std::io::Result<OwnedFd> {
    let leash = std::io::stdin().as_fd().try_clone_to_owned()?;
    let flags = rustix::fs::fcntl_getfl(&leash)?;
    rustix::fs::fcntl_setfl(&leash, flags | OFlags::NONBLOCK)?;
    Ok(leash)
}

/// Runs the launcher of the job, with its plan and what later hosts are sent.
fn serve(
    beginning: Beginning<'_>,
    streams: (&File, &File),
    leash: Option<OwnedFd>,
    ready: OwnedFd,
) -> Result<u8, Refusal> {
    detach(streams)?;
    let signals = Signals::catch()?;
    tree::adopt_orphans()?;
    let home = environment::directory_here(HOME.into());
    let sent = beginning.environment.map(Vec::into_iter);
    let environment = sent.map(|sent| environment::adapted(sent, home));
    let environment = environment.unwrap_or_else(|| std::env::vars_os().collect());
    let environment = regatta_program::with_libraries(environment);
    let machine = beginning.machine;
    let address = machine.as_ref().map(|machine| machine.address);
    let across = match machine {
        Some(machine) => named(machine.across),
        None => by_shell(beginning.shell, beginning.starter),
    };
    let address = address.unwrap_or_else(likeliest);
    let ground = ground(beginning.name, address, &across, &environment)?;
    let names = across.hosts.iter().map(|host| host.name.clone());
    let names = names.collect();
    let plan = Plan {
        stays: true,
        form: Form::Journal,
        on_failure: OnFailure::Continue,
        across: Some(across),
        ..Plan::new("", 1)
    };
    let group = rustix::process::getpgrp();
    let tasks = no_tasks(&ground.template, environment, group)?;
    let fleet = Fleet {
        size: 1,
        tasks: Some(tasks),
        here: Some(0),
        remotes: Vec::new(),
        addresses: Vec::new(),
        names,
        host_of: vec![0],
        join_socket: Some(
            JoinSocket::new(beginning.socket).map_err(|error| refused("its socket", error))?,
        ),
        ready: Some(ready),
        ground: Some(ground),
    };
    let owner = Owner { leash, group };
    let output = Output::new(plan.form)?;
    supervise::run_fleet(&plan, signals, owner, output, fleet)
}

/// Returns the tasks of this host, none at first.
fn no_tasks(
    template: &Preparation,
    environment: Vec<(OsString, OsString)>,
    group: Pid,
) -> Result<Tasks, Refusal> {
    let recipe = Recipe {
        name: OsString::new(),
        program: Path::new("").to_owned(),
        arguments: Vec::new(),
        environment,
        group,
        files: None,
    };
    let places = template.places();
    let mut tasks = Tasks::vacant(|| Job::create_across(&places), recipe)?;
    tasks.will_listen(template.address);
    Ok(tasks)
}

/// Names the job after this process, as every job of a machine is named after its launcher.
fn named(mut across: Across) -> Across {
    let Some(growth) = &mut across.growth else {
        return across;
    };
    growth.job = format!("{}:{}", growth.host, std::process::id());
    if let (Some(machine), Some(words)) = (&growth.machine, &mut across.rsh) {
        *words = reach_command(&words[0], machine, &growth.job);
    }
    across
}

/// Detaches this process: no terminal, a process group of its own, and the user's home as the directory of tasks,
/// wherever the process was started.
///
/// The process stays in the session of the program that started it. The kernel divides the cores among sessions (`autogroup` in
/// sched(7)), and `sched_yield` yields a core only to tasks of the same session: a program started by hand that waits
/// for tasks that it has spawned would keep the core from them. (Eight members of a group on two cores: a barrier takes
/// 19 us in two sessions, 11 us in one.)
fn detach((nothing, log): (&File, &File)) -> Result<(), Refusal> {
    let _ = rustix::thread::set_name(c"regatta-job");
    rustix::process::setpgid(None, None)
        .map_err(|errno| refused("no process group can be created", errno))?;
    sys::leave_terminal();
    if let Some(home) = std::env::var_os("HOME") {
        let _ = std::env::set_current_dir(home);
    }
    let streams = [
        rustix::stdio::dup2_stdin(nothing),
        rustix::stdio::dup2_stdout(log),
        rustix::stdio::dup2_stderr(log),
    ];
    for stream in streams {
        stream.map_err(|errno| refused("its output", errno))?;
    }
    Ok(())
}

/// The directory in which tasks start on each host.
const HOME: &str = "$HOME";

/// Returns the settings of this host alone, with other hosts reached by `shell` at the request of tasks.
fn by_shell(shell: Option<Vec<String>>, starter: NewHostStarter) -> Across {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    Across {
        rsh: shell,
        growth: Some(Growth::new(starter)),
        ..Across::new(vec![Host {
            name,
            slots: None,
            processors: None,
        }])
    }
}

/// Returns the address at which others most likely reach this host, for a job without a machine.
fn likeliest() -> IpAddr {
    let candidates = reach::chosen(&reach::candidates(None), None);
    let first = candidates.first().copied();
    first.unwrap_or(IpAddr::from([127, 0, 0, 1]))
}

/// Returns what later hosts are sent: a job of this host alone, whose only number belongs to no task.
fn ground(
    job: &str,
    address: IpAddr,
    across: &Across,
    environment: &[Variable],
) -> Result<Ground, Refusal> {
    let bytes = |text: &OsString| text.as_bytes().to_vec();
    let template = Preparation {
        here: 0,
        host_of: vec![0],
        key: new_key()?,
        trusted: false,
        address,
        program: Vec::new(),
        arguments: Vec::new(),
        environment: environment
            .iter()
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect(),
        directory: HOME.as_bytes().to_vec(),
        bind: Bind::Free,
        share: Share::default(),
        window: HOST_WINDOW_BYTES,
        most: MAX_TASKS,
        silence: across.silence.as_millis().try_into().unwrap_or(u32::MAX),
        unreachable: across.unreachable_millis(),
        join_name: job.to_owned(),
    };
    Ok(Ground {
        template,
        // No task listens there: the number belongs to no task.
        addresses: vec![SocketAddr::new(address, 1)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_called_after_its_launcher_also_in_the_command_that_reaches_hosts() {
        let growth = Growth {
            host: "alpha".to_owned(),
            job: "alpha:1".to_owned(),
            machine: Some("fleet".to_owned()),
            ..Growth::new(|_| unreachable!("nobody asks for a host"))
        };
        let across = named(Across {
            rsh: Some(reach_command("regatta", "fleet", "alpha:1")),
            growth: Some(growth),
            ..Across::new(Vec::new())
        });
        let job = format!("alpha:{}", std::process::id());
        assert_eq!(across.growth.map(|growth| growth.job), Some(job.clone()));
        assert_eq!(across.rsh, Some(reach_command("regatta", "fleet", &job)));
    }
}
