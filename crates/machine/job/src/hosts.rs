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
use host::{Host, Next, State};

/// A host of the job: its identity, as its agent has said it, and its name.
pub type Member = (String, String);

/// All hosts that are on their way into a job.
#[derive(Debug)]
pub struct Arrivals {
    program: Program,
    choice: Option<Choice>,
    /// The hosts of the job, none of which can come once more.
    pub members: Vec<Member>,
    hosts: Vec<Host>,
    ids: u32,
    /// The number of the next host that comes alone.
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
            hosts: Vec::new(),
            ids: 0,
            search: None,
            failed: None,
            effects: VecDeque::new(),
        }
    }

    /// A host is to arrive. Returns what it is called here: hosts that begin together are counted from 0.
    pub fn expect(&mut self, now: Duration, expected: Expected) -> u32 {
        let id = self.ids;
        self.ids += 1;
        self.hosts.push(Host::new(id, expected, now));
        id
    }

    /// This host takes part in what begins, under the next number.
    pub fn expect_own(&mut self, expected: Expected, hello: Hello) -> u32 {
        let id = self.expect(Duration::ZERO, expected);
        let own = self.hosts.last_mut().expect("it was just added");
        (own.state, own.hello, own.is_own) = (State::Idle, Some(hello), true);
        id
    }

    /// The number of a host that is to come.
    pub fn new_number(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Nobody wants this host any more, or all those for which `unwanted` holds: their channels are closed, and they are forgotten.
    pub fn dismiss(&mut self, unwanted: impl Fn(u32) -> bool) {
        let effects = &mut self.effects;
        self.hosts.retain(|host| {
            let stays = !unwanted(host.id);
            if !stays && host.has_channel() {
                effects.push_back(Effect::Close(host.id));
            }
            stays
        });
        let hosts = &self.hosts;
        self.failed = self
            .failed
            .filter(|failed| hosts.iter().any(|host| host.id == *failed));
    }

    /// Something has happened to a host. What happens to one that is not on its way counts for nothing.
    pub fn handle(&mut self, now: Duration, id: u32, input: Input) {
        let named = match &input {
            Input::Greeting(_, named) => named.clone(),
            _ => Vec::new(),
        };
        let program = &self.program;
        let mut hosts = self.hosts.iter_mut();
        let Some(host) = hosts.find(|host| host.id == id && !host.is_lost()) else {
            return;
        };
        let together = host.expected.admission.together;
        match host.handle(now, input, program) {
            Ok(Next::Nothing) => {}
            Ok(Next::SendProgram) => self.effects.push_back(Effect::SendProgram(id)),
            Ok(Next::Note(note)) => self.effects.push_back(Effect::Note(note)),
            Ok(Next::Again) => self.effects.push_back(Effect::Close(id)),
            Ok(Next::Greeted) if together => {}
            Ok(Next::Greeted) => {
                let prepared = self.prepare_one(now, id, &named);
                prepared.unwrap_or_else(|why| self.lose(id, why));
            }
            Ok(Next::Answered) if together => self.advance_search(now),
            Ok(Next::Answered) => self.join(id),
            Err(why) => self.lose(id, why),
        }
    }

    /// Time has passed: channels are opened whose time has come, and hosts given up that have been silent.
    pub fn tick(&mut self, now: Duration) {
        for host in &mut self.hosts {
            if matches!(host.state, State::Wanted(at) if at <= now) {
                host.state = State::Opening;
                self.effects.push_back(Effect::Open(host.id));
            }
        }
        let silent = self.hosts.iter();
        let silent: Vec<(u32, Departure)> = silent
            .filter_map(|host| Some((host.id, host.silence(now)?)))
            .collect();
        for (id, why) in silent {
            self.lose(id, why);
        }
    }

    /// When [`Self::tick`] is due.
    pub fn deadline(&self) -> Option<Duration> {
        self.hosts.iter().filter_map(Host::deadline).min()
    }

    /// This process did not run for so long: nobody could be heard.
    pub fn slept(&mut self, away: Duration) {
        self.hosts.iter_mut().for_each(|host| host.slept(away));
    }

    /// The user ends it all, with this status.
    pub fn interrupt(&mut self, status: u8) {
        let under_way = self.hosts.iter().filter(|host| host.is_under_way());
        for id in under_way.map(|host| host.id).collect::<Vec<_>>() {
            self.lose(id, Departure::Interrupted(status));
        }
    }

    /// The next thing to do. A host that was lost meanwhile is not opened or asked any more.
    pub fn poll(&mut self) -> Option<Effect> {
        loop {
            let effect = self.effects.pop_front()?;
            let is_left = |id: u32| {
                self.hosts
                    .iter()
                    .any(|host| host.id == id && !host.is_lost())
            };
            match effect {
                Effect::Open(id) | Effect::Ask(id, _) | Effect::SendProgram(id) if !is_left(id) => {
                }
                effect => return Some(effect),
            }
        }
    }

    /// A host does not arrive, for this cause, and with it perhaps the others.
    fn lose(&mut self, id: u32, why: Departure) {
        let Some(host) = self.find(id).filter(|host| !host.is_lost()) else {
            return;
        };
        let admission = host.expected.admission;
        self.end(id, why);
        if !admission.together {
            self.hosts.retain(|host| host.id != id);
            return;
        }
        self.failed.get_or_insert(id);
        if !admission.hears_all {
            let others = self.hosts.iter();
            let others = others.filter(|host| !host.is_lost() && !host.is_own);
            for other in others.map(|host| host.id).collect::<Vec<_>>() {
                self.end(other, Departure::Abandoned);
            }
        }
    }

    fn end(&mut self, id: u32, why: Departure) {
        let mut hosts = self.hosts.iter_mut();
        if let Some(host) = hosts.find(|host| host.id == id) {
            if host.has_channel() {
                self.effects.push_back(Effect::Close(id));
            }
            self.effects.push_back(Effect::Lost(id, why.clone()));
            host.state = State::Lost(why);
        }
    }

    fn find(&mut self, id: u32) -> Option<&mut Host> {
        self.hosts.iter_mut().find(|host| host.id == id)
    }

    fn ask(&mut self, now: Duration, id: u32, question: Question) {
        let idle = self.find(id).filter(|host| host.state == State::Idle);
        if let Some(host) = idle {
            host.ask(now, question.clone());
            self.effects.push_back(Effect::Ask(id, question));
        }
    }
}

/// Hosts that come alone.
impl Arrivals {
    /// Has a host make everything ready for tasks that will be started there.
    fn prepare_one(&mut self, now: Duration, id: u32, named: &[IpAddr]) -> Result<(), Departure> {
        let hello = |host: &Host| host.hello.clone();
        let host = self.hosts.iter().find(|host| host.id == id);
        let Some((host, hello)) = host.and_then(|host| Some((host, hello(host)?))) else {
            return Ok(());
        };
        let members = self.members.iter();
        let mut members = members.map(|(identity, name)| (identity, name));
        // Whoever is being prepared is as good as one.
        let others = self.hosts.iter().filter(|other| other.id != id);
        let mut others =
            others.filter_map(|other| Some((&other.hello.as_ref()?.host, &other.expected.name)));
        let is_it = |(identity, _): &(&String, &String)| **identity == hello.host;
        if let Some((_, name)) = members.find(is_it).or_else(|| others.find(is_it)) {
            return Err(Departure::Member(name.clone()));
        }
        let rule = host.expected.admission.address;
        let address = rule.address(&hello, named, self.choice.as_ref())?;
        let number = host.expected.number;
        let number = number.unwrap_or_else(|| self.new_number());
        if let Some(host) = self.find(id) {
            host.expected.number = Some(number);
        }
        let question = Question::Prepare {
            number,
            address: Some(address),
            ranks: Vec::new(),
        };
        self.ask(now, id, question);
        Ok(())
    }

    /// A host is ready.
    fn join(&mut self, id: u32) {
        let mut hosts = self.hosts.iter();
        if let Some(at) = hosts.position(|host| host.id == id) {
            let host = self.hosts.remove(at);
            let number = host.expected.number.unwrap_or(id);
            self.effects.push_back(Effect::Joined(id, number));
        }
    }
}

/// Hosts that begin together.
impl Arrivals {
    /// Whether every host has taken the last step, or will not.
    pub fn is_settled(&self) -> bool {
        !self.hosts.iter().any(Host::is_under_way)
    }

    /// The first host that has failed, and why.
    pub fn failure(&self) -> Option<(&str, &Departure)> {
        let failed = self.hosts.iter().find(|host| Some(host.id) == self.failed);
        failed.and_then(why_lost)
    }

    /// Each host that others are, with its name and why it has failed, if it has.
    pub fn outcomes(&self) -> impl Iterator<Item = (u32, Option<(&str, &Departure)>)> {
        let others = self.hosts.iter().filter(|host| !host.is_own);
        others.map(|host| (host.id, why_lost(host)))
    }

    /// Every host that has said what it is and has not failed, in their order.
    pub fn hellos(&self) -> impl Iterator<Item = (u32, &Hello)> {
        let left = self.hosts.iter().filter(|host| !host.is_lost());
        left.filter_map(|host| Some((host.id, host.hello.as_ref()?)))
    }

    /// The last answers of all hosts.
    pub fn answers(&self) -> impl Iterator<Item = (u32, &Answer)> {
        let answers = self.hosts.iter();
        answers.filter_map(|host| Some((host.id, host.answer.as_ref()?)))
    }

    /// Whether a host's agent speaks, and not its shell; None: it has no channel.
    pub fn has_agent(&self, id: u32) -> Option<bool> {
        let host = self.hosts.iter().find(|host| host.id == id);
        let open = host.filter(|host| host.has_channel());
        open.map(|host| host.state != State::Shell)
    }

    /// Two names of one host, if there are such: of the second, and why it cannot be.
    pub fn two_names(&self) -> Option<(&str, Departure)> {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for host in &self.hosts {
            let Some(hello) = &host.hello else { continue };
            if let Some(other) = seen.insert(&hello.host, &host.expected.name) {
                return Some((&host.expected.name, Departure::TwoNames(other.to_owned())));
            }
        }
        None
    }

    /// Has the hosts look for each other. [`Self::found`] has the outcome when they have.
    pub fn look(&mut self, now: Duration) {
        let hosts = self.hosts.iter();
        let seen = hosts.filter_map(|host| host.hello.as_ref()?.launcher);
        let seen: Vec<IpAddr> = seen.collect();
        let own = self.hosts.iter_mut().find(|host| host.is_own);
        if let Some(hello) = own.and_then(|own| own.hello.as_mut()) {
            // The others know under which address they see this host.
            addresses::put_first(&mut hello.candidates, seen.into_iter());
        }
        self.search = Some(Search::new(self.hellos(), self.choice.as_ref()));
        self.ask_search(now);
    }

    /// Others first: this host's own search takes time.
    fn ask_search(&mut self, now: Duration) {
        let Some(search) = &self.search else { return };
        let (own, others): (Vec<&Host>, Vec<&Host>) = self
            .hosts
            .iter()
            .filter(|host| host.hello.is_some() && !host.is_lost())
            .partition(|host| host.is_own);
        let all = others.into_iter().chain(own);
        let all: Vec<_> = all.map(|host| (host.id, search.targets(host.id))).collect();
        for (id, targets) in all {
            self.ask(now, id, Question::Probe(targets));
        }
    }

    fn advance_search(&mut self, now: Duration) {
        let is_settled = self.is_settled();
        let Some(search) = self.search.as_mut().filter(|_| is_settled) else {
            return;
        };
        for host in &self.hosts {
            if let Some(Answer::Probed(sights)) = &host.answer {
                search.saw(host.id, sights);
            }
        }
        if search.widen() {
            self.ask_search(now);
        }
    }

    /// For each host the first address at which the others reach it, or why there is none.
    pub fn found(&self) -> Vec<Found> {
        let names = self.hosts.iter();
        let names = names.map(|host| (host.id, host.expected.name.clone()));
        let names = names.collect();
        let search = self.search.iter();
        search.flat_map(|search| search.found(&names)).collect()
    }

    /// Has every other host make its tasks ready: those whose hosts these are.
    pub fn prepare(&mut self, now: Duration, host_of: &[u32]) {
        self.search = None;
        let ids: Vec<u32> = self.outcomes().map(|(id, _)| id).collect();
        for number in ids {
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
        if self.outcomes().any(|(other, _)| other == id) {
            self.ask(now, id, Question::Words(words));
        }
    }
}

/// The name of a host that is lost, and why.
fn why_lost(host: &Host) -> Option<(&str, &Departure)> {
    match &host.state {
        State::Lost(why) => Some((&host.expected.name, why)),
        _ => None,
    }
}
