//! Arriving hosts: those that a job begins with, those that join later, and those of a machine that begins.
//!
//! ```text
//!            Open          line of the agent      greeting         Ask           answer
//! Wanted ──────────▶ Shell ────────────────▶ Agent ────────▶ Idle ──────▶ Asked ────────▶ Idle
//!   ▲                  │ closed, refused, silent: one way out of each state, with one cause
//!   └──────────────────┘ or again, if the admission allows it
//! ```
//!
//! [`Arrivals`] decides. The differences between the ways into a job are data ([`Admission`]). Hosts that begin
//! together take each step together: [`Arrivals::is_settled`] returns whether all have taken it, and the caller that
//! has started them then asks for the next one. A host that arrives alone goes on by itself: it is prepared as soon as
//! it has sent its greeting, and joins when it is ready.
//!
//! Promises:
//!
//! - Every host that is expected joins, or is lost with one cause: the first.
//! - If one of the hosts that begin together fails, all are ended, unless their admission says that the outcome of each
//!   is wanted.
//! - Nothing is sent to a host after its channel was closed. Each opened channel is closed, or its host joins.
//! - A host that was refused is not opened again.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

mod addresses;
mod admission;
mod departure;
mod host;
mod message;
#[cfg(test)]
mod tests;

pub use addresses::{AddressRule, Choice, Found, Interface, Sight, Target, Token, chosen};
pub use admission::Admission;
pub use departure::Departure;
pub use host::{Expected, Program};
pub use message::{Answer, Effect, Hello, Input, MARK, Question, READY, SEND, TROUBLE};

use addresses::Search;
use host::{Host, HostState, Next};

/// A host of the job: its identity as reported by its agent, and its name.
pub type Member = (String, String);

/// All hosts that are arriving.
#[derive(Debug)]
pub struct Arrivals {
    program: Program,
    choice: Option<Choice>,
    /// The hosts of the job. None of them can join again.
    pub members: Vec<Member>,
    hosts: BTreeMap<u32, Host>,
    ids: u32,
    next: u32,
    /// The search of the hosts that begin together for each other's addresses.
    search: Option<Search>,
    /// The first host of those that begin together that has failed.
    failed: Option<u32>,
    effects: VecDeque<Effect>,
}

impl Arrivals {
    /// Returns the state without hosts. Hosts must run `program`, and `choice` limits their addresses. `next` is the
    /// number of the next host that arrives alone.
    pub fn new(program: Program, choice: Option<Choice>, next: u32) -> Self {
        Self {
            program,
            choice,
            next,
            members: Vec::new(),
            hosts: BTreeMap::new(),
            ids: 0,
            search: None,
            failed: None,
            effects: VecDeque::new(),
        }
    }

    /// Adds a host that is to arrive. Returns its id here. Hosts that begin together have the ids from 0.
    pub fn expect(&mut self, now: Duration, expected: Expected) -> u32 {
        self.ids += 1;
        self.hosts.insert(self.ids - 1, Host::new(expected, now));
        self.ids - 1
    }

    /// Adds this host to those that begin, under the next id.
    pub fn expect_own(&mut self, expected: Expected, hello: Hello) -> u32 {
        let id = self.expect(Duration::ZERO, expected);
        if let Some(own) = self.hosts.get_mut(&id) {
            (own.state, own.hello, own.is_own) = (HostState::Idle, Some(hello), true);
        }
        id
    }

    /// Returns a new number in the job, for a host that is to arrive.
    pub fn new_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Closes the channels of hosts that are no longer wanted, and forgets them.
    pub fn dismiss(&mut self, unwanted: impl Fn(u32) -> bool) {
        let hosts = self.hosts.iter();
        let closed = hosts.filter(|(id, host)| unwanted(**id) && host.has_channel());
        self.effects
            .extend(closed.map(|(id, _)| Effect::Close(*id)));
        self.hosts.retain(|id, _| !unwanted(*id));
        self.failed.take_if(|failed| unwanted(*failed));
    }

    /// Handles an event of a host. Ignored if the host is lost or unknown.
    pub fn handle(&mut self, now: Duration, id: u32, input: Input) {
        let Some(host) = self.hosts.get_mut(&id).filter(|host| !host.is_lost()) else {
            return;
        };
        let together = host.expected.admission.together;
        match host.handle(now, input, &self.program) {
            Ok(Next::Nothing) => {}
            Ok(Next::SendProgram) => self.effects.push_back(Effect::SendProgram(id)),
            Ok(Next::Note(note)) => self.effects.push_back(Effect::Note(note)),
            Ok(Next::Again) => self.effects.push_back(Effect::Close(id)),
            Ok(Next::Greeted(_)) if together => {}
            Ok(Next::Greeted(named)) => match self.question_to(id, &named) {
                Ok(question) => self.ask(now, id, question),
                Err(why) => self.lose(id, why),
            },
            Ok(Next::Answered) if together => self.advance_search(now),
            Ok(Next::Answered) => {
                let joined = self.hosts.remove(&id);
                let number = joined.and_then(|host| host.expected.number);
                let joined = number.map(|number| Effect::Joined(id, number));
                self.effects.extend(joined);
            }
            Err(why) => {
                self.lose(id, why);
                // It may be the last one that the others have waited for.
                self.advance_search(now);
            }
        }
    }

    /// Opens the channels that are due, and gives up hosts that have been silent for too long.
    pub fn tick(&mut self, now: Duration) {
        let mut silent = Vec::new();
        for (&id, host) in &mut self.hosts {
            if matches!(host.state, HostState::Wanted(at) if at <= now) {
                host.state = HostState::Opening;
                self.effects.push_back(Effect::Open(id));
            }
            silent.extend(host.silence(now).map(|why| (id, why)));
        }
        if !silent.is_empty() {
            silent.into_iter().for_each(|(id, why)| self.lose(id, why));
            self.advance_search(now);
        }
    }

    /// Returns the time at which [`Self::tick`] is due.
    pub fn deadline(&self) -> Option<Duration> {
        self.hosts.values().filter_map(Host::deadline).min()
    }

    /// Extends all timeouts by `away`, because this process did not run for that time and received nothing.
    pub fn slept(&mut self, away: Duration) {
        self.hosts.values_mut().for_each(|host| host.slept(away));
    }

    /// Ends the arrival of all hosts, because the user wants to end with this status.
    pub fn interrupt(&mut self, status: u8) {
        for id in self.ids_of(|host| host.is_under_way()) {
            self.lose(id, Departure::Interrupted(status));
        }
    }

    /// Returns the next effect. Skips opening or asking hosts that were lost meanwhile.
    pub fn poll(&mut self) -> Option<Effect> {
        loop {
            let effect = self.effects.pop_front()?;
            let is_gone = |id: &u32| self.hosts.get(id).is_none_or(Host::is_lost);
            match &effect {
                Effect::Open(id) | Effect::Ask(id, _) | Effect::SendProgram(id) if is_gone(id) => {}
                _ => return Some(effect),
            }
        }
    }

    /// Records that a host does not arrive, for this cause. The other hosts may be ended with it.
    fn lose(&mut self, id: u32, why: Departure) {
        let Some(host) = self.hosts.get(&id).filter(|host| !host.is_lost()) else {
            return;
        };
        let admission = host.expected.admission;
        self.end(id, why);
        if !admission.together {
            self.hosts.remove(&id);
            return;
        }
        self.failed.get_or_insert(id);
        if !admission.hears_all {
            self.search = None;
            for other in self.ids_of(|host| !host.is_lost() && !host.is_own) {
                self.end(other, Departure::Abandoned);
            }
        }
    }

    fn end(&mut self, id: u32, why: Departure) {
        let Some(host) = self.hosts.get_mut(&id) else {
            return;
        };
        let closed = host.has_channel().then_some(Effect::Close(id));
        self.effects.extend(closed);
        self.effects.push_back(Effect::Lost(id, why.clone()));
        host.state = HostState::Lost(why);
    }

    fn ask(&mut self, now: Duration, id: u32, question: Question) {
        let host = self.hosts.get_mut(&id);
        if let Some(host) = host.filter(|host| host.state == HostState::Idle) {
            host.ask(now, question.clone());
            self.effects.push_back(Effect::Ask(id, question));
        }
    }

    fn ids_of(&self, is_meant: impl Fn(&Host) -> bool) -> Vec<u32> {
        let meant = self.hosts.iter().filter(|(_, host)| is_meant(host));
        meant.map(|(id, _)| *id).collect()
    }

    /// Returns the question to a host that arrives alone, once it has sent its greeting: to prepare for tasks that will
    /// be started. `named` are the addresses that its name resolves to.
    fn question_to(&mut self, id: u32, named: &[IpAddr]) -> Result<Question, Departure> {
        let host = self.hosts.get(&id);
        let Some((host, hello)) = host.and_then(|host| Some((host, host.hello.as_ref()?))) else {
            return Err(Departure::Nonsense);
        };
        // A host that is being prepared counts as one of the job.
        let coming = self.hellos().filter(|(other, _)| *other != id);
        let coming = coming.map(|(other, hello)| (&hello.host, &self.hosts[&other].expected.name));
        let members = self.members.iter().map(|(identity, name)| (identity, name));
        let mut all = members
            .chain(coming)
            .filter(|(identity, _)| **identity == hello.host);
        let other = all.next().map(|(_, name)| name.clone());
        drop(all);
        if let Some(name) = other {
            return Err(Departure::Member(name));
        }
        let rule = host.expected.admission.address;
        let address = rule.address(&hello.candidates, named, self.choice.as_ref())?;
        let number = host.expected.number;
        let number = number.unwrap_or_else(|| self.new_number());
        if let Some(host) = self.hosts.get_mut(&id) {
            host.expected.number = Some(number);
        }
        Ok(Question::Prepare {
            number,
            address: Some(address),
            ranks: Vec::new(),
        })
    }
}

/// Operations on hosts that begin together.
impl Arrivals {
    /// Returns whether every host has taken the last step or has failed.
    pub fn is_settled(&self) -> bool {
        !self.hosts.values().any(Host::is_under_way)
    }

    /// Returns the first host that has failed, and why.
    pub fn failure(&self) -> Option<(&str, &Departure)> {
        self.hosts.get(&self.failed?).and_then(Host::why_lost)
    }

    /// Returns each host but this one. For a host that has failed, it includes its name and the cause.
    pub fn outcomes(&self) -> impl Iterator<Item = (u32, Option<(&str, &Departure)>)> {
        let others = self.hosts.iter().filter(|(_, host)| !host.is_own);
        others.map(|(id, host)| (*id, host.why_lost()))
    }

    /// Returns the greeting of every host that has sent one and has not failed, in their order.
    pub fn hellos(&self) -> impl Iterator<Item = (u32, &Hello)> {
        let left = self.hosts.iter().filter(|(_, host)| !host.is_lost());
        left.filter_map(|(id, host)| Some((*id, host.hello.as_ref()?)))
    }

    /// Returns the last answers of all hosts.
    pub fn answers(&self) -> impl Iterator<Item = (u32, &Answer)> {
        let hosts = self.hosts.iter();
        hosts.filter_map(|(id, host)| Some((*id, host.answer.as_ref()?)))
    }

    /// Returns whether the agent of a host is running (instead of its shell), or `None` if the host has no channel.
    pub fn has_agent(&self, id: u32) -> Option<bool> {
        let open = self.hosts.get(&id).filter(|host| host.has_channel())?;
        Some(open.state != HostState::Shell)
    }

    /// Returns the second of two names that mean the same host, and the cause, if there are such names.
    pub fn two_names(&self) -> Option<(&str, Departure)> {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        self.hellos().find_map(|(id, hello)| {
            let name = self.hosts[&id].expected.name.as_str();
            let other = seen.insert(&hello.host, name)?;
            Some((name, Departure::TwoNames(other.to_owned())))
        })
    }

    /// Starts the search for addresses. [`Self::found`] has the outcome when all hosts have settled.
    pub fn look(&mut self, now: Duration) {
        let seen = self.hellos().filter_map(|(_, hello)| hello.launcher);
        let seen: Vec<IpAddr> = seen.collect();
        let own = self.hosts.values_mut().find(|host| host.is_own);
        if let Some(hello) = own.and_then(|own| own.hello.as_mut()) {
            // The other hosts report under which address they see this host.
            addresses::put_first(&mut hello.candidates, seen.into_iter());
        }
        self.search = Some(Search::new(self.hellos(), self.choice.as_ref()));
        self.ask_search(now);
    }

    fn ask_search(&mut self, now: Duration) {
        let Some(search) = &self.search else { return };
        // Ask the other hosts first: this host's own search takes time.
        let others = self.ids_of(|host| !host.is_own);
        let all = others.into_iter().chain(self.ids_of(|host| host.is_own));
        let all: Vec<_> = all.map(|id| (id, search.targets(id))).collect();
        for (id, targets) in all {
            self.ask(now, id, Question::Probe(targets));
        }
    }

    fn advance_search(&mut self, now: Duration) {
        let is_settled = self.is_settled();
        let Some(search) = self.search.as_mut().filter(|_| is_settled) else {
            return;
        };
        for (id, host) in &self.hosts {
            if let Some(Answer::Probed(sights)) = &host.answer {
                search.saw(*id, sights);
            }
        }
        if search.widen() {
            self.ask_search(now);
        }
    }

    /// Returns for each host the first address at which the others reach it, or why there is none.
    pub fn found(&self) -> Vec<Found> {
        let name = |id: u32| self.hosts.get(&id).map(|host| host.expected.name.as_str());
        let search = self.search.iter();
        search.flat_map(|search| search.found(name)).collect()
    }

    /// Asks every other host to prepare its tasks. `host_of` has the host of each rank.
    pub fn prepare(&mut self, now: Duration, host_of: &[u32]) {
        self.search = None;
        for number in self.ids_of(|host| !host.is_own) {
            let ranks = (0..).zip(host_of).filter(|(_, host)| **host == number);
            let question = Question::Prepare {
                number,
                address: None,
                ranks: ranks.map(|(rank, _)| rank).collect(),
            };
            self.ask(now, number, question);
        }
    }

    /// Sends another host a question in a format of the caller's.
    pub fn say(&mut self, now: Duration, id: u32, words: Vec<u8>) {
        self.search = None;
        if self.hosts.get(&id).is_some_and(|host| !host.is_own) {
            self.ask(now, id, Question::Words(words));
        }
    }
}
