//! `regatta up`, `add`, `remove`, `vouch`, `down`: the virtual machine.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use regatta_daemon::commands::{self, Added, Beginning};
use regatta_daemon::{DEFAULT, MachinePlace};
use regatta_launch::bootstrap;
use regatta_launch::channel_keeper::Channels;
use regatta_launch::hosts::Host;
use regatta_launch::slurm::{self, Nodes};
use regatta_launch::{Across, Choice, Refusal};
use serde_json::json;

use crate::hosts::{self, List};
use crate::say;

/// The machine to use, and the form of the answer.
#[derive(Args)]
pub struct Which {
    /// The name of the virtual machine
    #[arg(long = "vm", value_name = "NAME", env = "REGATTA_VM", default_value = DEFAULT)]
    machine: String,

    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

impl Which {
    /// Returns the location of its daemon.
    pub fn place(&self) -> Result<MachinePlace, Refusal> {
        MachinePlace::of(&self.machine)
    }

    /// Prints what was done, in the requested form.
    pub fn print(&self, words: &str, object: &serde_json::Value) -> Result<(), Refusal> {
        match self.json {
            true => say::line(object),
            false => say::line(words),
        }
    }
}

/// How hosts are reached when they are added.
#[derive(Args)]
struct Reaching {
    /// The command that runs `sh` on a host; {host} stands for its name [default: ssh, which must work without prompts]
    #[arg(long, value_name = "COMMAND", env = "REGATTA_RSH", value_parser = hosts::command)]
    rsh: Option<String>,

    /// Network of the hosts: an interface (eth0) or a range of addresses (10.0.0.0/8) [default: the first address of each host that the others can connect to]
    #[arg(long, value_name = "NAME|NETWORK", value_parser = Choice::parse)]
    interface: Option<Choice>,

    /// Send this program to the hosts, even if the right version is installed there
    #[arg(long)]
    send_agent: bool,

    /// How long a host may take to answer [default: 10, or 30 for the nodes of a Slurm job]
    #[arg(long, value_name = "SECONDS", value_parser = crate::run::some_seconds)]
    connect_timeout: Option<Duration>,
}

impl Reaching {
    fn across(&self, hosts: Vec<Host>) -> Across {
        let rsh = self.rsh.as_deref().map(hosts::words);
        Across {
            rsh: rsh.filter(|words| !words.is_empty()),
            interface: self.interface.clone(),
            send: self.send_agent,
            connect: self.connect_timeout.unwrap_or(hosts::CONNECT_TIMEOUT),
            ..Across::new(hosts)
        }
    }

    /// Returns how the nodes of a Slurm job are reached: by `srun`, unless the user has named another way.
    fn across_nodes(&self, nodes: &Nodes) -> Across {
        let mut across = self.across(nodes.others.clone());
        if across.rsh.is_none() {
            across.rsh = Some(nodes.rsh.clone());
            across.connect = self.connect_timeout.unwrap_or(slurm::CONNECT_TIMEOUT);
        }
        across
    }
}

/// Start a virtual machine: a daemon here, and one on each of these hosts.
///
/// Jobs started by `regatta run` then run on all its hosts. Hosts can be added and removed at any time, from any of them; the machine continues when one is lost, this one included, as long as a majority remains. Inside a job of Slurm, and with no host
/// named, the hosts are the job's nodes, and the machine ends with the job.
#[derive(Args)]
#[command(after_help = "\
Examples:
  regatta up alpha beta             this host and two others, by ssh
  regatta run ./solver              a task for each core of all three
  regatta add gamma:4               one more, for four tasks at a time
  regatta hosts --watch             which hosts are in, which do not answer, and why
  regatta down                      ends everything")]
pub struct Up {
    /// Other hosts, as ssh knows them; `alpha:4` allows four tasks at a time on alpha instead of one per core
    #[arg(value_name = "HOST", value_parser = hosts::list)]
    hosts: Vec<List>,

    #[command(flatten)]
    reaching: Reaching,

    /// The name of this host in the machine; `NAME:4` allows four tasks at a time [default: its host name]
    #[arg(long = "as", value_name = "NAME", value_parser = hosts::one)]
    own: Option<Host>,

    /// Seconds of silence after which a host is declared dead
    #[arg(long, value_name = "SECONDS", value_parser = crate::run::silence, default_value = "2")]
    host_timeout: Duration,

    #[command(flatten)]
    which: Which,
}

/// Add hosts to the virtual machine: all of them, or none.
#[derive(Args)]
pub struct Add {
    /// Hosts, as ssh knows them; `alpha:4` allows four tasks at a time on alpha instead of one per core
    #[arg(value_name = "HOST", required = true, value_parser = hosts::list)]
    hosts: Vec<List>,

    #[command(flatten)]
    reaching: Reaching,

    #[command(flatten)]
    which: Which,
}

/// Remove hosts from the virtual machine; tasks that run there are ended.
#[derive(Args)]
pub struct Remove {
    /// Hosts, as `regatta hosts` names them
    #[arg(value_name = "HOST", required = true)]
    hosts: Vec<String>,

    #[command(flatten)]
    which: Which,
}

/// Declare the hosts that do not answer dead, so that this side of a split continues without a majority.
///
/// Only you can know this. If they are alive, both sides continue until they reach each other; then the last agreed majority continues, and this side ends its tasks and joins it.
#[derive(Args)]
pub struct Vouch {
    #[command(flatten)]
    which: Which,
}

/// End the virtual machine: its jobs, and its daemons on all hosts.
#[derive(Args)]
pub struct Down {
    #[command(flatten)]
    which: Which,
}

/// Prints a refusal, and returns the exit status of the command.
pub fn finish(done: Result<(), Refusal>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            // Nothing is printed for a reader who has gone.
            if !refusal.sentence.is_empty() {
                regatta_launch::warn(&refusal.sentence);
            }
            ExitCode::from(refusal.status)
        }
    }
}

fn named(lists: &[List]) -> Vec<Host> {
    lists.iter().flat_map(|list| list.0.clone()).collect()
}

/// Fails if this host cannot start a machine with the given hosts: itself, or a host that is named twice.
fn check_others(arguments: &Up, own: &Host) -> Result<(), Refusal> {
    let others = named(&arguments.hosts);
    regatta_launch::hosts::distinct(&others).map_err(Refusal::usage)?;
    let by_ssh = arguments.reaching.rsh.is_none();
    let is_this = |host: &&Host| host.name == own.name || by_ssh && bootstrap::is_here(&host.name);
    match others.iter().find(is_this) {
        None => Ok(()),
        Some(Host { name, .. }) => Err(Refusal::usage(format!(
            "the host {name} is this host, which is always part of a machine that is started here: omit it. `--as {name}:4` sets its name and number of tasks"
        ))),
    }
}

/// Runs `regatta up`.
pub fn up(arguments: &Up) -> Result<(), Refusal> {
    // The daemon outlives this command, and must not hold inherited files open.
    regatta_launch::close_inherited();
    let place = arguments.which.place()?;
    let reaching = &arguments.reaching;
    let nodes = match arguments.hosts.is_empty() {
        true => slurm::nodes(reaching.rsh.is_none())?,
        false => None,
    };
    let own = own(arguments, nodes.as_ref());
    check_others(arguments, &own)?;
    let name = own.name.clone();
    let tied = nodes.is_some() && reaching.rsh.is_none();
    let mut tie = commands::begin(
        &place,
        &Beginning {
            silence: arguments.host_timeout,
            own,
            interface: reaching.interface.clone(),
            tied,
        },
        regatta_launch::warn,
    )?;
    let across = match &nodes {
        Some(nodes) => reaching.across_nodes(nodes),
        None => reaching.across(named(&arguments.hosts)),
    };
    let say = regatta_launch::warn;
    let added = match across.hosts.is_empty() {
        false => commands::add_first(&place, &across, (&mut tie, tied), say).and_then(
            |(added, channels)| {
                match tied {
                    true => channels.keep(&tie)?,
                    false => channels.end(),
                }
                Ok(added)
            },
        ),
        true => tie.keep().and_then(|()| {
            // This host is the only node: the machine is tied to the job by a channel to this host.
            if tied {
                hold_here(&across, nodes.as_ref(), &tie)?;
            }
            Ok(Vec::new())
        }),
    };
    let added = added.inspect_err(|_| {
        // If the machine cannot be completed, end it.
        let _ = commands::down(&place);
    })?;
    print_added(&arguments.which, &added)?;
    print_up(&arguments.which, &place, &name, added.len())
}

/// Prints that the machine is up, with this many hosts besides this one.
fn print_up(which: &Which, place: &MachinePlace, name: &str, others: usize) -> Result<(), Refusal> {
    let machine = place.machine();
    let words = format!(
        "the virtual machine {machine} is up: {name} and {}",
        regatta_launch::words::count(others, "other host")
    );
    which.print(
        &words,
        &json!({"event": "up", "machine": machine, "hosts": others + 1}),
    )
}

/// Returns this host's part in the machine. A host from which a Slurm job was requested, and which is none of its
/// nodes, takes no tasks.
fn own(arguments: &Up, nodes: Option<&Nodes>) -> Host {
    if let Some(named_so) = &arguments.own {
        return named_so.clone();
    }
    let here = nodes.and_then(|nodes| nodes.here.clone());
    here.unwrap_or_else(|| Host {
        name: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        slots: nodes.map(|_| 0),
        processors: None,
    })
}

fn hold_here(across: &Across, nodes: Option<&Nodes>, tie: &commands::Tie) -> Result<(), Refusal> {
    let here = nodes.and_then(|nodes| nodes.here.clone());
    let across = Across {
        hosts: here.into_iter().collect(),
        ..across.clone()
    };
    Channels::to(&across)?.keep(tie)
}

fn print_added(which: &Which, added: &[Added]) -> Result<(), Refusal> {
    for Added { name, address } in added {
        let object = json!({"event": "added", "host": name, "address": address});
        which.print(&format!("{name} has joined, at {address}"), &object)?;
    }
    Ok(())
}

/// Runs `regatta add`.
pub fn add(arguments: &Add) -> Result<(), Refusal> {
    let across = arguments.reaching.across(named(&arguments.hosts));
    let added = commands::add(&arguments.which.place()?, &across, regatta_launch::warn)?;
    print_added(&arguments.which, &added)
}

/// Runs `regatta remove`.
pub fn remove(arguments: &Remove) -> Result<(), Refusal> {
    let place = arguments.which.place()?;
    for host in &arguments.hosts {
        commands::remove(&place, host)?;
        let object = json!({"event": "removed", "host": host});
        arguments
            .which
            .print(&format!("{host} has left"), &object)?;
    }
    Ok(())
}

/// Runs `regatta vouch`.
pub fn vouch(arguments: &Vouch) -> Result<(), Refusal> {
    let note = commands::vouch(&arguments.which.place()?)?;
    let words = note.unwrap_or_else(|| "this side continues with the hosts that answer".to_owned());
    arguments
        .which
        .print(&words, &json!({"event": "vouched", "note": words}))
}

/// Runs `regatta down`.
pub fn down(arguments: &Down) -> Result<(), Refusal> {
    let place = arguments.which.place()?;
    match commands::down(&place)? {
        None => {
            let words = format!("the virtual machine {} is down", place.machine());
            arguments.which.print(
                &words,
                &json!({"event": "down", "machine": place.machine()}),
            )
        }
        Some(note) => Err(Refusal::of_regatta(format!(
            "the virtual machine {} is down on the hosts that answer, but {note}",
            place.machine()
        ))),
    }
}
