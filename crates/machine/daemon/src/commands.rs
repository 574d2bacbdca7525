//! The user's commands: their requests to the daemon of this host, and how hosts are added.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use regatta_launch::bootstrap::{self, Bootstrap, Outcome};
use regatta_launch::channel_keeper::Channels;
use regatta_launch::hosts::Host;
use regatta_launch::{Across, Choice, Refusal, identity, no_daemon};
use regatta_segment::place::Key;
use regatta_wire::session::{
    ChannelEnd, FromDaemon, FromJob, MAX_REQUEST_BYTES, PREAMBLE, PROTOCOL,
};

use crate::answer::TALK_TIMEOUT;
use crate::ask::{self, Ask, Birth, Charge, JoinConfig, Leader, Opening, Reply, Report, Task};
use crate::birth;
use crate::leftover;
use crate::own_daemon::{self, OwnDaemon};
use crate::talk::{Talk, Wire};
use regatta_launch::place::MachinePlace;

/// Time in which this host must learn the name and the cores of a host that it has heard of.
const FACTS_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of a new machine.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// Time after which a silent host counts as dead.
    pub silence: Duration,
    /// The name of this host, and the number of tasks that it accepts at once, if not one per core.
    pub own: Host,
    /// The choice among the host's addresses.
    pub interface: Option<Choice>,
    /// Whether its daemon leaves when its [`Tie`] is dropped.
    pub tied: bool,
}

/// The daemon of a new machine. Until [`Tie::keep`] it leaves when this is dropped or the process ends. A tied daemon
/// leaves then at any time.
pub struct Tie(Talk);

impl Tie {
    /// Tells the daemon to stay.
    pub fn keep(&mut self) -> Result<(), Refusal> {
        birth::keep(&mut self.0)
    }
}

impl AsFd for Tie {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A host that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
}

/// Creates a machine on this host. The caller keeps it ([`Tie::keep`]) when it is complete. `say` gets notes for the
/// user.
pub fn begin(
    place: &MachinePlace,
    beginning: &Beginning,
    mut say: impl FnMut(&str),
) -> Result<Tie, Refusal> {
    if place.connect()?.is_some() && !leftover::is_there(place) {
        return Err(Refusal::of_regatta(format!(
            "the virtual machine {} is already running: `regatta add HOST` adds hosts to it, `regatta down` ends it, and `--vm NAME` selects another one",
            place.machine()
        )));
    }
    let key = Key::random().map_err(|error| {
        Refusal::of_regatta(format!(
            "the system cannot provide random numbers for a key: {error}"
        ))
    })?;
    let addresses = bootstrap::own_addresses(beginning.interface.as_ref());
    let address = addresses
        .first()
        .copied()
        .ok_or_else(|| Refusal::of_regatta("this host has no address that --interface allows"))?;
    let (talk, note) = birth::start(&Charge {
        machine: place.machine().to_owned(),
        key,
        silence_ms: crate::journal::milliseconds(beginning.silence),
        name: beginning.own.name.clone(),
        cores: beginning.own.slots,
        address,
        contacts: Vec::new(),
        tied: beginning.tied,
    })?;
    note.iter().for_each(|note| say(note));
    Ok(Tie(talk))
}

/// Adds hosts: all of them, or none if one cannot be added; the error then has a sentence for each such host. `say`
/// gets notes for the user.
pub fn add(
    place: &MachinePlace,
    across: &Across,
    say: impl FnMut(&str),
) -> Result<Vec<Added>, Refusal> {
    add_with(place, across, (None, false), say).map(|(added, channels)| {
        channels.end();
        added
    })
}

/// Does what `add` does, for a new machine, which is kept when all hosts belong to it. If `tied`, the daemons of the
/// hosts leave when the channels end.
pub fn add_first(
    place: &MachinePlace,
    across: &Across,
    (tie, tied): (&mut Tie, bool),
    say: impl FnMut(&str),
) -> Result<(Vec<Added>, Channels), Refusal> {
    add_with(place, across, (Some(tie), tied), say)
}

fn add_with(
    place: &MachinePlace,
    across: &Across,
    (mut tie, tied): (Option<&mut Tie>, bool),
    mut say: impl FnMut(&str),
) -> Result<(Vec<Added>, Channels), Refusal> {
    let config = join_config(place)?;
    if let Some(hindrance) = &config.hindrance {
        return Err(Refusal::of_regatta(format!(
            "no host can be added: {hindrance}"
        )));
    }
    for host in &across.hosts {
        let is_here = across.rsh.is_none() && bootstrap::is_here(&host.name);
        if is_here || config.hosts.iter().any(|(name, _)| *name == host.name) {
            return Err(Refusal::of_regatta(format!(
                "the host {} is already in the virtual machine; no host was added",
                host.name
            )));
        }
    }
    let fixed = (!config.alone).then(|| config.address.ip());
    bootstrap::with(across, &config.name, fixed, |bootstrap| {
        let (greeted, notes) = bootstrap.greet();
        notes.iter().for_each(|note| say(note));
        all_or_none(greeted)?;
        let addresses = all_or_none(bootstrap.addresses()?)?;
        let here = across.hosts.len() as u32;
        let address_of = |number: u32| {
            let found = addresses.iter().find(|(host, _)| *host == number);
            found.map_or(config.address.ip(), |(_, address)| *address)
        };
        let mut config = config.clone();
        if config.alone && address_of(here) != config.address.ip() {
            expect_done(ask_here(
                place,
                Ask::Move {
                    address: address_of(here),
                },
                TALK_TIMEOUT,
            )?)?;
            config = join_config(place)?;
        }
        let begun = begin_on(bootstrap, across, place, &config, tied, address_of)?;
        begun.iter().for_each(|note| say(note));
        // If the command ends before this point, it leaves nothing behind.
        tie.as_mut().map_or(Ok(()), |tie| tie.keep())?;
        keep_on(bootstrap, across)?;
        let silence = Duration::from_millis(config.silence_ms);
        await_names(bootstrap, place, &across.hosts, silence * 2 + TALK_TIMEOUT);
        let hosts = (0..).zip(&across.hosts);
        Ok(hosts
            .map(|(number, host)| Added {
                name: host.name.clone(),
                address: address_of(number),
            })
            .collect())
    })
}

/// Makes every host start its daemon, and waits until all belong to the machine. Returns notes for the user.
fn begin_on(
    bootstrap: &mut Bootstrap<'_>,
    across: &Across,
    place: &MachinePlace,
    config: &JoinConfig,
    tied: bool,
    address_of: impl Fn(u32) -> IpAddr,
) -> Result<Vec<String>, Refusal> {
    for (number, host) in (0..).zip(&across.hosts) {
        let charge = Charge {
            machine: place.machine().to_owned(),
            key: config.key.clone(),
            silence_ms: config.silence_ms,
            name: host.name.clone(),
            cores: host.slots,
            address: address_of(number),
            contacts: contacts(&config.hosts, number as usize),
            tied,
        };
        bootstrap.send(number, ask::encode(&Birth::Begin(charge)));
    }
    let begun = all_or_none(bootstrap.receive_all())?;
    let note = |(_, bytes): (u32, Vec<u8>)| match ask::decode::<Reply>(&bytes) {
        Ok(Reply::Note(note)) => Some(note),
        _ => None,
    };
    Ok(begun.into_iter().filter_map(note).collect())
}

/// Tells the daemons to stay.
fn keep_on(bootstrap: &mut Bootstrap<'_>, across: &Across) -> Result<(), Refusal> {
    for number in 0..across.hosts.len() as u32 {
        bootstrap.send(number, ask::encode(&Birth::Keep));
    }
    all_or_none(bootstrap.receive_all()).map(drop)
}

/// Waits until this host knows the names of the new ones, as the next command may use them. The names are spread by
/// gossip, which may be lost; they are requested again once the host timeout has passed. The wait is limited, since a
/// host may be lost meanwhile, and Ctrl-C ends it; the hosts are added in any case.
fn await_names(
    bootstrap: &mut Bootstrap<'_>,
    place: &MachinePlace,
    hosts: &[Host],
    limit: Duration,
) {
    let Ok(mut talk) = open(place, Ask::Hosts { watch: true }, limit) else {
        return;
    };
    loop {
        let heard = talk.receive_unless::<Reply>(bootstrap.signals());
        let report = match heard {
            Ok(Reply::Hosts(report)) => report,
            Err(error)
                if error.kind() == ErrorKind::Interrupted && !bootstrap.is_asked_to_end() =>
            {
                continue;
            }
            _ => return,
        };
        let described = |host: &Host| {
            let mut found = report.hosts.iter();
            found.any(|found| found.name == host.name && is_described(found))
        };
        if hosts.iter().all(described) {
            return;
        }
    }
}

/// Returns the hosts that new host `number` meets: the host that was asked, and a few others, different ones for each
/// new host.
fn contacts(hosts: &[(String, SocketAddr)], number: usize) -> Vec<(String, SocketAddr)> {
    let (first, others) = hosts.split_at(1.min(hosts.len()));
    let turned = others.iter().cycle().skip(number).take(others.len().min(7));
    first.iter().chain(turned).cloned().collect()
}

/// Returns the results of all hosts, or the reasons of all that failed.
fn all_or_none<T>(outcomes: Vec<Outcome<T>>) -> Result<Vec<(u32, T)>, Refusal> {
    let mut reasons: Vec<Refusal> = Vec::new();
    let mut good = Vec::new();
    for (number, outcome) in outcomes {
        match outcome {
            Ok(value) => good.push((number, value)),
            Err(refusal) => reasons.push(refusal),
        }
    }
    let Some(first) = reasons.first() else {
        return Ok(good);
    };
    let mut sentences: Vec<&str> = reasons
        .iter()
        .map(|reason| reason.sentence.as_str())
        .collect();
    sentences.dedup();
    Err(Refusal {
        status: first.status,
        sentence: format!("{}; no host was added", sentences.join("; ")),
    })
}

/// Sends a request to the daemon of this host and returns the reply.
fn ask_here(place: &MachinePlace, what: Ask, limit: Duration) -> Result<Reply, Refusal> {
    let mut talk = open(place, what, limit)?;
    talk.receive().map_err(|error| lost(&error))
}

fn open(place: &MachinePlace, what: Ask, limit: Duration) -> Result<Talk, Refusal> {
    let mut talk = connect(place, limit)?;
    ask_on(&mut talk, what)?;
    Ok(talk)
}

fn ask_on(talk: &mut Talk, what: Ask) -> Result<(), Refusal> {
    let opening = Opening {
        identity: identity(),
        from: None,
        to: None,
        ask: what,
    };
    talk.send_line(&opening).map_err(|error| lost(&error))
}

fn connect(place: &MachinePlace, limit: Duration) -> Result<Talk, Refusal> {
    let stream = place.connect()?;
    let stream = stream.ok_or_else(|| no_daemon(place.machine()))?;
    let wire = Wire::local(stream).map_err(|error| lost(&error))?;
    Ok(Talk::new(wire, limit))
}

fn lost(error: &std::io::Error) -> Refusal {
    Refusal::of_regatta(format!(
        "the daemon of this host does not answer ({error}): if it hangs, end it with `pkill -KILL regatta-daemon` and add this host again"
    ))
}

/// Returns the note in the reply, if there is one. Fails if the request was refused.
fn expect_done(reply: Reply) -> Result<Option<String>, Refusal> {
    match reply {
        Reply::Done => Ok(None),
        Reply::Note(note) => Ok(Some(note)),
        Reply::Refused(sentence) => Err(Refusal::of_regatta(sentence)),
        _ => Err(Refusal::of_regatta(
            "the daemon's answer does not match the request",
        )),
    }
}

fn join_config(place: &MachinePlace) -> Result<JoinConfig, Refusal> {
    match ask_here(place, Ask::JoinConfig, TALK_TIMEOUT)? {
        Reply::JoinConfig(config) => Ok(*config),
        other => Err(expect_done(other).err().unwrap_or_else(|| {
            Refusal::of_regatta("the daemon's answer does not match the request")
        })),
    }
}

/// Makes a host leave.
pub fn remove(place: &MachinePlace, host: &str) -> Result<(), Refusal> {
    let what = Ask::Remove {
        host: host.to_owned(),
    };
    expect_done(ask_here(place, what, Duration::from_secs(30))?).map(|_| ())
}

/// Makes the daemon of this host leave, and waits until its process has ended.
pub(crate) fn leave(place: &MachinePlace, limit: Duration) -> Result<(), Refusal> {
    end(place, Ask::Leave, limit).map(drop)
}

/// Ends the machine, and returns when the process of this host's daemon has ended. Returns a note for the user, if
/// there is one.
pub fn down(place: &MachinePlace) -> Result<Option<String>, Refusal> {
    end(place, Ask::Down, Duration::from_secs(40))
}

/// Asks the daemon of this host to end and waits for its end. The daemon has to answer within `limit`.
fn end(place: &MachinePlace, what: Ask, limit: Duration) -> Result<Option<String>, Refusal> {
    let mut talk = connect(place, limit)?;
    let daemon = OwnDaemon::of(&talk);
    ask_on(&mut talk, what)?;
    let note = expect_done(talk.receive().map_err(|error| lost(&error))?)?;
    own_daemon::await_end(talk, daemon, own_daemon::EXIT_TIMEOUT).map_err(
        |refusal| match &note {
            Some(note) => Refusal::of_regatta(format!("{}. {note}", refusal.sentence)),
            None => refusal,
        },
    )?;
    Ok(note)
}

/// Declares that the hosts which do not answer are dead.
pub fn vouch(place: &MachinePlace) -> Result<Option<String>, Refusal> {
    expect_done(ask_here(place, Ask::Vouch, TALK_TIMEOUT)?)
}

/// Returns the machine, as this host sees it.
pub fn hosts(place: &MachinePlace) -> Result<Report, Refusal> {
    report(ask_here(place, Ask::Hosts { watch: false }, TALK_TIMEOUT)?)
}

/// Returns the hosts of the machine of `place` once this host knows the name and the cores of each, or as they are known
/// after [`FACTS_TIMEOUT`]. A host that was added from another one may be known by its address alone for a moment.
pub fn described_hosts(place: &MachinePlace) -> Result<Report, Refusal> {
    let mut talk = open(place, Ask::Hosts { watch: true }, TALK_TIMEOUT)?;
    let mut known = report(talk.receive().map_err(|error| lost(&error))?)?;
    talk.limit(Some(FACTS_TIMEOUT));
    while known.reason.is_none() && !known.hosts.iter().all(is_described) {
        match talk.receive() {
            Ok(reply) => known = report(reply)?,
            Err(_) => break,
        }
    }
    Ok(known)
}

/// Returns whether the name and the cores of a host are known. Those of a host that is not up are not awaited.
fn is_described(host: &ask::Host) -> bool {
    host.cores.is_some() || !["here", "up"].contains(&host.state.as_str())
}

fn report(reply: Reply) -> Result<Report, Refusal> {
    match reply {
        Reply::Hosts(report) => Ok(report),
        other => Err(expect_done(other).err().unwrap_or_else(|| {
            Refusal::of_regatta("the daemon's answer does not match the request")
        })),
    }
}

/// Calls `tell` with the machine now and after each change, until `tell` returns `false` or the daemon has ended.
pub fn watch(place: &MachinePlace, mut tell: impl FnMut(Report) -> bool) -> Result<(), Refusal> {
    let mut talk = open(place, Ask::Hosts { watch: true }, TALK_TIMEOUT)?;
    loop {
        match talk.receive::<Reply>() {
            Ok(reply) => {
                if !tell(report(reply)?) {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(lost(&error)),
        }
        talk.limit(None);
    }
}

/// The tasks that run in the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The tasks of its jobs.
    pub tasks: Vec<Task>,
    /// The leaders of jobs whose launchers' hosts are lost.
    pub leaders: Vec<Leader>,
    /// The hosts that did not answer.
    pub silent: Vec<String>,
}

/// Returns the tasks that run in the machine, on all hosts.
pub fn tasks(place: &MachinePlace) -> Result<Running, Refusal> {
    match ask_here(place, Ask::Tasks, TALK_TIMEOUT)? {
        Reply::Tasks {
            tasks,
            leaders,
            silent,
        } => Ok(Running {
            tasks,
            leaders,
            silent,
        }),
        other => Err(expect_done(other).err().unwrap_or_else(|| {
            Refusal::of_regatta("the daemon's answer does not match the request")
        })),
    }
}

/// Sends a signal to a job or a task.
pub fn kill(place: &MachinePlace, target: &str, signal: i32) -> Result<(), Refusal> {
    let what = Ask::Kill {
        target: target.to_owned(),
        signal,
    };
    expect_done(ask_here(place, what, TALK_TIMEOUT * 2)?).map(|_| ())
}

/// Runs a shell on a host, on standard input and output, as ssh would. Returns its status. The shell ends if this host
/// is lost.
pub fn shell(place: &MachinePlace, host: &str, job: &str) -> Result<u8, Refusal> {
    let mut talk = connect(place, TALK_TIMEOUT * 3)?;
    let open = FromJob::Open {
        host: host.to_owned(),
        job: job.to_owned(),
        detachable: false,
    };
    let hello = FromJob::Hello {
        protocol: PROTOCOL,
        identity: identity(),
    };
    let asked = talk
        .send(&PREAMBLE)
        .and_then(|()| talk.send_message(&hello))
        .and_then(|()| talk.send_message(&open));
    asked.map_err(|error| lost(&error))?;
    loop {
        let answer = talk.receive_message(MAX_REQUEST_BYTES);
        match answer.map_err(|error| lost(&error))? {
            FromDaemon::Hello { .. } => {}
            FromDaemon::Opened { .. } => break,
            FromDaemon::Refused { sentence } => return Err(Refusal::of_regatta(sentence)),
            FromDaemon::NotOpened { end } => {
                return Err(Refusal::of_regatta(why_not_opened(host, end)));
            }
            _ => {
                return Err(Refusal::of_regatta(
                    "the daemon's answer does not match the request",
                ));
            }
        }
    }
    let (wire, arrived) = talk.into_parts();
    crate::console::run(host, wire, arrived)
}

/// Returns the message for a person whose channel was cut before it was open.
fn why_not_opened(host: &str, end: ChannelEnd) -> String {
    match end {
        ChannelEnd::HostLost { cause } => {
            format!("the host {host} is lost, so no shell was started there: {cause}")
        }
        ChannelEnd::HostGone { sentence } | ChannelEnd::Cut { sentence } => sentence,
        ChannelEnd::Renewed { why } => format!("{why}; this host rejoins as a new host"),
        ChannelEnd::ShellEnded { .. } => format!("the shell on the host {host} has ended"),
    }
}
