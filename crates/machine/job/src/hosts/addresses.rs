//! Which address of a host is used: the first one at which the other hosts reach it, or one at which it is known to be
//! reachable.
//!
//! Hosts that begin together try each other: a few other hosts (its witnesses) look for each host, and the first of its
//! candidates that all of them reach is its address. So an address that is filtered, or that belongs to another host on
//! another network, is found out before any task starts.

use std::net::IpAddr;

use regatta_wire::fields;

use super::departure::Departure;
use super::message::Hello;

/// Maximum number of witnesses of a host: all other hosts in a small job, and enough to detect a firewall in a large
/// one.
const MAX_WITNESSES: usize = 4;

/// An address of an interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name.
    pub name: String,
    /// The address.
    pub address: IpAddr,
}
fields!(Interface { name, address });

/// Random bytes that a beacon sends to everyone who connects. They distinguish hosts that have the same address on
/// different networks.
pub type Token = [u8; 16];

/// A host to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The host's number.
    pub host: u32,
    /// The port of its beacon.
    pub port: u16,
    /// The addresses to try.
    pub candidates: Vec<IpAddr>,
}
fields!(Target {
    host,
    port,
    candidates
});

/// A beacon that was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The host that was looked for.
    pub host: u32,
    /// The address at which something answered.
    pub address: IpAddr,
    /// The answer.
    pub token: Token,
}
fields!(Sight {
    host,
    address,
    token
});

/// The user's choice of interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice(Rule);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Name(String),
    Network(IpAddr, u32),
}

impl Choice {
    /// Parses the name of an interface, an address, or a network such as `10.0.0.0/8`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(Rule::Network(address, bits(address).1)));
        }
        if let Some((address, length)) = text.split_once('/') {
            let network = address
                .parse::<IpAddr>()
                .ok()
                .zip(length.parse::<u32>().ok());
            return network
                .filter(|&(address, length)| length <= bits(address).1)
                .map(|(address, length)| Self(Rule::Network(address, length)))
                .ok_or_else(|| format!("`{text}` is not a network; write it as 10.0.0.0/8"));
        }
        match text.is_empty() || text.contains(char::is_whitespace) {
            true => {
                Err("give the name of an interface (eth0), or a network (10.0.0.0/8)".to_owned())
            }
            false => Ok(Self(Rule::Name(text.to_owned()))),
        }
    }

    fn allows(&self, interface: &Interface) -> bool {
        match &self.0 {
            Rule::Name(name) => *name == interface.name,
            Rule::Network(network, length) => {
                let ((ours, wide), (theirs, width)) = (bits(*network), bits(interface.address));
                let outside = wide - length;
                wide == width && (outside == 128 || (ours ^ theirs) >> outside == 0)
            }
        }
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Rule::Name(name) => f.write_str(name),
            Rule::Network(address, length) => write!(f, "{address}/{length}"),
        }
    }
}

/// Returns an address as a number, and the number of bits of such an address.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

/// Returns the addresses that the user's choice allows, or all if there is no choice.
pub fn chosen(all: &[Interface], choice: Option<&Choice>) -> Vec<IpAddr> {
    let allowed = |interface: &&Interface| choice.is_none_or(|choice| choice.allows(interface));
    all.iter()
        .filter(allowed)
        .map(|interface| interface.address)
        .collect()
}

/// How the address of an arriving host is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressRule {
    /// The hosts that begin with it try its addresses.
    Tried,
    /// The membership reaches it at this address.
    Told(IpAddr),
    /// The address that its name resolves to, if that is one of its own. Otherwise the one at which others are
    /// likeliest to reach it.
    Named,
}

impl AddressRule {
    /// Returns the address of a host with these candidates, whose name resolves to `named`.
    pub(super) fn address(
        self,
        candidates: &[Interface],
        named: &[IpAddr],
        choice: Option<&Choice>,
    ) -> Result<IpAddr, Departure> {
        let allowed = chosen(candidates, choice);
        let first = allowed.first().copied();
        match self {
            Self::Told(address) if allowed.contains(&address) => Ok(address),
            Self::Told(address) if choice.is_none() => Err(Departure::Unreached(format!(
                "does not have the address {address} at which the virtual machine reaches it; something between them may translate addresses"
            ))),
            Self::Told(_) | Self::Tried => first.ok_or_else(|| no_address(choice)),
            Self::Named => {
                let named = named.iter().find(|address| allowed.contains(address));
                named.copied().or(first).ok_or_else(|| {
                    let why = "has no address at which tasks can be reached";
                    Departure::Unreached(why.to_owned())
                })
            }
        }
    }
}

/// Returns the words that name the user's choice, for a sentence about a host's addresses.
fn limit(choice: Option<&Choice>) -> String {
    choice.map_or(String::new(), |choice| {
        format!(" that --interface {choice} allows")
    })
}

fn no_address(choice: Option<&Choice>) -> Departure {
    Departure::Unreached(format!("has no address{}", limit(choice)))
}

/// The number of a host, and the first address at which the others reach it or why there is none.
pub type Found = (u32, Result<IpAddr, Departure>);

/// A search of hosts for each other's addresses, and what they have reached.
#[derive(Debug)]
pub(super) struct Search {
    choice: Option<Choice>,
    /// Each host with all its candidates, and its token.
    hosts: Vec<(Target, Token)>,
    /// Whether only the first candidate of each host is tried.
    is_first: bool,
    seen: Vec<(u32, Sight)>,
}

impl Search {
    /// Starts with the first candidate of each host. It nearly always suffices. Only if it does not, all are tried,
    /// which can take as long as the timeout of packets without an answer.
    pub(super) fn new<'h>(
        hellos: impl Iterator<Item = (u32, &'h Hello)>,
        choice: Option<&Choice>,
    ) -> Self {
        let target = |host, hello: &Hello| Target {
            host,
            port: hello.port,
            candidates: chosen(&hello.candidates, choice),
        };
        let hosts = hellos.map(|(host, hello)| (target(host, hello), hello.token));
        Self {
            choice: choice.cloned(),
            hosts: hosts.collect(),
            is_first: true,
            seen: Vec::new(),
        }
    }

    /// Returns the targets that host `by` is to try.
    pub(super) fn targets(&self, by: u32) -> Vec<Target> {
        let sought = (0..self.hosts.len()).filter(|&at| self.witnesses(at).any(|host| host == by));
        let most = if self.is_first { 1 } else { usize::MAX };
        let targets = sought.map(|at| {
            let target = &self.hosts[at].0;
            let candidates = target.candidates.iter().take(most).copied().collect();
            Target {
                candidates,
                ..target.clone()
            }
        });
        targets.collect()
    }

    /// Returns the witnesses of the host with this index: the hosts that follow it in a ring.
    fn witnesses(&self, at: usize) -> impl Iterator<Item = u32> {
        let count = self.hosts.len();
        (1..count.min(MAX_WITNESSES + 1)).map(move |next| self.hosts[(at + next) % count].0.host)
    }

    /// Records the beacons that a host has reached.
    pub(super) fn saw(&mut self, by: u32, sights: &[Sight]) {
        let sights = sights.iter().map(|sight| (by, sight.clone()));
        self.seen.extend(sights);
    }

    /// Goes on to all candidates if the first ones are not sufficient. Returns false if the search is over.
    pub(super) fn widen(&mut self) -> bool {
        let again = self.is_first && (0..self.hosts.len()).any(|at| self.address(at).is_none());
        if again {
            self.is_first = false;
            self.seen.clear();
        }
        again
    }

    fn reached(&self, by: u32, at: usize, address: IpAddr) -> bool {
        let (target, token) = &self.hosts[at];
        let sight = Sight {
            host: target.host,
            address,
            token: *token,
        };
        self.seen.contains(&(by, sight))
    }

    /// Returns the first address of the host with this index at which all its witnesses have reached it.
    fn address(&self, at: usize) -> Option<IpAddr> {
        let mut candidates = self.hosts[at].0.candidates.iter().copied();
        candidates.find(|&address| self.witnesses(at).all(|by| self.reached(by, at, address)))
    }

    /// Returns the outcome for all hosts.
    pub(super) fn found<'n>(&self, name: impl Fn(u32) -> Option<&'n str>) -> Vec<Found> {
        let found = self.hosts.iter().enumerate().map(|(at, (target, _))| {
            let address = self.address(at);
            let outcome = address.ok_or_else(|| self.why_unreached(at, target, &name));
            (target.host, outcome)
        });
        found.collect()
    }

    fn why_unreached<'n>(
        &self,
        at: usize,
        target: &Target,
        name: impl Fn(u32) -> Option<&'n str>,
    ) -> Departure {
        let (all, choice) = (&target.candidates, self.choice.as_ref());
        if all.is_empty() {
            return no_address(choice);
        }
        let sees_nothing = |by: &u32| !all.iter().any(|&address| self.reached(*by, at, address));
        let by = self.witnesses(at).filter(sees_nothing);
        let by: Vec<&str> = by.filter_map(name).collect();
        let by = match by.is_empty() {
            true => "all other hosts at one address".to_owned(),
            false => by.join(" and "),
        };
        let addresses: Vec<String> = all.iter().map(IpAddr::to_string).collect();
        let (addresses, limit) = (addresses.join(", "), limit(choice));
        Departure::Unreached(format!(
            "cannot be reached from {by}: no connection to a port at {addresses}{limit} succeeded. A firewall between them may close the ports from 32768 to 60999, or another network must be chosen with --interface"
        ))
    }
}

/// Moves the addresses under which other hosts see this host to the front, in the order in which they were reported.
pub(super) fn put_first(
    candidates: &mut [Interface],
    seen: impl DoubleEndedIterator<Item = IpAddr>,
) {
    for address in seen.rev() {
        let mut all = candidates.iter();
        if let Some(at) = all.position(|candidate| candidate.address == address) {
            candidates[..=at].rotate_right(1);
        }
    }
}
