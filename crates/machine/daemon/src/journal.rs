//! The events of the machine, as this host saw them: a bounded number, in memory, for commands.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use regatta_membership::{Cause, Event, Facts, HostId, Renewal};
use regatta_wire::session::ChannelEnd;

use crate::ask::{Happening, Host};

/// Maximum number of events kept, and of hosts that are gone.
const MAX_ENTRIES: usize = 256;

/// A host that is gone.
struct Gone {
    host: HostId,
    name: String,
    cause: String,
    left: bool,
    /// Whether it may live: it is only known that it does not answer.
    silent: bool,
    at: Duration,
}

/// The latest events of the machine, as this host saw them.
#[derive(Default)]
pub(crate) struct Journal {
    facts: HashMap<HostId, Facts>,
    gone: VecDeque<Gone>,
    /// When each suspected host was first suspected.
    suspected: HashMap<HostId, Duration>,
    up: HashMap<HostId, Duration>,
    entries: VecDeque<(Duration, String)>,
    /// Reason why neither side goes on, if the two sides of a split know of each other.
    deadlock: Option<String>,
    /// Number of entries that have been dropped.
    dropped: u64,
}

impl Journal {
    pub(crate) fn describe(&mut self, host: HostId, facts: Facts) {
        self.facts.insert(host, facts);
    }

    /// Returns a host's name, or its address until the name is known.
    pub(crate) fn name(&self, host: &HostId) -> String {
        match self.facts.get(host).filter(|facts| !facts.name.is_empty()) {
            Some(facts) => facts.name.clone(),
            None => host.address().to_string(),
        }
    }

    pub(crate) fn facts(&self, host: &HostId) -> Option<&Facts> {
        self.facts.get(host)
    }

    /// Returns the number of entries so far.
    pub(crate) fn count(&self) -> u64 {
        self.dropped + self.entries.len() as u64
    }

    pub(crate) fn note(&mut self, now: Duration, what: String) {
        self.entries.push_back((now, what));
        if self.entries.len() > MAX_ENTRIES {
            self.entries.pop_front();
            self.dropped += 1;
        }
    }

    /// Records an event.
    pub(crate) fn take(&mut self, now: Duration, event: &Event) {
        match event {
            Event::HostUp(host) => {
                self.up.insert(*host, now);
                self.gone.retain(|gone| !gone.host.same_place(host));
            }
            Event::Described(host, facts) => {
                self.describe(*host, facts.clone());
                self.gone.retain(|gone| gone.name != facts.name);
            }
            Event::Suspected(host) => _ = self.suspected.insert(*host, now),
            Event::Cleared(host) => _ = self.suspected.remove(host),
            Event::Dead(host, cause) => {
                let silent = *cause == Cause::Silent;
                let since = self.suspected.get(host);
                let asked = since.map(|&since| now.saturating_sub(since));
                self.bury(now, *host, &why(*cause, asked), (false, silent));
            }
            Event::Left(host) => self.bury(now, *host, "it was removed or ended", (true, false)),
            Event::Deadlock(address) => self.deadlock = Some(deadlock(*address)),
            Event::Majority { .. } | Event::Renewed { .. } => self.deadlock = None,
            _ => {}
        }
        if let Some(what) = self.sentence(event) {
            self.note(now, what);
        }
    }

    fn bury(&mut self, at: Duration, host: HostId, cause: &str, (left, silent): (bool, bool)) {
        let name = self.name(&host);
        self.suspected.remove(&host);
        self.up.remove(&host);
        self.facts.remove(&host);
        self.gone.push_front(Gone {
            host,
            name,
            cause: cause.to_owned(),
            left,
            silent,
            at,
        });
        self.gone.truncate(MAX_ENTRIES);
    }

    fn sentence(&self, event: &Event) -> Option<String> {
        let gone = |host: &HostId| {
            let found = self.gone.iter().find(|gone| gone.host == *host);
            found.map_or_else(|| host.address().to_string(), |gone| gone.name.clone())
        };
        Some(match event {
            // The host is reported once its description is known.
            Event::HostUp(_) | Event::Examine(_) => return None,
            Event::Described(host, facts) => {
                format!("the host {} has joined, at {}", facts.name, host.address())
            }
            Event::Suspected(host) => format!(
                "the host {} does not answer and is suspected",
                self.name(host)
            ),
            Event::Cleared(host) => format!("the host {} answers again", self.name(host)),
            Event::Dead(host, cause) => {
                let found = self.gone.iter().find(|gone| gone.host == *host);
                let observed = found.map_or_else(|| why(*cause, None), |gone| gone.cause.clone());
                format!("the host {} is lost: {observed}", gone(host))
            }
            Event::Left(host) => format!("the host {} has left", gone(host)),
            Event::Minority { seen, known } => minority(*seen, *known),
            Event::Majority { seen, known } => {
                format!(
                    "{seen} of {known} hosts answer: this host is in a majority and accepts work"
                )
            }
            Event::Renewed { why, .. } => {
                format!(
                    "{}: the tasks that ran here are ended, and this host rejoins as a new host",
                    renewal(*why)
                )
            }
            Event::Deadlock(address) => deadlock(*address),
            Event::Ended => ENDED.to_owned(),
            Event::Departed => "this host has left".to_owned(),
        })
    }

    /// Returns the name of a host that may be gone.
    pub(crate) fn known_name(&self, host: &HostId) -> String {
        match self.gone.iter().find(|gone| gone.host == *host) {
            Some(gone) => gone.name.clone(),
            None => self.name(host),
        }
    }

    /// Returns the reason why neither side goes on, if the two sides of a split know of each other.
    pub(crate) fn deadlock(&self) -> Option<&str> {
        self.deadlock.as_deref()
    }

    /// Returns the hosts that count as dead because they do not answer, with their names.
    pub(crate) fn silent(&self) -> Vec<(HostId, String)> {
        let silent = self.gone.iter().filter(|gone| gone.silent);
        silent.map(|gone| (gone.host, gone.name.clone())).collect()
    }

    /// Returns the state of a host that is not gone, and since when it has been in it.
    pub(crate) fn state(&self, host: &HostId, suspected: bool) -> (&'static str, Duration) {
        let since =
            |times: &HashMap<HostId, Duration>| times.get(host).copied().unwrap_or_default();
        match suspected {
            true => ("suspected", since(&self.suspected)),
            false => ("up", since(&self.up)),
        }
    }

    /// Returns the hosts that are gone, the most recent first.
    pub(crate) fn gone(&self, now: Duration) -> impl Iterator<Item = Host> {
        self.gone.iter().map(move |gone| Host {
            name: gone.name.clone(),
            address: gone.host.address(),
            run: run(&gone.host),
            cores: None,
            architecture: None,
            state: if gone.left { "left" } else { "dead" }.to_owned(),
            cause: Some(gone.cause.clone()),
            since_ms: milliseconds(now.saturating_sub(gone.at)),
        })
    }

    /// Returns the reason for the end of a channel to a host that is gone.
    pub(crate) fn channel_end(&self, host: &HostId) -> ChannelEnd {
        let gone = self.gone.iter().find(|gone| gone.host == *host);
        match gone {
            Some(gone) if !gone.left => ChannelEnd::HostLost {
                cause: gone.cause.clone(),
            },
            Some(gone) => ChannelEnd::HostGone {
                sentence: format!("the host {} has left the machine", gone.name),
            },
            None => ChannelEnd::HostGone {
                sentence: format!("the host at {} is gone", host.address()),
            },
        }
    }

    /// Returns the runs of hosts that are gone, and the causes.
    pub(crate) fn causes(&self) -> Vec<(String, String)> {
        let gone = self.gone.iter();
        gone.map(|gone| (run(&gone.host), gone.cause.clone()))
            .collect()
    }

    /// Returns what happened to the host of this name, for the middle of a sentence.
    pub(crate) fn epitaph(&self, name: &str) -> String {
        match self.gone.iter().find(|gone| gone.name == name) {
            Some(gone) if gone.left => " any more".to_owned(),
            Some(gone) => format!(" any more ({})", gone.cause),
            None => String::new(),
        }
    }

    pub(crate) fn happenings(&self, now: Duration) -> Vec<Happening> {
        let numbered = (self.dropped..).zip(&self.entries);
        let happening = |(number, (at, what)): (u64, &(Duration, String))| Happening {
            number,
            ago_ms: milliseconds(now.saturating_sub(*at)),
            what: what.clone(),
        };
        numbered.map(happening).collect()
    }
}

/// Returns a text that identifies a run of a daemon.
pub(crate) fn run(host: &HostId) -> String {
    format!("{}/{}.{}", host.address(), host.session(), host.nonce())
}

pub(crate) fn milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

/// Returns the observation for which a host counts as dead. `asked` is the time for which it has been asked again
/// without an answer, if known.
fn why(cause: Cause, asked: Option<Duration>) -> String {
    let observed = match cause {
        Cause::Silent => {
            let asked = asked.map_or(String::new(), |asked| {
                let seconds = asked.as_secs_f32();
                format!(" (repeated requests got no answer for {seconds:.1} s)")
            });
            return format!("it has been silent for too long{asked}, so it is dead or cut off");
        }
        Cause::DaemonGone => "its daemon has ended; the host itself answers",
        Cause::Replaced => "its daemon was started again",
        Cause::GaveWay => "the network was split, and this host joined the other side",
    };
    observed.to_owned()
}

/// Reason for which a daemon ends without having been told to.
pub(crate) const ENDED: &str = "while this host was cut off, the daemons of the other hosts ended, and with them the machine: this daemon ends too, and `regatta up` starts a new machine";

/// Reason why a host that is not on the others' roll accepts no work.
pub(crate) const OUTSIDE: &str = "the other hosts have not yet agreed that this host is in the machine, so it accepts no work; they agree as soon as a majority of them answers. If that takes long, `regatta hosts` on one of them shows which hosts do not answer, and `regatta vouch` declares those dead";

/// Returns the reason why a host rejoins under a new identity, for the beginning of a sentence.
pub(crate) fn renewal(why: Renewal) -> &'static str {
    match why {
        Renewal::DeclaredDead => {
            "the other hosts declared this host dead, because it did not answer"
        }
        Renewal::WronglyVouched => {
            "`regatta vouch` on this side of a split declared the other hosts dead, but they are alive, and a majority of them continues"
        }
        Renewal::BothVouched => {
            "`regatta vouch` was given on both sides of a split, and the other side continues, because it has the oldest host, or needed fewer vouches"
        }
        Renewal::GaveWay => "the network was split, and the other side continues",
    }
}

/// Returns the reason why neither side goes on although the network works again.
fn deadlock(address: SocketAddr) -> String {
    format!(
        "this host and the one at {address} are on two sides of a split, one of which was vouched for, and neither side has a majority of its hosts: no host accepts work until `regatta vouch` is given on a host of the side that is to continue. The other side then ends its tasks and joins it"
    )
}

/// Returns the reason why a host in a minority accepts no work.
pub(crate) fn minority(seen: usize, known: usize) -> String {
    format!(
        "only {seen} of {known} hosts answer, which is not a majority: this host accepts no work, because the other hosts may be alive and continue without it. It continues by itself when they answer; if you know that they are dead, run `regatta vouch`"
    )
}
