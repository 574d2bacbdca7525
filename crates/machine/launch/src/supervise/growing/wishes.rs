//! Hosts that a task asks for, and hosts that it gives back.
//!
//! A requested host goes the way of all hosts that arrive, but for the command that leads there and the address it is
//! reached at, of which the wish may say something. The asker is answered when it is known what has become of each.

use std::net::{IpAddr, ToSocketAddrs};
use std::time::Instant;

use regatta_hostfile::{Fault, File, Host, Options, Start};
use regatta_job::registry::{HostChange, Refused, Requester};
use regatta_wire::control::{Tell, Why};

use super::Growing;
use super::arriving::{Arriving, Step};
use super::hosters::Request;
use super::persons::Hand;
use crate::channel::messages::Hello;
use crate::membership_feed::Listed;
use crate::plan::Across;
use crate::reach;
use crate::refusal::Refusal;
use crate::supervise::Supervisor;

/// More are a mistake.
const MOST: usize = 4096;

/// Requests without an answer, and facts about hosts that may be requested.
#[derive(Default)]
pub(super) struct Wishes {
    file: File,
    open: Vec<Question>,
    asked: u32,
    /// Requests that wait for the first list of the machine's hosts.
    unlisted: Vec<(Requester, HostChange)>,
}

struct Question {
    number: u32,
    by: u32,
    id: u32,
    answers: Vec<Option<Result<u32, Why>>>,
    sentence: String,
}

/// A host that was asked for.
pub(super) struct Wish {
    question: u32,
    index: usize,
    name: String,
    pub(super) options: Options,
    /// The person who types the password that ssh may ask for.
    pub(super) person: Option<Hand>,
}

impl Question {
    /// Of a task, under its number for it, about so many hosts.
    fn new(number: u32, (by, id): (u32, u32), count: usize) -> Result<Self, Refused> {
        if count > MOST {
            return Err((Why::Argument, format!("{count} hosts are too many at once")));
        }
        Ok(Self {
            number,
            by,
            id,
            answers: vec![None; count],
            sentence: String::new(),
        })
    }

    fn answer(&mut self, index: usize, outcome: Result<u32, Refused>) {
        let outcome = outcome.map_err(|(why, sentence)| {
            if self.sentence.is_empty() {
                self.sentence = sentence;
            }
            why
        });
        if let Some(place) = self.answers.get_mut(index) {
            *place = Some(outcome);
        }
    }

    fn answered(&self) -> Option<Tell> {
        let hosts = self.answers.iter().copied().collect::<Option<Vec<_>>>()?;
        Some(Tell::Hosted {
            id: self.id,
            hosts,
            sentence: self.sentence.clone(),
        })
    }
}

impl Supervisor<'_> {
    /// A task requests a change of the job's hosts.
    pub(in crate::supervise) fn change_hosts(
        &mut self,
        mut requester: Requester,
        change: HostChange,
    ) {
        let Requester { by, id, .. } = requester;
        // A terminal of another host is none of ours.
        let host = self.registry.host_of(by);
        if host.is_none_or(|host| self.remote(host).is_some()) {
            requester.terminal = None;
        }
        if let (HostChange::Remove(names), Some(_)) = (&change, &self.growing) {
            return match self.give_all_back(by, id, names) {
                Ok(answered) => self.registry.send(by, answered),
                Err(refused) => self.registry.reply(by, id, Err(refused)),
            };
        }
        let Some(mut growing) = self.growing.take() else {
            let sentence = "this job keeps the hosts it began with".to_owned();
            return self.registry.reply(by, id, Err((Why::State, sentence)));
        };
        if growing.is_unlisted() {
            growing.wishes.unlisted.push((requester, change));
            self.growing = Some(growing);
            return;
        }
        if let Err(refused) = self.begin_wish(&mut growing, &requester, change) {
            self.registry.reply(by, id, Err(refused));
        }
        self.send_answers(&mut growing);
        self.growing = Some(growing);
    }

    /// Goes on with the requests that came before it was known which hosts the machine has.
    pub(super) fn change_hosts_now_listed(&mut self) {
        let growing = self.growing.iter_mut();
        let waiting: Vec<_> = growing
            .filter(|growing| !growing.is_unlisted())
            .flat_map(|growing| std::mem::take(&mut growing.wishes.unlisted))
            .collect();
        for (requester, change) in waiting {
            self.change_hosts(requester, change);
        }
    }

    fn begin_wish(
        &mut self,
        growing: &mut Growing,
        requester: &Requester,
        change: HostChange,
    ) -> Result<(), Refused> {
        let Requester { by, id, .. } = *requester;
        if self.lifecycle.is_ending() {
            return Err((Why::State, "the job is being ended".to_owned()));
        }
        let wanted: Vec<Result<Host, Fault>> = match change {
            // Answered before.
            HostChange::Remove(_) => return Ok(()),
            HostChange::Add(lines) => {
                let file = &growing.wishes.file;
                lines.iter().map(|line| file.added(line)).collect()
            }
            HostChange::File(text) => {
                let file = File::read(&text).map_err(|problems| {
                    let first = problems.first().map(ToString::to_string);
                    (
                        Why::Argument,
                        format!("the host file, {}", first.unwrap_or_default()),
                    )
                })?;
                growing.wishes.file = file.clone();
                // The first host is ours already, and may be in the file to say something of it.
                let (ours, others): (Vec<Host>, Vec<Host>) = file
                    .hosts
                    .into_iter()
                    .partition(|host| self.is_ours(&host.name));
                for speed in ours.iter().filter_map(|host| host.options.speed) {
                    self.registry.set_host_speed(self.number, speed);
                }
                others.into_iter().map(Ok).collect()
            }
        };
        let number = growing.wishes.begin(by, id, wanted.len())?;
        // In a virtual machine its daemons lead to its hosts.
        let mut request = match growing.news {
            None => growing.hosters.begin(),
            Some(_) => None,
        };
        for (index, host) in wanted.into_iter().enumerate() {
            let wish = host.map_err(|fault| (Why::Argument, fault.to_string()));
            let expected = wish
                .and_then(|host| self.check_wish(growing, host))
                .and_then(|host| {
                    growing.expect((number, index), host, request.as_mut(), requester)
                });
            if let Err(refused) = expected {
                growing.wishes.answer(number, index, Err(refused));
            }
        }
        let told = request.and_then(|request| growing.hosters.put(request));
        if let Some((task, told)) = told {
            self.registry.send(task, told);
        }
        Ok(())
    }

    fn is_ours(&self, name: &str) -> bool {
        self.here.as_deref() == Some(name) || crate::gather::is_here(name)
    }

    /// Whether the job may have this host.
    fn check_wish(&self, growing: &Growing, host: Host) -> Result<Host, Refused> {
        let name = &host.name;
        let is_member = self
            .remotes
            .iter()
            .any(|remote| !remote.lost && remote.name == *name);
        let is_coming = growing
            .arriving
            .iter()
            .any(|arriving| arriving.host.name == *name);
        if self.is_ours(name) || is_member || is_coming {
            return Err((
                Why::Exists,
                format!("the host {name} is of the job already"),
            ));
        }
        // The commands that lead to hosts lead to those of the machine only.
        let is_listed = growing.listed.iter().any(|listed| listed.name == *name);
        if growing.news.is_some() && !is_listed {
            let sentence = format!(
                "{name} is no host of the virtual machine that the job has its hosts from: `regatta add {name}` makes it one, and the job takes it in"
            );
            return Err((Why::Host, sentence));
        }
        if host.overload {
            let sentence = format!("the host {name} can be of a job only once");
            return Err((Why::Exists, sentence));
        }
        Ok(host)
    }

    /// Gives hosts back, which takes no time.
    fn give_all_back(&mut self, by: u32, id: u32, names: &[String]) -> Result<Tell, Refused> {
        if self.lifecycle.is_ending() {
            return Err((Why::State, "the job is being ended".to_owned()));
        }
        let mut question = Question::new(0, (by, id), names.len())?;
        for (index, name) in names.iter().enumerate() {
            question.answer(index, self.give_back(name));
        }
        let nobody = || (Why::Argument, "no host is named".to_owned());
        question.answered().ok_or_else(nobody)
    }

    /// Gives a host back: its tasks end, and it is of the job no more.
    fn give_back(&mut self, name: &str) -> Result<u32, Refused> {
        if self.is_ours(name) {
            let sentence = format!("the job is run from {name}, which cannot be given back");
            return Err((Why::Argument, sentence));
        }
        let is_it = |remote: &crate::remote::Remote| !remote.lost && remote.name == name;
        let Some(index) = self.remotes.iter().position(is_it) else {
            return Err((Why::Host, format!("{name} is no host of the job")));
        };
        let number = self.remotes[index].number;
        self.host_lost(index, "it was given back");
        Ok(number)
    }

    /// Answers the request for a host.
    pub(super) fn fulfil(
        &mut self,
        growing: &mut Growing,
        wish: Option<Wish>,
        outcome: Result<u32, Refused>,
    ) {
        if let Some(wish) = wish {
            growing.wishes.answer(wish.question, wish.index, outcome);
        }
        self.send_answers(growing);
    }

    fn send_answers(&mut self, growing: &mut Growing) {
        growing
            .wishes
            .open
            .retain(|question| match question.answered() {
                Some(tell) => {
                    self.registry.send(question.by, tell);
                    false
                }
                None => true,
            });
    }
}

impl Wishes {
    fn begin(&mut self, by: u32, id: u32, count: usize) -> Result<u32, Refused> {
        let number = self.asked;
        self.open.push(Question::new(number, (by, id), count)?);
        self.asked = self.asked.wrapping_add(1);
        Ok(number)
    }

    /// Forgets the question that this is part of: who asked it, and its number.
    pub(super) fn withdraw(&mut self, wish: &Wish) -> Option<(u32, u32)> {
        let mut open = self.open.iter();
        let place = open.position(|question| question.number == wish.question)?;
        let question = self.open.remove(place);
        Some((question.by, question.id))
    }

    fn answer(&mut self, number: u32, index: usize, outcome: Result<u32, Refused>) {
        let mut open = self.open.iter_mut();
        if let Some(question) = open.find(|question| question.number == number) {
            question.answer(index, outcome);
        }
    }
}

/// Why a host cannot be had for which a person would have to do something.
fn nobody(name: &str, what: &str) -> Refused {
    let sentence = format!(
        "the host {name} cannot be asked for {what}: nobody sits at a terminal of the launcher's host who has asked for it; let ssh need no question (`ssh-copy-id {name}`)"
    );
    (Why::System, sentence)
}

impl Growing<'_> {
    /// Has a host arrive, for this place in this question. With a request it is a task that starts it, otherwise maybe a person.
    fn expect(
        &mut self,
        (question, index): (u32, usize),
        host: Host,
        request: Option<&mut Request>,
        requester: &Requester,
    ) -> Result<(), Refused> {
        let now = Instant::now();
        let (mut step, mut number, mut typing) = (Step::Waiting(now), None, None);
        let person = requester.terminal.clone().map(|terminal| Hand {
            by: requester.by,
            terminal,
        });
        match (request, host.options.start, person) {
            (Some(request), _, _) => {
                let new = self.new_number();
                request.add(new, &host)?;
                (step, number) = (Step::Asked(request.number), Some(new));
            }
            (None, Some(Start::Manual), Some(hand)) => {
                (step, number) = (Step::ByHand(hand), Some(self.new_number()));
            }
            // Other commands than ssh ask in ways of their own.
            (None, Some(Start::Password), Some(hand)) if self.across.rsh.is_none() => {
                typing = Some(hand);
            }
            (None, Some(Start::Manual), None) => {
                return Err(nobody(&host.name, "a start by hand (so=ms)"));
            }
            (None, Some(Start::Password), _) => {
                return Err(nobody(&host.name, "a password (so=pw)"));
            }
            (None, None, _) => {}
        }
        let Host { name, options, .. } = host;
        // A host of the machine has a run there, by which the others see whether it is lost.
        let listed = self.listed.iter().find(|listed| listed.name == name);
        let run = listed.map_or_else(String::new, |listed| listed.run.clone());
        self.arriving.push(Arriving {
            host: Listed {
                name: name.clone(),
                run,
                address: ([0, 0, 0, 0], 0).into(),
            },
            since: now,
            step,
            number,
            wish: Some(Wish {
                question,
                index,
                name,
                options,
                person: typing,
            }),
        });
        Ok(())
    }
}

impl Wish {
    /// The name it is reached by.
    fn target(&self) -> &str {
        self.options.address.as_ref().unwrap_or(&self.name)
    }

    /// Does its name lead anywhere? ssh may know names that nobody else does, so this is asked when no shell was had.
    pub(super) fn is_known(&self) -> bool {
        (self.target(), 0).to_socket_addrs().is_ok()
    }

    /// How a shell is had there, and what the command is to be told.
    pub(super) fn way(&self, across: &Across) -> (Across, String) {
        let mut across = across.clone();
        let mut target = self.target().to_owned();
        across.asks_at = self.person.as_ref().map(|hand| hand.terminal.clone());
        match (&self.options.login, &mut across.rsh) {
            (Some(login), None) => target = format!("{login}@{target}"),
            // All commands of this kind know -l.
            (Some(login), Some(words)) => words.extend(["-l".to_owned(), login.clone()]),
            (None, _) => {}
        }
        (across, target)
    }

    /// The first commands of the shell there.
    pub(super) fn beginning(&self) -> String {
        let quoted = |text: &String| text.replace('\'', r"'\''");
        let program = self.options.daemon.as_ref();
        program.map_or(String::new(), |program| {
            format!("{}='{}'\n", crate::rsh::OWN_PROGRAM, quoted(program))
        })
    }

    /// Where its tasks run; variables are those of the host.
    pub(super) fn directory(&self) -> String {
        self.options
            .directory
            .clone()
            .unwrap_or_else(|| "$HOME".to_owned())
    }

    /// Where its name leads.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let named = (self.target(), 0).to_socket_addrs().into_iter().flatten();
        named.map(|address| address.ip())
    }

    /// Where its tasks will listen: where its name leads, if that is one of its addresses, or else where others reach it best.
    pub(super) fn address(&self, hello: &Hello, across: &Across) -> Result<IpAddr, Refusal> {
        let allowed = reach::chosen(&hello.candidates, across.interface.as_ref());
        let address = self.addresses().find(|address| allowed.contains(address));
        address.or(allowed.first().copied()).ok_or_else(|| {
            let name = &self.name;
            Refusal::of_regatta(format!(
                "the host {name} has no address that tasks could be reached at"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(line: &str) -> Wish {
        let Host { name, options, .. } =
            regatta_hostfile::host(line, &Options::default()).expect("a line");
        Wish {
            question: 0,
            index: 0,
            name,
            options,
            person: None,
        }
    }

    fn way(line: &str, rsh: Option<&[&str]>) -> (Option<Vec<String>>, String) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let across = Across {
            rsh: rsh.map(words),
            ..Across::new(Vec::new())
        };
        let (across, target) = wish(line).way(&across);
        (across.rsh, target)
    }

    #[test]
    fn a_host_is_reached_by_its_address_under_its_login() {
        assert_eq!(way("beta", None), (None, "beta".to_owned()));
        assert_eq!(way("beta lo=joe ip=beta-fast", None).1, "joe@beta-fast");
        let (rsh, target) = way("beta lo=joe", Some(&["reach", "{host}"]));
        assert_eq!(target, "beta");
        assert_eq!(rsh.expect("words"), ["reach", "{host}", "-l", "joe"]);
    }

    #[test]
    fn a_program_of_its_own_is_named_to_the_shell_there() {
        assert_eq!(wish("beta").beginning(), "");
        assert_eq!(
            wish("beta dx=/opt/r").beginning(),
            "REGATTA_AGENT='/opt/r'\n"
        );
        assert_eq!(
            wish("beta dx=\"/o'pt/r\"").beginning(),
            "REGATTA_AGENT='/o'\\''pt/r'\n"
        );
        assert_eq!(wish("beta").directory(), "$HOME");
    }

    #[test]
    fn a_question_is_answered_when_all_of_it_is_known() {
        let mut wishes = Wishes::default();
        let number = wishes.begin(3, 9, 2).expect("a number");
        wishes.answer(number, 1, Err((Why::Host, "nobody".to_owned())));
        assert_eq!(wishes.open[0].answered(), None);
        wishes.answer(number, 0, Ok(4));
        let hosts = vec![Ok(4), Err(Why::Host)];
        let sentence = "nobody".to_owned();
        assert_eq!(
            wishes.open[0].answered(),
            Some(Tell::Hosted {
                id: 9,
                hosts,
                sentence
            })
        );
        assert!(wishes.begin(3, 9, MOST + 1).is_err());
    }
}
