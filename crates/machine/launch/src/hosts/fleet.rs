//! The hosts of a job, ready to start its tasks: only this one, or several that have been brought together.

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use regatta_job::credits::HOST_WINDOW_BYTES;
use regatta_job::hosts::Admission;
use regatta_program::Refusal;
use rustix::process::{Pid, Rlimit};

use crate::channel::messages::{Order, Preparation};
use crate::channel::remote::Remote;
use crate::hosts;
use crate::hosts::gather;
use crate::hosts::gather::Gathering;
use crate::hosts::rsh::Role;
use crate::plan::{Across, Form, Plan};
use crate::resident::join_socket::JoinSocket;
use crate::streams::output::Output;
use crate::succession::failover_plan;
use crate::supervise::owner::Owner;
use crate::system::limits;
use crate::system::limits::Files;
use crate::system::signals::Signals;
use crate::tasks::bind::Share;
use crate::tasks::cores;
use crate::tasks::{Recipe, Tasks, ranks_on};
use crate::words;
use regatta_segment::job::{Job, MAX_TASKS};
use regatta_segment::place::Key;

/// Number of descriptors for each channel: two directions, the command's standard error, and one to await the command's
/// end.
pub(crate) const DESCRIPTORS_PER_CHANNEL: u32 = 4;

/// Everything needed to start a job.
pub(crate) struct Fleet {
    /// Number of tasks on all hosts.
    pub size: u32,
    /// The tasks of this host, if it has any.
    pub tasks: Option<Tasks>,
    /// The number of this host, if it is one of several.
    pub here: Option<u32>,
    /// The other hosts, with their tasks prepared.
    pub remotes: Vec<Remote>,
    /// The address at which each task listens, if there are other hosts.
    pub addresses: Vec<SocketAddr>,
    /// The names of the hosts and the host of each rank. Empty if there is only this host.
    pub names: Vec<String>,
    pub host_of: Vec<u32>,
    /// The socket at which processes join that were not started by the job.
    pub join_socket: Option<JoinSocket>,
    /// Closed when the hosts with which such a job begins are ready.
    pub ready: Option<OwnedFd>,
    /// What a host that joins later is sent, in a job that can add hosts or outlive this one.
    pub ground: Option<Ground>,
}

/// What every host of a job is sent before its tasks start.
pub(crate) struct Ground {
    pub template: Preparation,
    /// The addresses at which the first tasks listen.
    pub addresses: Vec<SocketAddr>,
}

/// Returns the number of tasks of a job on this host alone.
pub(crate) fn tasks_here(plan: &Plan) -> u32 {
    plan.tasks.unwrap_or_else(|| cores::usable() as u32)
}

/// Prepares the job on all hosts. No task is started yet.
pub(crate) fn assemble(
    plan: &Plan,
    signals: &Signals,
    owner: &mut Owner,
    output: &mut Output,
) -> Result<Fleet, Refusal> {
    match plan.across.as_ref().filter(|across| !is_only_here(across)) {
        Some(across) => assemble_across(plan, across, signals, owner, output),
        None => assemble_here(plan, owner),
    }
}

/// Returns whether the only host is this one.
fn is_only_here(across: &Across) -> bool {
    across.rsh.is_none()
        && across.hosts.iter().all(|host| gather::is_here(&host.name))
        && across.hosts.len() == 1
}

fn assemble_here(plan: &Plan, owner: &Owner) -> Result<Fleet, Refusal> {
    let slots = plan
        .across
        .as_ref()
        .and_then(|across| across.hosts[0].slots);
    let size = plan.tasks.or(slots).unwrap_or_else(|| tasks_here(plan));
    let recipe = recipe(plan, size, files(plan), owner.group)?;
    let tasks = Tasks::new(
        || Job::create_for(size, plan.most_tasks),
        (0..size).collect(),
        &plan.bind,
        Share::default(),
        recipe,
    )?;
    Ok(Fleet {
        size,
        tasks: Some(tasks),
        here: None,
        remotes: Vec::new(),
        addresses: Vec::new(),
        names: Vec::new(),
        host_of: Vec::new(),
        join_socket: None,
        ready: None,
        ground: None,
    })
}

/// Returns the number of the launcher's descriptors for each task: a socket for its requests, and pipes for its output.
fn files(plan: &Plan) -> u32 {
    if plan.form == Form::Inherit { 1 } else { 3 }
}

/// Returns how `here` tasks are started on this host. `each` is the number of the launcher's descriptors for a task.
fn recipe(plan: &Plan, here: u32, each: u32, group: Pid) -> Result<Recipe, Refusal> {
    let files = match plan.form {
        Form::Inherit => Files::Tasks(here),
        _ => Files::Labelled(here),
    };
    let program = regatta_program::find(&plan.program, std::env::var_os("PATH").as_deref())?;
    let environment = regatta_program::with_libraries(plan.variables());
    let environment = regatta_program::admit(&program, &plan.arguments, environment)?;
    Ok(Recipe {
        name: plan.program.clone(),
        program,
        arguments: plan.arguments.clone(),
        environment,
        group,
        files: match (plan.form, limits::make_room(files, each)) {
            // Tasks that get no socket run all the same, but cannot send requests.
            (Form::Inherit, Err(_)) => None,
            (_, room) => room?,
        },
    })
}

fn assemble_across(
    plan: &Plan,
    across: &Across,
    signals: &Signals,
    owner: &mut Owner,
    output: &mut Output,
) -> Result<Fleet, Refusal> {
    hosts::distinct(&across.hosts).map_err(Refusal::usage)?;
    if across.rsh.is_none() {
        hosts::once_here(&across.hosts, gather::is_here).map_err(Refusal::usage)?;
    }
    let before = Before {
        group: owner.group,
        files: limits::make_room(
            Files::Hosts(across.hosts.len() as u32),
            DESCRIPTORS_PER_CHANNEL,
        )?,
    };
    let part = (Role::Agent, Admission::begin(across.connect));
    let mut gathering = Gathering::open(across, part, None, signals, owner)?;
    gathering.settle();
    gathering
        .notes
        .drain(..)
        .for_each(|note| output.report(&note));
    gathering.check()?;
    gathering.check_distinct()?;

    let slots = gathering.slots();
    let size = plan.tasks.unwrap_or_else(|| {
        slots
            .iter()
            .fold(0, |sum: u32, &slots| sum.saturating_add(slots))
    });
    if size > MAX_TASKS {
        return Err(Refusal::of_regatta(format!(
            "a job of {size} tasks is too large: the limit is {MAX_TASKS}"
        )));
    }
    check_most(plan, size)?;
    let host_of = hosts::deal(size, &slots, across.map);
    // A host without tasks is kept for tasks to be spawned later.
    if plan.most_tasks <= size {
        gathering.dismiss(|number| host_of.contains(&number));
    }
    let mut addresses: HashMap<u32, IpAddr> = HashMap::new();
    for (number, address) in gathering.find_addresses()? {
        addresses.insert(number, address?);
    }
    if across.verbose {
        describe(&gathering, &host_of, &addresses)
            .iter()
            .for_each(|note| output.report(note));
    }
    prepare(plan, across, before, gathering, host_of, &addresses)
}

/// Fails if a job begins with more tasks than it may have.
pub(crate) fn check_most(plan: &Plan, size: u32) -> Result<(), Refusal> {
    match size > plan.most_tasks {
        false => Ok(()),
        true => Err(Refusal::usage(format!(
            "the job starts with {size} tasks, but --most-tasks allows {}: ask for fewer with -n, or allow more",
            plan.most_tasks
        ))),
    }
}

/// Settings of this process before channels were opened, to be restored for tasks.
struct Before {
    group: Pid,
    files: Option<Rlimit>,
}

/// Returns a description of each host: its tasks, and the address at which it is reached.
fn describe(
    gathering: &Gathering,
    host_of: &[u32],
    addresses: &HashMap<u32, IpAddr>,
) -> Vec<String> {
    gathering
        .hellos()
        .map(|(number, hello)| {
            let ranks: Vec<u32> = (0..).zip(host_of).filter(|&(_, &host)| host == number).map(|(rank, _)| rank).collect();
            let address = addresses.get(&number);
            let interface = hello.candidates.iter().find(|candidate| Some(&candidate.address) == address);
            let by = interface.map_or(String::new(), |interface| {
                format!("{} of the interface {}", interface.address, interface.name)
            });
            format!(
                "{} on the host {}, with {}, reached at {by}: the first address that all other hosts could connect to",
                words::tasks(&ranks),
                gathering.name(number),
                words::count(hello.cores as usize, "core"),
            )
        })
        .collect()
}

/// Returns a new random key.
pub(crate) fn new_key() -> Result<Key, Refusal> {
    Key::random().map_err(|error| {
        Refusal::of_regatta(format!(
            "the system cannot provide random numbers for the job's key: {error}"
        ))
    })
}

/// Returns the preparation for all hosts, without the fields that differ: number, address and share.
fn template(plan: &Plan, across: &Across, host_of: &[u32]) -> Result<Preparation, Refusal> {
    let arguments = plan.arguments.iter();
    let variables = plan.variables();
    Ok(Preparation {
        here: 0,
        host_of: host_of.to_vec(),
        key: new_key()?,
        trusted: across.trusted,
        address: IpAddr::from([127, 0, 0, 1]),
        program: plan.program.as_bytes().to_vec(),
        arguments: arguments
            .map(|argument| argument.as_bytes().to_vec())
            .collect(),
        environment: variables
            .iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .collect(),
        directory: directory(across)?.as_bytes().to_vec(),
        bind: plan.bind.clone(),
        share: Share::default(),
        window: HOST_WINDOW_BYTES,
        most: plan.most_tasks,
        silence: across.silence.as_millis().try_into().unwrap_or(u32::MAX),
        unreachable: across.unreachable_millis(),
        join_name: String::new(),
    })
}

/// Has every host prepare its tasks, and collects the addresses at which they listen. No task is started yet.
fn prepare(
    plan: &Plan,
    across: &Across,
    before: Before,
    mut gathering: Gathering,
    host_of: Vec<u32>,
    addresses: &HashMap<u32, IpAddr>,
) -> Result<Fleet, Refusal> {
    let size = host_of.len() as u32;
    let template = template(plan, across, &host_of)?;
    let shares = gathering.shares(&host_of);
    let job_of = |number: u32| Preparation {
        here: number,
        address: addresses.get(&number).copied().unwrap_or(template.address),
        share: shares.get(&number).copied().unwrap_or_default(),
        ..template.clone()
    };
    gathering.prepare(&host_of, job_of);
    let mut listening = Vec::new();
    let mut tasks = None;
    if let Some(number) = gathering.own {
        let recipe = |count: u32| {
            let recipe = recipe(plan, count, files(plan) + 1, before.group)?;
            let files = before.files.or(recipe.files);
            Ok(Recipe { files, ..recipe })
        };
        let (ours, addresses) = Tasks::prepared(&job_of(number), recipe)?;
        (tasks, listening) = (Some(ours), addresses);
    }
    listening.extend(gathering.prepared()?);
    listening.sort_unstable_by_key(|(rank, _)| *rank);
    // Each host has reported the addresses of its own tasks.
    let addresses: Vec<SocketAddr> = listening.into_iter().map(|(_, address)| address).collect();
    let mut remotes = gathering.take();
    for remote in &mut remotes {
        remote.unstarted = ranks_on(&host_of, remote.number);
        remote.ranks = remote.unstarted.iter().copied().collect();
        if let Some(plan) = failover_plan(plan, across) {
            remote.send(&Order::Failover { plan })?;
        }
    }
    Ok(Fleet {
        size,
        tasks,
        addresses: addresses.clone(),
        names: across.hosts.iter().map(|host| host.name.clone()).collect(),
        host_of,
        here: gathering.own,
        remotes,
        join_socket: None,
        ready: None,
        ground: (plan.most_tasks > size || across.growth.is_some()).then_some(Ground {
            template,
            addresses,
        }),
    })
}

/// Returns the directory in which the tasks run.
fn directory(across: &Across) -> Result<OsString, Refusal> {
    if let Some(directory) = &across.directory {
        return Ok(directory.clone().into_os_string());
    }
    let here = std::env::current_dir().map_err(|error| {
        Refusal::of_regatta(format!(
            "the path of the current directory cannot be found: {error}"
        ))
    })?;
    Ok(here.into_os_string())
}
