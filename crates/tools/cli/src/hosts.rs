//! The options for the hosts of a job, and how they are reached.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use regatta_daemon::{self as listed, DEFAULT, MachinePlace, Report, commands};
use regatta_launch::hosts::{self, Host, Map};
use regatta_launch::resident::Machine;
use regatta_launch::{Across, Choice, Growth, Refusal, reach_command, slurm};

/// Time limit for the answer of a host, unless the user sets another.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of commands that use several hosts.
#[derive(Args)]
#[command(next_help_heading = "Several hosts")]
pub struct Hosts {
    /// Run on these hosts, such as alpha,beta:4,localhost; `:4` gives a host four tasks instead of one per core
    #[arg(long = "host", value_name = "HOST,...", value_parser = list)]
    host: Vec<List>,

    /// Run on the hosts in this file, one per line: `alpha`, `alpha:4` or `alpha slots=4`
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,

    /// Number of tasks on each host without a number of its own, or on this host if no others are named
    #[arg(long, value_name = "N", value_parser = crate::run::tasks)]
    per_host: Option<u32>,

    /// How ranks are distributed over the hosts
    #[arg(long, value_enum, value_name = "HOW", default_value = "block")]
    map: Dealing,

    /// The command that runs `sh` on a host; {host} stands for its name [default: ssh, which must work without prompts]
    #[arg(long, value_name = "COMMAND", env = "REGATTA_RSH", value_parser = command)]
    rsh: Option<String>,

    /// Network of the tasks: an interface (eth0) or a range of addresses (10.0.0.0/8) [default: the first address of each host that the others can connect to]
    #[arg(long, value_name = "NAME|NETWORK", value_parser = Choice::parse)]
    interface: Option<Choice>,

    /// Working directory of the tasks on other hosts [default: the path of the current directory]
    #[arg(long, value_name = "DIRECTORY", value_parser = directory)]
    directory: Option<PathBuf>,

    /// Do not encrypt messages between hosts; tasks still authenticate each other as members of the job
    #[arg(long)]
    trusted_network: bool,

    /// Send this program to the hosts, even if the right version is installed there
    #[arg(long)]
    send_agent: bool,

    /// How long a host may take to answer when the job starts [default: 10, or 30 in a Slurm job]
    #[arg(long, value_name = "SECONDS", value_parser = crate::run::some_seconds)]
    connect_timeout: Option<Duration>,

    /// Allow more tasks than the Slurm job has room for, spread evenly over its nodes
    #[arg(long)]
    oversubscribe: bool,

    /// Seconds of silence after which a host is considered lost
    #[arg(long, value_name = "SECONDS", value_parser = crate::run::silence, default_value = "10")]
    host_timeout: Duration,

    /// Seconds after which two tasks that cannot reach each other treat each other as dead, or `wait` for no limit
    #[arg(long, value_name = "wait|SECONDS", env = "REGATTA_UNREACHABLE", value_parser = patience, default_value = "wait")]
    unreachable: Patience,

    /// Report the tasks, the cores and the address of each host
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Clone)]
pub struct List(pub Vec<Host>);

#[derive(Clone, Copy, ValueEnum)]
enum Dealing {
    /// Neighbours in rank share a host
    Block,
    /// One to each host in turn
    Round,
}

impl Hosts {
    /// Returns the hosts, if any were named.
    pub fn across(&self) -> Result<Option<Across>, Refusal> {
        Ok(self.named()?.map(|hosts| self.reached_by_shell(hosts)))
    }

    /// Returns the hosts of a job with `tasks` tasks, and the number of tasks. The hosts are those that were named, or
    /// those of a virtual machine, or those that Slurm has allocated, which also gives the default number of tasks.
    pub fn of_job(
        &self,
        tasks: Option<u32>,
        machine: Option<&str>,
    ) -> Result<(Option<Across>, Option<u32>), Refusal> {
        let known = match self.across()? {
            None => self.within(machine)?,
            named => named,
        };
        if known.is_some() {
            return Ok((known, tasks));
        }
        let Some(mut given) = slurm::given(tasks, self.oversubscribe, self.rsh.is_none())? else {
            return Ok((None, tasks.or(self.per_host)));
        };
        if let Some(each) = self.per_host {
            given.set_each(each, self.oversubscribe)?;
        }
        let tasks = tasks.or(Some(given.tasks));
        let across = given.hosts.map(|hosts| {
            let mut across = self.reached_by_shell(hosts);
            if across.rsh.is_none() {
                across.rsh = Some(given.rsh);
                across.connect = self.connect_timeout.unwrap_or(slurm::CONNECT_TIMEOUT);
            }
            across
        });
        Ok((across, tasks))
    }

    fn named(&self) -> Result<Option<Vec<Host>>, Refusal> {
        let mut hosts: Vec<Host> = self.host.iter().flat_map(|list| list.0.clone()).collect();
        if let Some(path) = &self.hostfile {
            let wrong = |error: String| {
                Refusal::usage(format!("the file of hosts {}: {error}", path.display()))
            };
            let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
            hosts.extend(hosts::parse_file(&text).map_err(wrong)?);
        }
        for host in &mut hosts {
            host.slots = host.slots.or(self.per_host);
        }
        Ok(Some(hosts).filter(|hosts| !hosts.is_empty()))
    }

    /// Returns the hosts of a virtual machine: the one named, or the default one if it is up. Its daemon replaces ssh.
    pub fn within(&self, machine: Option<&str>) -> Result<Option<Across>, Refusal> {
        let Some((place, report)) = living(machine)? else {
            return Ok(None);
        };
        let hosts = |host: &&listed::Host| ["here", "up"].contains(&host.state.as_str());
        let living: Vec<&listed::Host> = report.hosts.iter().filter(hosts).collect();
        // A host without tasks is one from which a Slurm job was requested.
        let (taking, others): (Vec<&listed::Host>, Vec<_>) =
            living.iter().partition(|host| host.cores != Some(0));
        let runs = taking.iter().chain(&others);
        let runs = runs.map(|host| host.run.clone()).collect();
        let hosts = taking.iter().map(|host| Host {
            name: name_of(host, &report.hosts),
            slots: self.per_host.or(host.cores.map(u32::from)),
            processors: None,
        });
        let (reach, growth) = by_daemon(&place, &report, runs);
        Ok(Some(Across {
            growth: Some(growth),
            ..self.reached(hosts.collect(), Some(reach))
        }))
    }

    fn reached_by_shell(&self, hosts: Vec<Host>) -> Across {
        self.reached(hosts, self.rsh.as_deref().map(words))
    }

    fn reached(&self, hosts: Vec<Host>, rsh: Option<Vec<String>>) -> Across {
        Across {
            map: match self.map {
                Dealing::Block => Map::Block,
                Dealing::Round => Map::Round,
            },
            rsh: rsh.filter(|words| !words.is_empty()),
            interface: self.interface.clone(),
            directory: self.directory.clone(),
            trusted: self.trusted_network,
            send: self.send_agent,
            connect: self.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            silence: self.host_timeout,
            unreachable: self.unreachable.0,
            verbose: self.verbose,
            ..Across::new(hosts)
        }
    }
}

/// Returns the machine with this name, or the default one if it is up, with its daemon's report of the hosts.
fn living(machine: Option<&str>) -> Result<Option<(MachinePlace, Report)>, Refusal> {
    let place = MachinePlace::of(machine.unwrap_or(DEFAULT))?;
    // Without a named machine, errors mean that there is none: another user's directory with that name is no reason to
    // stop.
    if machine.is_none() && !matches!(place.connect(), Ok(Some(_))) {
        return Ok(None);
    }
    let report = commands::described_hosts(&place)?;
    match report.reason {
        Some(reason) => Err(Refusal::of_regatta(format!(
            "no job can be started in the virtual machine: {reason}"
        ))),
        None => Ok(Some((place, report))),
    }
}

/// Returns the command that leads to a machine's host, and how a job gets further hosts. `known` are the runs that it
/// has.
fn by_daemon(place: &MachinePlace, report: &Report, known: Vec<String>) -> (Vec<String>, Growth) {
    let job = format!("{}:{}", report.here, std::process::id());
    let own = regatta_trust::own_command();
    let reach = reach_command(&own.to_string_lossy(), place.machine(), &job);
    let mut hosts = report.hosts.iter();
    let here = hosts.find(|host| host.state == "here");
    let growth = Growth {
        starter: regatta_hosting::starter,
        machine: Some(place.machine().to_owned()),
        known,
        run: here.map(|host| host.run.clone()).unwrap_or_default(),
        host: report.here.clone(),
        job,
    };
    (reach, growth)
}

/// The machine for a resident job.
pub struct Site {
    pub machine: Machine,
    /// The machine's name, and the name of the job there.
    pub name: String,
    pub job: String,
    /// The hosts that start such jobs in preference to this one.
    pub before: Vec<String>,
}

/// Returns the machine for a resident job: the one that REGATTA_VM names, or the default one if it is up.
pub fn site() -> Result<Option<Site>, Refusal> {
    let named = std::env::var("REGATTA_VM").ok();
    let Some((place, report)) = living(named.as_deref().filter(|name| !name.is_empty()))? else {
        return Ok(None);
    };
    let mut hosts = report.hosts.iter();
    let Some(here) = hosts.find(|host| host.state == "here") else {
        return Ok(None);
    };
    let (reach, growth) = by_daemon(&place, &report, vec![here.run.clone()]);
    let own = Host {
        name: name_of(here, &report.hosts),
        slots: None,
        processors: None,
    };
    // All hosts see the same addresses, so they agree on the order.
    let hosts = report.hosts.iter();
    let before = hosts.filter(|host| host.state == "up" && host.address < here.address);
    let mut before: Vec<&listed::Host> = before.collect();
    before.sort_by_key(|host| host.address);
    let before = before.iter().map(|host| name_of(host, &report.hosts));
    Ok(Some(Site {
        name: place.machine().to_owned(),
        job: growth.job.clone(),
        before: before.collect(),
        machine: Machine {
            address: here.address.ip(),
            across: Across {
                rsh: Some(reach),
                growth: Some(growth),
                ..Across::new(vec![own])
            },
        },
    }))
}

/// How long tasks that cannot reach each other wait, or `None` for no limit.
#[derive(Clone, Copy, Debug)]
pub struct Patience(Option<Duration>);

fn patience(text: &str) -> Result<Patience, String> {
    match text {
        "wait" => Ok(Patience(None)),
        text => crate::run::seconds(text).map(|limit| Patience(Some(limit))),
    }
}

/// Returns the words of a command as a shell splits it, or none if a quote is not closed, which [`command`] refuses.
pub fn words(command: &str) -> Vec<String> {
    shlex::split(command).unwrap_or_default()
}

/// Returns a unique name of this host: its own, or its address if several hosts have that name.
fn name_of(host: &listed::Host, all: &[listed::Host]) -> String {
    // Hosts with that name that are gone do not count.
    let gone = |other: &&listed::Host| ["dead", "left"].contains(&other.state.as_str());
    let living = all.iter().filter(|other| !gone(other));
    match living.filter(|other| other.name == host.name).count() {
        1 if !host.name.is_empty() => host.name.clone(),
        _ => host.address.to_string(),
    }
}

/// Parses one host.
pub fn one(text: &str) -> Result<Host, String> {
    match &hosts::parse_list(text)?[..] {
        [host] => Ok(host.clone()),
        _ => Err("only one name can be given for this host".to_owned()),
    }
}

/// Parses a command that leads to hosts.
pub fn command(text: &str) -> Result<String, String> {
    let words = shlex::split(text).ok_or("it has an unclosed quote")?;
    match words.first() {
        Some(program) if !program.is_empty() => Ok(text.to_owned()),
        _ => Err("it is empty; omit --rsh and unset REGATTA_RSH to use ssh".to_owned()),
    }
}

fn directory(text: &str) -> Result<PathBuf, String> {
    match text.is_empty() {
        false => Ok(PathBuf::from(text)),
        true => {
            Err("it is empty; omit --directory to use the path of the current directory".to_owned())
        }
    }
}

pub fn list(text: &str) -> Result<List, String> {
    hosts::parse_list(text).map(List)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        hosts: Hosts,
    }

    #[test]
    fn a_command_keeps_blanks_in_quotes_and_is_refused_with_an_open_one() {
        let text = "podman exec 'my box'";
        assert_eq!(command(text).as_deref(), Ok(text));
        assert_eq!(words(text), ["podman", "exec", "my box"]);
        let refused = command("podman 'my box").expect_err("an open quote");
        assert!(refused.contains("quote"), "{refused}");
        assert!(command("''").is_err());
    }

    /// Resident jobs have no options: they use the defaults of `Across::new`.
    #[test]
    fn a_silent_host_is_lost_after_the_same_time_in_jobs_with_and_without_options() {
        let line = Line::parse_from(["run"]);
        let given = line.hosts.reached_by_shell(Vec::new());
        assert_eq!(given.silence, Across::new(Vec::new()).silence);
    }
}
