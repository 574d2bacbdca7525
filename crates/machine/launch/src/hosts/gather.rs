//! Bringing the hosts of a job together, before any task starts.
//!
//! They take each step together: each host answers, sends a greeting, connects to the others, and prepares its tasks.
//! The first host that fails ends the start, with a sentence that names the host, the cause and the remedy. No task has
//! been started by then. A host that does not answer in time fails, too (`crates/machine/job/src/hosts.rs` decides).
//! Meanwhile the user's signals are handled.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use regatta_job::hosts::{Admission, Answer, Departure, Effect, Expected, Question};
use regatta_program::{Refusal, STATUS_REFUSED};
use rustix::time::Timespec;

use crate::channel::messages::{Hello, Order, Preparation};
use crate::channel::remote::Remote;
use crate::hosts::arrivals::{self, Channels};
use crate::hosts::reach::{self, Beacon};
use crate::hosts::rsh::{self, Role};
use crate::plan::Across;
use crate::supervise::owner::{self, Owner};
use crate::system::signals::Signals;
use crate::tasks::bind::Share;
use crate::tasks::cores;

/// Environment variable in the format of sshd's `SSH_CONNECTION`: their address, their port, our address, our port.
pub const CONNECTION: &str = "REGATTA_CONNECTION";
/// The result for a host, given by its number in the list.
pub type Outcome<T> = (u32, Result<T, Refusal>);

/// The hosts of a job while they are brought together.
pub(crate) struct Gathering<'a> {
    pub across: &'a Across,
    channels: Channels,
    /// The number of this host, if it is a host of the job.
    pub own: Option<u32>,
    /// This host's beacon.
    _beacon: Option<Beacon>,
    pub signals: &'a Signals,
    pub owner: &'a mut Owner,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Closes the channels that were not taken.
impl Drop for Gathering<'_> {
    fn drop(&mut self) {
        self.channels.part();
    }
}

/// This host, if it takes part whatever its name is: its number, and its only address if that is given.
pub(crate) type Here = (u32, Option<IpAddr>);

impl<'a> Gathering<'a> {
    /// Opens a channel to every host but this one. Programs there take this role.
    pub(crate) fn open(
        across: &'a Across,
        (role, admission): (Role, Admission),
        here: Option<Here>,
        signals: &'a Signals,
        owner: &'a mut Owner,
    ) -> Result<Self, Refusal> {
        let mut gathering = Self {
            across,
            channels: Channels::new(across, 0, false),
            own: None,
            _beacon: None,
            signals,
            owner,
            notes: Vec::new(),
        };
        for (number, host) in (0..).zip(&across.hosts) {
            let expected = arrivals::expected(across, &host.name, admission);
            let here = here.filter(|(here, _)| *here == number);
            if here.is_some() || across.rsh.is_none() && is_here(&host.name) {
                gathering.take_part(expected, here.and_then(|(_, address)| address))?;
            } else {
                let now = gathering.channels.now();
                gathering.channels.arrivals.expect(now, expected);
            }
        }
        gathering.channels.hear(across, |_| Vec::new());
        let script = script(across, role)?;
        while let Some(effect) = gathering.channels.poll() {
            if let Effect::Open(id) = effect {
                let name = &across.hosts[id as usize].name;
                let mut opened = Remote::open(across, id, name, signals);
                if let Ok(remote) = &mut opened {
                    remote.link.send_raw(script.as_bytes());
                }
                gathering.channels.opened(id, opened);
            }
        }
        gathering.check()?;
        Ok(gathering)
    }

    /// Adds this host, with only this address if it is given.
    fn take_part(&mut self, expected: Expected, only: Option<IpAddr>) -> Result<(), Refusal> {
        let beacon = light()?;
        let mut hello = hello(&beacon, None);
        let is_meant = |address: IpAddr| only.is_none_or(|only| only == address);
        hello.candidates.retain(|one| is_meant(one.address));
        self.own = Some(self.channels.arrivals.expect_own(expected, hello));
        self._beacon = Some(beacon);
        Ok(())
    }

    /// Waits until every host has answered, or until one has failed and the others' outcomes are not wanted. Returns
    /// the outcome of each.
    pub(crate) fn settle(&mut self) -> Vec<Outcome<()>> {
        loop {
            self.channels.hear(self.across, |_| Vec::new());
            self.carry_out();
            if self.channels.arrivals.is_settled() {
                break;
            }
            self.wait();
        }
        let outcomes = self.channels.arrivals.outcomes();
        let outcome = |(number, failed): (u32, Option<(&str, &Departure)>)| {
            (number, failed.map_or(Ok(()), |failed| Err(refusal(failed))))
        };
        outcomes.map(outcome).collect()
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.channels.poll() {
            if let Effect::Note(note) = effect {
                self.notes.push(note);
            }
        }
    }

    /// Fails if a host has failed, with the first such failure.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let failure = self.channels.arrivals.failure();
        failure.map_or(Ok(()), |failed| Err(refusal(failed)))
    }

    /// Fails if a host has two names, unless `--rsh` does not name the host, so that several hosts can be simulated on
    /// one.
    pub(crate) fn check_distinct(&self) -> Result<(), Refusal> {
        let pretended = |words: &Vec<String>| !words.iter().any(|word| word.contains("{host}"));
        let pretended = self.across.rsh.as_ref().is_some_and(pretended);
        let two = self.channels.arrivals.two_names().filter(|_| !pretended);
        two.map_or(Ok(()), |(name, why)| Err(refusal((name, &why))))
    }

    /// Returns how many tasks each host gets before hosts get more than that.
    pub(crate) fn slots(&self) -> Vec<u32> {
        let cores: HashMap<u32, u32> = self
            .hellos()
            .map(|(number, hello)| (number, hello.cores))
            .collect();
        (0..)
            .zip(&self.across.hosts)
            .map(|(number, host)| host.slots.or(cores.get(&number).copied()).unwrap_or(1))
            .collect()
    }

    /// Closes the channels to hosts that get no task.
    pub(crate) fn dismiss(&mut self, used: impl Fn(u32) -> bool) {
        self.channels.arrivals.dismiss(|number| !used(number));
        self.own.take_if(|number| !used(*number));
        self.carry_out();
    }

    /// Returns for each host the first address at which the others reach it.
    pub(crate) fn find_addresses(&mut self) -> Result<Vec<Outcome<IpAddr>>, Refusal> {
        let now = self.channels.now();
        self.channels.arrivals.look(now);
        self.settle();
        self.check()?;
        let found = self.channels.arrivals.found().into_iter();
        let found = found.map(|(number, address)| {
            let address = address.map_err(|why| refusal((self.name(number), &why)));
            (number, address)
        });
        Ok(found.collect())
    }

    /// Starts the preparation of the tasks on every other host. `job_of` returns what a host is sent.
    /// [`Self::prepared`] waits for the end.
    pub(crate) fn prepare(&mut self, host_of: &[u32], job_of: impl Fn(u32) -> Preparation) {
        let now = self.channels.now();
        self.channels.arrivals.prepare(now, host_of);
        while let Some(effect) = self.channels.poll() {
            if let Effect::Ask(id, Question::Prepare { number, .. }) = effect {
                let job = job_of(number);
                self.channels.send(id, &Order::Prepare { job });
            }
        }
    }

    /// Waits until all other hosts are prepared, and returns the addresses of their tasks.
    pub(crate) fn prepared(&mut self) -> Result<Vec<(u32, SocketAddr)>, Refusal> {
        self.settle();
        self.check()?;
        let answers = self.channels.arrivals.answers();
        let addresses = answers.filter_map(|(_, answer)| match answer {
            Answer::Prepared(addresses) => Some(addresses.clone()),
            _ => None,
        });
        Ok(addresses.flatten().collect())
    }

    /// Sends the program of another host a message in the caller's format.
    pub(crate) fn say(&mut self, number: u32, words: Vec<u8>) {
        let now = self.channels.now();
        self.channels.arrivals.say(now, number, words);
        self.carry_out();
    }

    /// Waits for every other host's answer to that message.
    pub(crate) fn answers(&mut self) -> Vec<Outcome<Vec<u8>>> {
        let outcomes = self.settle();
        let answers: HashMap<u32, &Answer> = self.channels.arrivals.answers().collect();
        let words = |number: u32| match answers.get(&number) {
            Some(Answer::Words(words)) => words.clone(),
            _ => Vec::new(),
        };
        let outcomes = outcomes.into_iter();
        outcomes
            .map(|(number, outcome)| (number, outcome.map(|()| words(number))))
            .collect()
    }

    /// Takes the channels, so that they are not closed on drop.
    pub(crate) fn take(&mut self) -> Vec<Remote> {
        self.channels.take()
    }

    /// Waits until something happens. If the user wants to end the start, it is ended.
    fn wait(&mut self) {
        let timeout = Timespec::try_from(Duration::from_millis(100)).ok();
        let mut fds: Vec<_> = self.owner.polls(self.signals).collect();
        fds.extend(self.channels.polls());
        let _ = regatta_connection::ready::poll(&mut fds, timeout.as_ref());
        drop(fds);
        let (arrived, lives) = self.owner.wishes(self.signals);
        let end = arrived.iter().find(|arrived| owner::is_end(arrived.signal));
        if end.is_some() || !lives {
            let status = end.map(|arrived| 128 + arrived.signal.as_raw() as u8);
            self.channels
                .arrivals
                .interrupt(status.unwrap_or(STATUS_REFUSED));
        }
    }

    /// Returns every host that has sent a greeting, by its number.
    pub(crate) fn hellos(&self) -> impl Iterator<Item = (u32, &Hello)> {
        self.channels.arrivals.hellos()
    }

    /// Returns the hosts' shares of the cores that they may use, given the host of each rank. The first word of a
    /// host's identity is its machine.
    pub(crate) fn shares(&self, host_of: &[u32]) -> HashMap<u32, Share> {
        let hosts: Vec<(u32, (&str, &[u32]))> = self
            .hellos()
            .filter_map(|(number, hello)| {
                let machine = hello.host.split(' ').next()?;
                Some((number, (machine, hello.allowed.as_slice())))
            })
            .filter(|(_, (machine, _))| !machine.is_empty())
            .collect();
        Share::of_hosts(&hosts, host_of)
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        &self.across.hosts[number as usize].name
    }
}

/// Returns the refusal for the failure of a host.
pub(crate) fn refusal((name, why): (&str, &Departure)) -> Refusal {
    Refusal::new(why.status().unwrap_or(STATUS_REFUSED), why.sentence(name))
}

/// Returns the script that turns a shell into an agent.
pub(crate) fn script(across: &Across, role: Role) -> Result<String, Refusal> {
    let own = Program::own()?;
    Ok(rsh::script(&own.path, own.size, across.send, role))
}

/// The file of this program.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    size: u64,
}

impl Program {
    pub(crate) fn own() -> Result<Self, Refusal> {
        // This link leads to the file even if that has been replaced or removed.
        let image = PathBuf::from("/proc/self/exe");
        let size = image.metadata().map_err(|error| {
            Refusal::of_regatta(format!("this program cannot find its own file: {error}"))
        })?;
        let path = regatta_trust::own_command();
        Ok(Self {
            path,
            size: size.len(),
        })
    }
}

/// Returns whether a name means this host.
pub(crate) fn is_here(name: &str) -> bool {
    let system = rustix::system::uname();
    let own = system.nodename().to_string_lossy();
    let short = own.split('.').next().unwrap_or_default();
    ["localhost", "127.0.0.1", "::1", &own, short].contains(&name)
}

pub(crate) fn light() -> Result<Beacon, Refusal> {
    Beacon::light().map_err(|error| {
        Refusal::of_regatta(format!(
            "a port cannot be opened for the other hosts: {error}"
        ))
    })
}

/// Returns how the launcher reached this host, according to sshd or to a daemon that acts like sshd.
pub(crate) fn connection() -> Option<String> {
    let variables = [CONNECTION, "SSH_CONNECTION"];
    variables.iter().find_map(|name| std::env::var(name).ok())
}

/// Returns this host's greeting. `connection` is sshd's description of the launcher's connection.
pub(crate) fn hello(beacon: &Beacon, connection: Option<&str>) -> Hello {
    let mut words = connection.unwrap_or_default().split(' ');
    let launcher = words.next().and_then(|word| word.parse().ok());
    let known = words.nth(1).and_then(|word| word.parse().ok());
    Hello {
        candidates: reach::candidates(known),
        launcher,
        port: beacon.port,
        token: beacon.token,
        ..hello_again()
    }
}

/// Returns a greeting without addresses.
pub(crate) fn hello_again() -> Hello {
    let allowed = cores::allowed();
    Hello {
        architecture: std::env::consts::ARCH.to_owned(),
        cores: cores::usable() as u32,
        allowed: allowed.into_iter().map(|core| core as u32).collect(),
        host: identity_of_host(),
        candidates: Vec::new(),
        launcher: None,
        port: 0,
        token: Default::default(),
    }
}

/// Returns an identity that is equal for two processes if and only if they are on one host: the boot id of the machine,
/// and the namespaces that make containers separate hosts.
fn identity_of_host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = |name: &str| {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}"));
        link.map_or(String::new(), |link| link.display().to_string())
    };
    format!("{} {} {}", boot.trim(), space("net"), space("pid"))
}
