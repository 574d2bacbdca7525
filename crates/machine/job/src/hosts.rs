//! Hosts that arrive: those that a job begins with, those that come later, and those of a machine that begins.
//!
//! ```text
//!            Open          line of the agent      greeting         Ask           answer
//! Wanted ──────────▶ Shell ────────────────▶ Agent ────────▶ Idle ──────▶ Asked ────────▶ Idle
//!   ▲                  │ closed, refused, silent: one way out of each state, with one cause
//!   └──────────────────┘ or once more, if its admission says so
//! ```
//!
//! [`Arrivals`] decides; what differs between the ways into a job is data ([`Admission`]). Hosts that begin together take each step together:
//! [`Arrivals::is_settled`] says when all have taken it, and whoever has begun them asks for the next one. A host that comes alone goes on by
//! itself: it is prepared as soon as it has said what it is, and joins when it is ready.
//!
//! Promises:
//!
//! - Every host that is expected joins, or is lost with one cause: the first.
//! - Of hosts that begin together the first that fails ends all, unless they are to be heard to the end.
//! - Nothing is sent to a host after its channel was closed, and a channel that was opened is closed or joins.
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

/// A host of the job: its identity, as its agent has said it, and its name.
pub type Member = (String, String);

/// All hosts that are on their way into a job.
#[derive(Debug)]
pub struct Arrivals {
    program: Program,
    choice: Option<Choice>,
    /// The hosts of the job, none of which can come once more.
    pub members: Vec<Member>,
    hosts: BTreeMap<u32, Host>,
    ids: u32,
    next: u32,
    /// The hosts that begin together look for each other.
    search: Option<Search>,
    /// The first of these that has failed.
    failed: Option<u32>,
    effects: VecDeque<Effect>,
}

impl Arrivals {
    /// None so far. Hosts must run this program; their addresses are limited by the user's choice. `next` is the number of the next host that
    /// comes alone.
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

    /// A host is to arrive. Returns the number that it has here: hosts that begin together are counted from 0.
    pub fn expect(&mut self, now: Duration, expected: Expected) -> u32 {
        self.ids += 1;
        self.hosts.insert(self.ids - 1, Host::new(expected, now));
        self.ids - 1
    }

    /// This host takes part in what begins, under the next number.
    pub fn expect_own(&mut self, expected: Expected, hello: Hello) -> u32 {
        let id = self.expect(Duration::ZERO, expected);
        if let Some(own) = self.hosts.get_mut(&id) {
            (own.state, own.hello, own.is_own) = (HostState::Idle, Some(hello), true);
        }
        id
    }

    /// The number in the job of a host that is to come.
    pub fn new_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Nobody wants these hosts any more: their channels are closed, and they are forgotten.
    pub fn dismiss(&mut self, unwanted: impl Fn(u32) -> bool) {
        let hosts = self.hosts.iter();
        let closed = hosts.filter(|(id, host)| unwanted(**id) && host.has_channel());
        self.effects
            .extend(closed.map(|(id, _)| Effect::Close(*id)));
        self.hosts.retain(|id, _| !unwanted(*id));
        self.failed.take_if(|failed| unwanted(*failed));
    }

    /// Something has happened to a host. An event of one that is not on its way counts for nothing.
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
                // It may be the last that the others have waited for.
                self.advance_search(now);
            }
        }
    }

    /// Time has passed: channels are opened whose time has come, and hosts given up that have been silent.
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

    /// The time at which [`Self::tick`] is due.
    pub fn deadline(&self) -> Option<Duration> {
        self.hosts.values().filter_map(Host::deadline).min()
    }

    /// This process did not run for so long: nobody could be heard.
    pub fn slept(&mut self, away: Duration) {
        self.hosts.values_mut().for_each(|host| host.slept(away));
    }

    /// The user ends it all, with this status.
    pub fn interrupt(&mut self, status: u8) {
        for id in self.ids_of(|host| host.is_under_way()) {
            self.lose(id, Departure::Interrupted(status));
        }
    }

    /// The next thing to do. A host that was lost meanwhile is not opened or asked any more.
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

    /// A host does not arrive, for this cause, and with it perhaps the others.
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

    /// The question to a host that comes alone, has said what it is, and whose name leads there: to be ready for tasks that will be started.
    fn question_to(&mut self, id: u32, named: &[IpAddr]) -> Result<Question, Departure> {
        let host = self.hosts.get(&id);
        let Some((host, hello)) = host.and_then(|host| Some((host, host.hello.as_ref()?))) else {
            return Err(Departure::Nonsense);
        };
        // A host that is being prepared is as good as one.
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

/// Hosts that begin together.
impl Arrivals {
    /// Whether every host has taken the last step, or will not.
    pub fn is_settled(&self) -> bool {
        !self.hosts.values().any(Host::is_under_way)
    }

    /// The first host that has failed, and why.
    pub fn failure(&self) -> Option<(&str, &Departure)> {
        self.hosts.get(&self.failed?).and_then(Host::why_lost)
    }

    /// Each host but this one, with its name and why it has failed, if it has.
    pub fn outcomes(&self) -> impl Iterator<Item = (u32, Option<(&str, &Departure)>)> {
        let others = self.hosts.iter().filter(|(_, host)| !host.is_own);
        others.map(|(id, host)| (*id, host.why_lost()))
    }

    /// Every host that has said what it is and has not failed, in their order.
    pub fn hellos(&self) -> impl Iterator<Item = (u32, &Hello)> {
        let left = self.hosts.iter().filter(|(_, host)| !host.is_lost());
        left.filter_map(|(id, host)| Some((*id, host.hello.as_ref()?)))
    }

    /// The last answers of all hosts.
    pub fn answers(&self) -> impl Iterator<Item = (u32, &Answer)> {
        let hosts = self.hosts.iter();
        hosts.filter_map(|(id, host)| Some((*id, host.answer.as_ref()?)))
    }

    /// Whether a host's agent speaks, and not its shell; None: it has no channel.
    pub fn has_agent(&self, id: u32) -> Option<bool> {
        let open = self.hosts.get(&id).filter(|host| host.has_channel())?;
        Some(open.state != HostState::Shell)
    }

    /// Two names of one host, if there are such: the second, and why it cannot be.
    pub fn two_names(&self) -> Option<(&str, Departure)> {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        self.hellos().find_map(|(id, hello)| {
            let name = self.hosts[&id].expected.name.as_str();
            let other = seen.insert(&hello.host, name)?;
            Some((name, Departure::TwoNames(other.to_owned())))
        })
    }

    /// Has the hosts look for each other. [`Self::found`] has the outcome when they have.
    pub fn look(&mut self, now: Duration) {
        let seen = self.hellos().filter_map(|(_, hello)| hello.launcher);
        let seen: Vec<IpAddr> = seen.collect();
        let own = self.hosts.values_mut().find(|host| host.is_own);
        if let Some(hello) = own.and_then(|own| own.hello.as_mut()) {
            // The others know under which address they see this host.
            addresses::put_first(&mut hello.candidates, seen.into_iter());
        }
        self.search = Some(Search::new(self.hellos(), self.choice.as_ref()));
        self.ask_search(now);
    }

    fn ask_search(&mut self, now: Duration) {
        let Some(search) = &self.search else { return };
        // Others first: this host's own search takes time.
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

    /// For each host the first address at which the others reach it, or why there is none.
    pub fn found(&self) -> Vec<Found> {
        let name = |id: u32| self.hosts.get(&id).map(|host| host.expected.name.as_str());
        let search = self.search.iter();
        search.flat_map(|search| search.found(name)).collect()
    }

    /// Has every other host make its tasks ready: those whose hosts these are.
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

    /// Asks another host something in words of the caller's.
    pub fn say(&mut self, now: Duration, id: u32, words: Vec<u8>) {
        self.search = None;
        if self.hosts.get(&id).is_some_and(|host| !host.is_own) {
            self.ask(now, id, Question::Words(words));
        }
    }
}
