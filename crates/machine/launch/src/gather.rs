//! Bringing the hosts of a job together, before any task starts.
//!
//! Everything here is a *round*: something is said to every host, and each has to answer. The first host that cannot
//! ends it with a sentence that names host, cause and remedy, and nothing has been started anywhere; a host that does not
//! answer in time is such a host. In the meantime the user's signals are handled.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::Timespec;

use crate::bind::Share;
use crate::channel::messages::{Hello, Order, Report, Sight, Target};
use crate::cores;
use crate::owner::{self, Owner};
use crate::plan::Across;
use crate::reach::{self, Beacon};
use crate::refusal::{Refusal, STATUS_REFUSED};
use crate::remote::{self, Remote};
use crate::rsh::{self, Role};
use crate::signals::Signals;

/// As sshd's variable: their address, their port, our address, our port.
pub const CONNECTION: &str = "REGATTA_CONNECTION";
/// How many other hosts try to reach each host: all in a job of few, and enough to find a firewall in one of many.
const WITNESSES: usize = 4;

/// The number of a host, and the first address at which the others reach it, or a sentence.
pub(crate) type Found = (u32, Result<IpAddr, String>);

/// The hosts of a job while they are brought together.
pub(crate) struct Gathering<'a> {
    pub across: &'a Across,
    pub remotes: Vec<Remote>,
    /// This host, when it is one of the job's: its number and what an agent of it would say.
    pub local: Option<(u32, Hello)>,
    beacon: Option<Beacon>,
    pub signals: &'a Signals,
    pub owner: &'a mut Owner,
    /// Things worth telling the user.
    pub notes: Vec<String>,
}

/// Closes what has been opened, unless it was taken over.
impl Drop for Gathering<'_> {
    fn drop(&mut self) {
        remote::part(&mut self.remotes);
    }
}

impl<'a> Gathering<'a> {
    /// Opens a channel to every host but this one; programs there take this role. `here` is the number of this host, when it
    /// takes part whatever it is called.
    pub(crate) fn open(
        across: &'a Across,
        role: Role,
        here: Option<u32>,
        signals: &'a Signals,
        owner: &'a mut Owner,
    ) -> Result<Self, Refusal> {
        let script = script(across, role)?;
        let mut gathering = Self {
            across,
            remotes: Vec::new(),
            local: None,
            beacon: None,
            signals,
            owner,
            notes: Vec::new(),
        };
        for (number, host) in (0..).zip(&across.hosts) {
            if here == Some(number) || across.rsh.is_none() && is_here(&host.name) {
                let beacon = light()?;
                gathering.local = Some((number, hello(&beacon, None)));
                gathering.beacon = Some(beacon);
            } else {
                let mut remote = Remote::open(across, number, &host.name, signals)?;
                remote.link.send_raw(script.as_bytes());
                gathering.remotes.push(remote);
            }
        }
        Ok(gathering)
    }

    /// Waits until every host has an agent that has said what it is. With `patient` the answers are awaited even when a
    /// host has failed.
    pub(crate) fn greet(&mut self, patient: bool) -> Vec<Result<(), Refusal>> {
        let across = self.across;
        let mut notes = Vec::new();
        let mut ready = vec![false; across.hosts.len()];
        let answers = self.round(patient, |remote| {
            let ready = &mut ready[remote.number as usize];
            let hello = greeting(remote, ready, &mut notes)?;
            Ok(hello.map(|hello| remote.greeted(hello)))
        });
        self.notes.append(&mut notes);
        if let Some((_, local)) = &mut self.local {
            // The others know under which address they see us.
            let seen = self
                .remotes
                .iter()
                .filter_map(|remote| remote.hello.as_ref()?.launcher);
            for address in seen.collect::<Vec<_>>().into_iter().rev() {
                if let Some(at) = local
                    .candidates
                    .iter()
                    .position(|candidate| candidate.address == address)
                {
                    local.candidates[..=at].rotate_right(1);
                }
            }
        }
        answers
    }

    /// Refuses two names for one host, unless the names are only pretended to be hosts.
    pub(crate) fn check_distinct(&self) -> Result<(), Refusal> {
        let pretended = |words: &Vec<String>| !words.iter().any(|word| word.contains("{host}"));
        if self.across.rsh.as_ref().is_some_and(pretended) {
            return Ok(());
        }
        let mut seen: HashMap<&str, &str> = HashMap::new();
        for (number, hello) in self.hellos() {
            let name = self.name(number);
            if let Some(other) = seen.insert(&hello.host, name) {
                return Err(Refusal::of_regatta(format!(
                    "{other} and {name} are two names for one host: name it once, as in --host {other}:4 for four tasks"
                )));
            }
        }
        Ok(())
    }

    /// How many tasks each host takes before others get more.
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

    /// Ends the channels to hosts that get no task.
    pub(crate) fn dismiss(&mut self, used: impl Fn(u32) -> bool) {
        let (kept, mut others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.remotes)
            .into_iter()
            .partition(|remote| used(remote.number));
        self.remotes = kept;
        remote::part(&mut others);
        self.local.take_if(|(number, _)| !used(*number));
    }

    /// Finds for each host the first address at which the others reach it. Returns it with the number of the host, or a
    /// sentence.
    pub(crate) fn find_addresses(&mut self) -> Result<Vec<Found>, Refusal> {
        let targets: Vec<Target> = self
            .hellos()
            .map(|(host, hello)| Target {
                host,
                port: hello.port,
                candidates: reach::chosen(&hello.candidates, self.across.interface.as_ref()),
            })
            .collect();
        // Nearly always the first candidate of each does; only when it does not are the others tried, which can take the
        // time of packets that nobody answers.
        let first: Vec<Target> = targets
            .iter()
            .map(|target| Target {
                candidates: target.candidates.iter().take(1).copied().collect(),
                ..target.clone()
            })
            .collect();
        let found = self.try_addresses(&first)?;
        if found.iter().all(|(_, address)| address.is_ok()) {
            return Ok(found);
        }
        self.try_addresses(&targets)
    }

    fn try_addresses(&mut self, targets: &[Target]) -> Result<Vec<Found>, Refusal> {
        let seen = self.look(targets)?;
        let tokens: HashMap<u32, _> = self
            .hellos()
            .map(|(number, hello)| (number, hello.token))
            .collect();
        let reached = |by: u32, target: &Target, address: IpAddr| {
            seen.iter().any(|(witness, sight)| {
                *witness == by
                    && sight.host == target.host
                    && sight.address == address
                    && tokens.get(&target.host) == Some(&sight.token)
            })
        };
        let mut found = Vec::new();
        for (index, target) in targets.iter().enumerate() {
            let witnesses = self.witnesses(targets, index);
            let good = target
                .candidates
                .iter()
                .find(|&&address| witnesses.iter().all(|&by| reached(by, target, address)));
            let answer = good.copied().ok_or_else(|| {
                let deaf = witnesses.iter().filter(|&&by| {
                    !target
                        .candidates
                        .iter()
                        .any(|&address| reached(by, target, address))
                });
                let names: Vec<&str> = deaf.map(|&by| self.name(by)).collect();
                self.unreachable(target, &names)
            });
            found.push((target.host, answer));
        }
        Ok(found)
    }

    /// The hosts that try to reach the one at `index`: those that follow it, in a ring.
    fn witnesses(&self, targets: &[Target], index: usize) -> Vec<u32> {
        let others = targets
            .iter()
            .cycle()
            .skip(index + 1)
            .take(targets.len() - 1);
        others.take(WITNESSES).map(|target| target.host).collect()
    }

    fn unreachable(&self, target: &Target, by: &[&str]) -> String {
        let name = self.name(target.host);
        let addresses: Vec<String> = target.candidates.iter().map(IpAddr::to_string).collect();
        let limit = match &self.across.interface {
            Some(choice) => format!(" that --interface {choice} allows"),
            None => String::new(),
        };
        if addresses.is_empty() {
            return format!("the host {name} has no address{limit}");
        }
        let by = if by.is_empty() {
            "all the others at one address".to_owned()
        } else {
            by.join(" and ")
        };
        format!(
            "the host {name} cannot be reached from {by}: no connection to a port at {}{limit} came through. Does a firewall between them close the ports from 32768 to 60999, or must another network be chosen with --interface?",
            addresses.join(", ")
        )
    }

    /// Lets every host look for those it is a witness of.
    fn look(&mut self, targets: &[Target]) -> Result<Vec<(u32, Sight)>, Refusal> {
        let sought = |by: u32| -> Vec<Target> {
            (0..targets.len())
                .filter(|&index| self.witnesses(targets, index).contains(&by))
                .map(|index| targets[index].clone())
                .collect()
        };
        let orders: HashMap<u32, Vec<Target>> = targets
            .iter()
            .map(|target| (target.host, sought(target.host)))
            .collect();
        for remote in &mut self.remotes {
            let targets = orders.get(&remote.number).cloned().unwrap_or_default();
            remote.send(&Order::Probe { targets })?;
        }
        let mut seen = Vec::new();
        if let Some(number) = self.local.as_ref().map(|(number, _)| *number) {
            let sights = reach::look_for(orders.get(&number).map_or(&[][..], |targets| targets));
            seen.extend(sights.into_iter().map(|sight| (number, sight)));
        }
        for answer in self.ask(|report| match report {
            Report::Probed { seen } => Some(seen),
            _ => None,
        })? {
            let (number, sights) = answer;
            seen.extend(sights.into_iter().map(|sight| (number, sight)));
        }
        Ok(seen)
    }

    /// Waits for the answer of every host to what it was told.
    pub(crate) fn ask<T>(
        &mut self,
        answer: impl Fn(Report) -> Option<T>,
    ) -> Result<Vec<(u32, T)>, Refusal> {
        let numbers: Vec<u32> = self.remotes.iter().map(|remote| remote.number).collect();
        let answers = self.round(false, |remote| match self::answer(remote)? {
            Some(report) => answer(report).map(Some).ok_or_else(|| strange(remote)),
            None => Ok(None),
        });
        let answers: Vec<T> = answers.into_iter().collect::<Result<_, _>>()?;
        Ok(numbers.into_iter().zip(answers).collect())
    }

    /// Waits until `take` has had an answer or an error from every host, or, unless `patient`, an error from one.
    /// Returns them in the order of the hosts; those that were not awaited are errors too.
    pub(crate) fn round<T>(
        &mut self,
        patient: bool,
        mut take: impl FnMut(&mut Remote) -> Result<Option<T>, Refusal>,
    ) -> Vec<Result<T, Refusal>> {
        let mut answers: Vec<Option<Result<T, Refusal>>> =
            self.remotes.iter().map(|_| None).collect();
        self.remotes
            .iter_mut()
            .for_each(|remote| remote.heard = Instant::now());
        loop {
            for (remote, answer) in self.remotes.iter_mut().zip(&mut answers) {
                if remote.link.flush() > 0 {
                    // A program that is being sent keeps the host busy.
                    remote.heard = Instant::now();
                }
                remote.read();
                remote.errors();
                remote.beat_if_greeted();
                if answer.is_none() {
                    let taken = take(remote);
                    *answer = taken
                        .and_then(|taken| or_failed(self.across, remote, taken))
                        .transpose();
                }
            }
            let failed = answers.iter().any(|answer| matches!(answer, Some(Err(_))));
            if answers.iter().all(Option::is_some) || failed && !patient {
                break;
            }
            if let Some(refusal) = self.wait() {
                for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
                    *answer = Some(Err(refusal.clone()));
                }
            }
        }
        // The error that ended the round comes before those of hosts that had no time to answer.
        let first = answers
            .iter()
            .flatten()
            .find_map(|answer| answer.as_ref().err().cloned());
        let unheard = first.unwrap_or_else(|| Refusal::of_regatta("a host was not heard"));
        answers
            .into_iter()
            .map(|answer| answer.unwrap_or_else(|| Err(unheard.clone())))
            .collect()
    }

    /// Waits until something happens. The user's wish to end it comes back as a refusal.
    fn wait(&mut self) -> Option<Refusal> {
        let timeout = Timespec::try_from(Duration::from_millis(100)).ok();
        let mut fds: Vec<_> = self.owner.polls(self.signals).collect();
        fds.extend(self.remotes.iter().flat_map(Remote::polls));
        let _ = regatta_transport::ready::poll(&mut fds, timeout.as_ref());
        drop(fds);
        let (arrived, lives) = self.owner.wishes(self.signals);
        let end = arrived.iter().find(|arrived| owner::is_end(arrived.signal));
        match (end, lives) {
            (None, true) => None,
            (end, _) => {
                let status = end.map_or(STATUS_REFUSED, |arrived| {
                    128 + arrived.signal.as_raw() as u8
                });
                Some(Refusal::new(
                    status,
                    "interrupted while the hosts were brought together; nothing was started",
                ))
            }
        }
    }

    /// Every host that has said what it is, by its number.
    pub(crate) fn hellos(&self) -> impl Iterator<Item = (u32, &Hello)> {
        let local = self.local.iter().map(|(number, hello)| (*number, hello));
        let remotes = self
            .remotes
            .iter()
            .filter_map(|remote| Some((remote.number, remote.hello.as_ref()?)));
        let mut all: Vec<_> = local.chain(remotes).collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter()
    }

    /// The hosts' shares of the cores they may use, when these tasks are on these hosts. A host says first which machine it is.
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

/// The greeting of a host's agent, as soon as there is one. `ready` says whether there is.
pub(crate) fn greeting(
    remote: &mut Remote,
    ready: &mut bool,
    notes: &mut Vec<String>,
) -> Result<Option<Hello>, Refusal> {
    while !*ready {
        match remote.link.line(rsh::MARK) {
            Ok(None) => return Ok(None),
            Ok(Some(line)) => *ready = handle_line(remote, &line, notes)?,
            Err(_) => return Err(strange(remote)),
        }
    }
    match remote.link.next() {
        Ok(Some(Report::Hello { hello })) => Ok(Some(hello)),
        Ok(None) => Ok(None),
        _ => Err(strange(remote)),
    }
}

/// An agent's answer to the last order, if it has answered.
pub(crate) fn answer(remote: &mut Remote) -> Result<Option<Report>, Refusal> {
    loop {
        return match remote.link.next() {
            Ok(Some(Report::Beat {})) => continue,
            Ok(Some(Report::Refused { status, sentence })) => Err(Refusal::new(
                status as u8,
                format!("on the host {}: {sentence}", remote.name),
            )),
            Ok(answer) => Ok(answer),
            Err(_) => Err(strange(remote)),
        };
    }
}

/// An answer, or none yet, or why there will be none.
pub(crate) fn or_failed<T>(
    across: &Across,
    remote: &mut Remote,
    answer: Option<T>,
) -> Result<Option<T>, Refusal> {
    if answer.is_some() {
        return Ok(answer);
    }
    if remote.link.is_ended() {
        let end = remote.end();
        return end.map_or(Ok(None), |end| Err(end.refusal(across, &remote.name)));
    }
    if remote.called && remote.heard.elapsed() >= across.connect {
        return Err(Refusal::of_regatta(format!(
            "the agent on the host {} was called and has said nothing for {} s",
            remote.name,
            across.connect.as_secs_f32()
        )));
    }
    if remote.heard.elapsed() >= across.connect {
        return Err(Refusal::of_regatta(rsh::silence(
            across,
            &remote.name,
            across.connect,
        )));
    }
    Ok(None)
}

/// Handles a line of a host's shell. Returns whether the agent is there.
fn handle_line(remote: &mut Remote, line: &str, notes: &mut Vec<String>) -> Result<bool, Refusal> {
    let name = &remote.name;
    let refused = |sentence: String| Err(Refusal::of_regatta(sentence));
    match line.split_once(' ') {
        Some((rsh::READY, identity)) if identity == rsh::identity() => Ok(true),
        Some((rsh::READY, identity)) => refused(format!(
            "the host {name} runs regatta {identity}, and this is regatta {}: install the same release on both",
            rsh::identity()
        )),
        Some((rsh::TROUBLE, why)) => refused(format!(
            "the host {name} has no regatta {}, and this one could not be sent there: {why}",
            rsh::identity()
        )),
        Some((rsh::SEND, machine)) => {
            let ours = format!("Linux {}", std::env::consts::ARCH);
            if machine != ours {
                return refused(format!(
                    "the host {name} is a {machine}, has no regatta {}, and this program is for {ours}: install Regatta there",
                    rsh::identity()
                ));
            }
            let program = Program::own()?;
            let bytes = std::fs::read(&program.path).map_err(|error| {
                Refusal::of_regatta(format!(
                    "this program cannot be read, to be sent to the host {name}: {error}"
                ))
            })?;
            notes.push(format!(
                "the host {name} has no regatta {}: this one ({:.1} MB) was sent there for the job",
                env!("CARGO_PKG_VERSION"),
                bytes.len() as f64 / 1e6
            ));
            remote.link.send_raw(&bytes);
            Ok(false)
        }
        _ => Ok(false),
    }
}

pub(crate) fn strange(remote: &Remote) -> Refusal {
    Refusal::of_regatta(format!(
        "what comes from the host {} is not what an agent says: does something there write to the standard output of every login?",
        remote.name
    ))
}

/// The script that makes an agent of a shell.
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
        // The link leads to the file even when it has been replaced or removed since.
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

/// Whether a name means this host.
pub(crate) fn is_here(name: &str) -> bool {
    let system = rustix::system::uname();
    let own = system.nodename().to_string_lossy();
    let short = own.split('.').next().unwrap_or_default();
    ["localhost", "127.0.0.1", "::1", &own, short].contains(&name)
}

pub(crate) fn light() -> Result<Beacon, Refusal> {
    Beacon::light().map_err(|error| {
        Refusal::of_regatta(format!(
            "no port can be opened for the other hosts: {error}"
        ))
    })
}

/// How the launcher came here, as sshd tells it, or a daemon that is sshd's like.
pub(crate) fn connection() -> Option<String> {
    let variables = [CONNECTION, "SSH_CONNECTION"];
    variables.iter().find_map(|name| std::env::var(name).ok())
}

/// This host's report about itself. `connection` is ssh's account of how the launcher came here.
pub(crate) fn hello(beacon: &Beacon, connection: Option<&str>) -> Hello {
    let mut words = connection.unwrap_or_default().split(' ');
    let launcher = words.next().and_then(|word| word.parse().ok());
    let known = words.nth(1).and_then(|word| word.parse().ok());
    Hello {
        architecture: std::env::consts::ARCH.to_owned(),
        cores: cores::usable() as u32,
        allowed: allowed(),
        host: identity_of_host(),
        candidates: reach::candidates(known),
        launcher,
        port: beacon.port,
        token: beacon.token,
    }
}

/// As above, of a host that others know already.
pub(crate) fn hello_again() -> Hello {
    Hello {
        architecture: std::env::consts::ARCH.to_owned(),
        cores: cores::usable() as u32,
        allowed: allowed(),
        host: identity_of_host(),
        candidates: Vec::new(),
        launcher: None,
        port: 0,
        token: Default::default(),
    }
}

/// The cores that tasks of this host may use.
fn allowed() -> Vec<u32> {
    let cores = cores::allowed();
    cores.into_iter().map(|core| core as u32).collect()
}

/// Equal for two processes exactly if they are on one host: the machine since it was started, and the namespaces that
/// make containers hosts.
fn identity_of_host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = |name: &str| {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}"));
        link.map_or(String::new(), |link| link.display().to_string())
    };
    format!("{} {} {}", boot.trim(), space("net"), space("pid"))
}
