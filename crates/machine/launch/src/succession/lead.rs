//! Becoming the launcher of a job whose launcher's host is lost.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regatta_job::Registry;
use regatta_job::failover::{
    Absence, Candidate, FailoverPlan, Handover, SuccessionOrder, Takeover, known_runs, latest,
};
use regatta_program::Refusal;
use rustix::fs::{FileType, Mode, OFlags};

use super::following::Following;
use super::rally::{Channels, Found, Rally, Seeker};
use super::{LEADER, OWN, form, handover};
use crate::channel::Link;
use crate::channel::messages::Preparation;
use crate::hosts::fleet::Ground;
use crate::hosts::host_starter::NewHostStarter;
use crate::hosts::rsh::reach_command;
use crate::hosts::{Host, Map};
use crate::plan::{Across, Growth, OnFailure, Plan};
use crate::resident::place::MachinePlace;
use crate::streams::output::Output;
use crate::supervise::owner::Owner;
use crate::supervise::resuming::{self, Outcome, Stock};
use crate::system::signals::Signals;
use crate::tasks::Tasks;
use crate::tasks::worker::Worker;
use regatta_job::hosts::Choice;

/// Everything that an agent passes to itself when it becomes the launcher.
pub(crate) struct AgentResources {
    pub link: Link,
    pub signals: Signals,
    pub owner: Owner,
    pub tasks: Tasks,
    /// The agent's worker, without the tasks.
    pub worker: Worker,
    pub template: Preparation,
    pub following: Following,
}

/// Takes the job over, and supervises it to its end. `starter` starts hosts that tasks request.
pub(crate) fn lead(mut resources: AgentResources, starter: NewHostStarter) -> Result<(), Refusal> {
    let _ = rustix::thread::set_name(LEADER);
    let known = Refusal::of_regatta("an agent that should lead its job lacks the state for it");
    let (Some(line), Some(registry), (Some(mut news), Some(mut told))) = (
        resources.following.follower.take_order(),
        resources.following.follower.replica.take(),
        resources.following.take_news(),
    ) else {
        return Err(known);
    };
    let will = resources.following.follower.plan.clone();
    let place = write_to_file(&will.job, &resources.template.join_name);
    let own = told.view.own.clone().unwrap_or_default();
    let (here, others): (Vec<Candidate>, Vec<Candidate>) = line
        .candidates
        .iter()
        .cloned()
        .partition(|candidate| candidate.run == own);
    let here = here.into_iter().next().ok_or(known)?;
    let mut output = Output::new(form(&will))?;
    let rally = Seeker {
        plan: &will,
        signals: &resources.signals,
        owner: &mut resources.owner,
        news: &mut news,
        told: &mut told,
        tether: &mut resources.link,
        tasks: resources.tasks.job().tasks(),
        registry: &registry,
        output: &mut output,
        channels: Channels::default(),
    }
    .rally(&others)?;
    let registry = latest(registry, rally.found.iter().map(|found| &found.answer.copy));
    let usual = across(&will, &resources.template, &registry);
    news.close();
    let cause = told.causes.get(&line.launcher);
    let cause = cause.map_or("it is lost", String::as_str);
    output.report(&format!(
        "the launcher of the job {} is lost with its host {}; {} takes over{place}",
        will.job, line.name, here.name
    ));
    let runs = others
        .iter()
        .map(|candidate| candidate.run.clone())
        .chain([own]);
    let known = known_runs(&registry, runs);
    let growth = growth(&will, &here, known, starter);
    let plan = plan(&will, &resources, usual, growth);
    let cause = cause.to_owned();
    let name = here.name.clone();
    let stock = take_stock(resources, registry, (line, cause), rally, here)?;
    let outcome = resuming::resume(&plan, output, stock)?;
    report_outcome(&outcome, &will.job, &name);
    Ok(())
}

/// Writes the last line of the launcher's log.
fn report_outcome(outcome: &Outcome, job: &str, host: &str) {
    match outcome {
        Outcome::Ended(status) => {
            crate::warn(&format!("the job {job} has ended with status {status}"));
        }
        Outcome::LeftToOthers => {
            crate::warn(&format!(
                "{host} has left the job {job} to the other hosts, which may continue it"
            ));
        }
    }
}

/// Redirects this process's output to a file, since there is no terminal: the log of a resident job, or
/// `regatta-JOB.out` in the current directory, the home, or /tmp. Returns the end of a sentence with its path.
fn write_to_file(job: &str, join_name: &str) -> String {
    let name: String = job
        .chars()
        .map(|letter| match letter {
            letter if letter.is_alphanumeric() || "-._".contains(letter) => letter,
            _ => '-',
        })
        .collect();
    let name = format!("regatta-{name}.out");
    let folders = [
        std::env::current_dir().ok(),
        std::env::var_os("HOME").map(PathBuf::from),
        Some(PathBuf::from("/tmp")),
    ];
    let mut named = folders
        .into_iter()
        .flatten()
        .map(|folder| folder.join(&name));
    let log = MachinePlace::of_job(join_name)
        .ok()
        .filter(|_| !join_name.is_empty());
    let log = log.and_then(|place| Some((place.append_to_log()?, place.log())));
    let found = log.or_else(|| named.find_map(|path| Some((append_to(&path)?, path))));
    let (file, sentence) = match found {
        Some((file, path)) => {
            let sentence = format!(", and the output of the tasks goes to {}", path.display());
            (Some(file), sentence)
        }
        None => {
            let file = File::options().write(true).open("/dev/null");
            (file.ok().map(OwnedFd::from), String::new())
        }
    };
    if let Some(file) = file {
        let _ = rustix::stdio::dup2_stdout(&file);
        let _ = rustix::stdio::dup2_stderr(&file);
    }
    sentence
}

/// Opens a file of this user for appending, which another host of the job may have created.
fn append_to(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).ok()?;
    let found = rustix::fs::fstat(&file).ok()?;
    let ours = found.st_uid == rustix::process::geteuid().as_raw();
    let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    (ours && regular).then_some(file)
}

/// Returns the hosts of the job, and how they are reached from here.
fn across(will: &FailoverPlan, template: &Preparation, registry: &Registry) -> Across {
    let count = registry.hosts().iter().map(|host| host.number + 1).max();
    let mut hosts: Vec<Host> = (0..count.unwrap_or(0))
        .map(|_| Host {
            name: String::new(),
            slots: None,
            processors: None,
        })
        .collect();
    for host in registry.hosts() {
        hosts[host.number as usize].name.clone_from(&host.name);
    }
    let interface = will.interface.as_deref();
    Across {
        map: Map::Block,
        rsh: Some(reach_command(OWN, &will.machine, &will.job)),
        interface: interface.and_then(|choice| Choice::parse(choice).ok()),
        directory: Some(PathBuf::from(OsString::from_vec(
            template.directory.clone(),
        ))),
        trusted: template.trusted,
        connect: Duration::from_millis(u64::from(will.connect)),
        silence: Duration::from_millis(u64::from(template.silence)),
        unreachable: template
            .unreachable
            .map(|millis| Duration::from_millis(u64::from(millis))),
        verbose: will.verbose,
        ..Across::new(hosts)
    }
}

fn growth(
    will: &FailoverPlan,
    here: &Candidate,
    known: Vec<String>,
    starter: NewHostStarter,
) -> Growth {
    Growth {
        starter,
        machine: Some(will.machine.clone()),
        known,
        host: here.name.clone(),
        run: here.run.clone(),
        job: will.job.clone(),
    }
}

fn plan(will: &FailoverPlan, resources: &AgentResources, across: Across, growth: Growth) -> Plan {
    let template = &resources.template;
    let text = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
    Plan {
        arguments: template.arguments.iter().map(text).collect(),
        across: Some(Across {
            growth: Some(growth),
            ..across
        }),
        bind: template.bind.clone(),
        form: form(will),
        timeout: resources.following.remaining(),
        on_failure: match will.goes_on {
            true => OnFailure::Continue,
            false => OnFailure::Stop,
        },
        grace: Duration::from_millis(u64::from(will.grace)),
        most_tasks: template.most,
        stays: !template.join_name.is_empty(),
        ..Plan::new(text(&template.program), resources.tasks.job().first())
    }
}

/// Combines the states of all agents, and enters all tasks into this host's table.
fn take_stock(
    resources: AgentResources,
    mut registry: Registry,
    (order, cause): (SuccessionOrder, String),
    rally: Rally,
    here: Candidate,
) -> Result<Stock, Refusal> {
    let mut tasks = resources.tasks;
    let local = resources.following.follower.local;
    let own = Handover {
        host: here.number,
        ..handover(&mut tasks, &local)
    };
    let (mut handovers, mut remotes) = (vec![own], Vec::new());
    for Found { mut remote, answer } in rally.found {
        let Some(state) = answer.into_state() else {
            continue;
        };
        remote.starts = state.starts;
        remote.unstarted.clone_from(&state.handover.unstarted);
        remote.running = state.handover.running.iter().copied().collect();
        handovers.push(Handover {
            host: remote.number,
            ..state.handover
        });
        remotes.push(remote);
    }
    let launcher = (order.name.as_str(), Absence::Gone(cause));
    let program = &resources.template.program;
    let takeover = Takeover::new(&mut registry, handovers, rally.lost, launcher, program);
    for world in &takeover.worlds {
        if world.first == tasks.job().tasks() {
            tasks
                .enter(world)
                .map_err(|error| Refusal::of_regatta(error.to_string()))?;
        }
    }
    Ok(Stock {
        tether: resources.link,
        signals: resources.signals,
        owner: resources.owner,
        tasks,
        worker: resources.worker,
        registry,
        takeover,
        ground: Ground {
            template: resources.template,
            addresses: local.addresses,
        },
        candidates: order.candidates,
        remotes,
        here,
    })
}
