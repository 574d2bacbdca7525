//! Hosts that a task requests, and hosts that it gives back.
//!
//! A requested host arrives like any other, except that the request may name the shell command and the address, and
//! that the host starter may start its agent ([`HostStarter`]). The requester is answered when the outcome of each host
//! is known ([`HostRequests`]).

use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

use regatta_job::HostRequests;
use regatta_job::hosting::{HostPlace, RequestedHost};
use regatta_job::hosts::Admission;
use regatta_job::registry::{HostChange, Refused, Requester};
use regatta_wire::control::{HostStarted, RequestError};

use super::Growing;
use super::arriving::{ArrivalStep, Arriving};
use crate::channel::Link;
use crate::channel::membership_feed::Listed;
use crate::channel::remote::Remote;
use crate::hosts::host_starter::{HostStarter, StartOutcome, WantedHost, Way};
use crate::plan::Across;
use crate::supervise::Supervisor;

/// Unanswered requests, and the host starter.
pub(super) struct Wishes {
    pub(super) starter: Box<dyn HostStarter>,
    requests: HostRequests,
    /// Requests that wait for the first list of the machine's hosts.
    unlisted: Vec<(Requester, HostChange)>,
}

/// A requested host.
pub(super) struct Wish {
    place: HostPlace,
    /// The task that requests it.
    by: u32,
    pub(super) host: WantedHost,
    /// The terminal at which ssh may ask for a password.
    pub(super) asks_at: Option<String>,
}

impl Wishes {
    pub(super) fn new(starter: Box<dyn HostStarter>) -> Self {
        Self {
            starter,
            requests: HostRequests::default(),
            unlisted: Vec::new(),
        }
    }
}

impl Supervisor<'_> {
    /// Handles a task's request to change the job's hosts.
    pub(in crate::supervise) fn change_hosts(
        &mut self,
        mut requester: Requester,
        change: HostChange,
    ) {
        let Requester { by, id, .. } = requester;
        // A terminal of another host cannot be used here.
        if self.is_elsewhere(by) {
            requester.terminal = None;
        }
        if let (HostChange::Remove(names), Some(_)) = (&change, &self.growing) {
            if let Err(refused) = self.give_all_back(by, id, names) {
                self.registry.reply(by, id, Err(refused));
            }
            return;
        }
        let Some(mut growing) = self.growing.take() else {
            let sentence = "this job cannot change its hosts".to_owned();
            return self
                .registry
                .reply(by, id, Err((RequestError::State, sentence)));
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

    /// Handles the requests that came before the machine's hosts were known.
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
        if self.lifecycle.is_ending() {
            return Err((RequestError::State, "the job is being ended".to_owned()));
        }
        let is_file = matches!(change, HostChange::File(_));
        let mut wanted = growing.wishes.starter.read(requester, change)?;
        if is_file {
            // The first host belongs to the job already; the file may set options for it.
            let is_ours = |host: &mut Result<WantedHost, Refused>| {
                host.as_ref().is_ok_and(|host| self.is_ours(&host.name))
            };
            let ours: Vec<WantedHost> = wanted.extract_if(.., is_ours).flatten().collect();
            for speed in ours.iter().filter_map(|host| host.settings.speed) {
                self.registry.set_host_speed(self.peers.number(), speed);
            }
        }
        let asked = (requester.by, requester.id);
        let places = growing.wishes.requests.begin(asked, wanted.len())?;
        let mut to_start = Vec::new();
        for (place, host) in places.zip(wanted) {
            let expected = host.and_then(|host| {
                self.check_wish(growing, &host)?;
                growing.expect(place, host, requester.by)
            });
            match expected {
                Ok(started) => to_start.extend(started),
                Err(refused) => growing.wishes.requests.resolve(place, Err(refused)),
            }
        }
        let told = growing.wishes.starter.start(requester, to_start);
        if let Some((task, told)) = told {
            self.registry.send(task, told);
        }
        Ok(())
    }

    fn is_ours(&self, name: &str) -> bool {
        self.peers.here() == Some(name) || crate::hosts::gather::is_here(name)
    }

    /// Fails if the job may not have this host.
    fn check_wish(&self, growing: &Growing, host: &WantedHost) -> Result<(), Refused> {
        let name = &host.name;
        let is_member = self.peers.living().any(|remote| remote.name == *name);
        let mut arriving = growing.arriving.iter();
        let is_coming = arriving.any(|arriving| arriving.host.name == *name);
        let is_listed = || growing.listed.iter().any(|listed| listed.name == *name);
        let requested = RequestedHost {
            name,
            is_of_job: self.is_ours(name) || is_member || is_coming,
            is_of_machine: growing.news.is_some().then(is_listed),
            again: host.again,
        };
        requested.check()
    }

    /// Gives hosts back and answers at once.
    fn give_all_back(&mut self, by: u32, id: u32, names: &[String]) -> Result<(), Refused> {
        if self.lifecycle.is_ending() {
            return Err((RequestError::State, "the job is being ended".to_owned()));
        }
        let mut requests = HostRequests::default();
        for (place, name) in requests.begin((by, id), names.len())?.zip(names) {
            let outcome = self.give_back(name);
            requests.resolve(place, outcome);
        }
        for (task, answer) in requests.take_answers() {
            self.registry.send(task, answer);
        }
        Ok(())
    }

    /// Gives a host back: its tasks end, and it leaves the job.
    fn give_back(&mut self, name: &str) -> Result<u32, Refused> {
        if self.is_ours(name) {
            let sentence =
                format!("the job's launcher runs on {name}, which therefore cannot be removed");
            return Err((RequestError::Argument, sentence));
        }
        let is_it = |remote: &Remote| !remote.lost && remote.name == name;
        let Some(index) = self.peers.others().iter().position(is_it) else {
            return Err((
                RequestError::Host,
                format!("{name} is not a host of the job"),
            ));
        };
        let number = self.peers.others()[index].number;
        self.host_lost(index, "it was removed from the job");
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
            growing.wishes.requests.resolve(wish.place, outcome);
        }
        self.send_answers(growing);
    }

    fn send_answers(&mut self, growing: &mut Growing) {
        for (task, answer) in growing.wishes.requests.take_answers() {
            self.registry.send(task, answer);
        }
    }

    /// Makes a task the starter of hosts' agents, or ends that.
    pub(in crate::supervise) fn set_hoster(&mut self, by: u32, id: u32, on: bool) {
        let elsewhere = self.is_elsewhere(by);
        let outcome = match &mut self.growing {
            _ if elsewhere => {
                let sentence =
                    "only a task on the launcher's host can start hosts in place of the launcher";
                Err((RequestError::Host, sentence.to_owned()))
            }
            // No task will ever request a host.
            None => Ok(()),
            Some(growing) => growing.wishes.starter.register(by, on.then_some(id)),
        };
        self.registry.reply(by, id, outcome.map(|()| 0));
    }

    /// Handles a task's report on hosts that it was ordered to start.
    pub(in crate::supervise) fn hosts_started(
        &mut self,
        by: u32,
        id: u32,
        request: u32,
        hosts: Vec<HostStarted>,
    ) {
        let nothing = || {
            let sentence = "there is no request with this number, or it has been answered";
            (RequestError::Argument, sentence.to_owned())
        };
        let outcome = match &mut self.growing {
            None => Err(nothing()),
            Some(growing) => growing.wishes.starter.report(by, request, hosts),
        };
        self.registry.reply(by, id, outcome.map(|()| 0));
        self.handle_host_starter();
    }

    /// Continues with hosts whose agents have been started.
    pub(in crate::supervise) fn handle_host_starter(&mut self) {
        let Some(mut growing) = self.growing.take() else {
            return;
        };
        let registry = &self.registry;
        let is_alive = |task: u32| registry.is_alive(task);
        growing.forget_passwords(is_alive);
        for outcome in growing.wishes.starter.poll(&is_alive) {
            self.handle_start(&mut growing, outcome);
        }
        self.growing = Some(growing);
    }

    fn handle_start(&mut self, growing: &mut Growing, outcome: StartOutcome) {
        match outcome {
            StartOutcome::Started { host, agent } => {
                if let Some(mut arriving) = growing.take_started(host) {
                    let (link, name) = (Link::of_call(agent), &arriving.host.name);
                    let admission = Admission::requested(growing.across.connect, false);
                    let id = growing.begin_way(name, admission, Some(host));
                    let remote = Remote::without_command(name, u32::MAX, link);
                    growing.channels.opened(id, Ok(remote));
                    arriving.step = ArrivalStep::Coming(id);
                    growing.arriving.push(arriving);
                    self.advance_arrivals(growing, Duration::ZERO);
                }
            }
            StartOutcome::Failed { host, refused } => {
                if let Some(arriving) = growing.take_started(host) {
                    self.streams.report(&refused.1);
                    self.fulfil(growing, arriving.wish, Err(refused));
                }
            }
            StartOutcome::RequestFailed { hosts, sentence } => {
                self.streams.report(&sentence);
                for host in hosts {
                    if let Some((by, id)) = growing.withdraw(host) {
                        let refused = (RequestError::State, sentence.clone());
                        self.registry.reply(by, id, Err(refused));
                    }
                }
            }
            StartOutcome::Unwanted { host } => {
                growing.withdraw(host);
            }
        }
    }
}

impl Growing<'_> {
    /// Removes and returns an arriving host that the host starter is starting.
    fn take_started(&mut self, number: u32) -> Option<Arriving> {
        let is_it = |arriving: &Arriving| {
            matches!(arriving.step, ArrivalStep::Starting) && arriving.number == Some(number)
        };
        let at = self.arriving.iter().position(is_it)?;
        Some(self.arriving.remove(at))
    }

    /// Forgets a host that is not started, with its request. Returns the requesting task and the number of its request.
    fn withdraw(&mut self, number: u32) -> Option<(u32, u32)> {
        let wish = self.take_started(number)?.wish?;
        self.wishes.requests.withdraw(wish.place)
    }

    /// Stops waiting for passwords on behalf of a task that has gone.
    fn forget_passwords(&mut self, is_alive: impl Fn(u32) -> bool) {
        let is_vain = |arriving: &mut Arriving| {
            let wish = arriving.wish.as_ref();
            let typing = wish.is_some_and(|wish| wish.asks_at.is_some() && !is_alive(wish.by));
            typing && matches!(arriving.step, ArrivalStep::Coming(_))
        };
        let vain: Vec<Arriving> = self.arriving.extract_if(.., is_vain).collect();
        for arriving in vain {
            self.dismiss(arriving.step);
            if let Some(wish) = arriving.wish {
                self.wishes.requests.withdraw(wish.place);
            }
        }
    }

    /// Starts the arrival of a host, for this slot of an answer. Returns the host with its number if the host starter
    /// is to start its agent.
    fn expect(
        &mut self,
        place: HostPlace,
        host: WantedHost,
        by: u32,
    ) -> Result<Option<(u32, WantedHost)>, Refused> {
        let (step, number, asks_at) = match host.way.clone()? {
            Way::Shell { asks_at } => {
                let patience = self.across.connect;
                let admission = Admission::requested(patience, asks_at.is_some());
                let id = self.begin_way(&host.name, admission, None);
                (ArrivalStep::Coming(id), None, asks_at)
            }
            Way::Starter => {
                let number = self.channels.arrivals.new_number();
                (ArrivalStep::Starting, Some(number), None)
            }
        };
        let started = number.map(|number| (number, host.clone()));
        // A host of the machine has a run, by which other hosts check whether it is lost.
        let listed = self.listed.iter().find(|listed| listed.name == host.name);
        let run = listed.map_or_else(String::new, |listed| listed.run.clone());
        self.arriving.push(Arriving {
            host: Listed {
                name: host.name.clone(),
                run,
                address: ([0, 0, 0, 0], 0).into(),
            },
            step,
            number,
            wish: Some(Wish {
                place,
                by,
                host,
                asks_at,
            }),
        });
        Ok(started)
    }
}

impl Wish {
    /// Returns whether its name resolves. ssh may know further names, so this is only checked if ssh gave no shell.
    pub(super) fn is_known(&self) -> bool {
        (self.host.target(), 0).to_socket_addrs().is_ok()
    }

    /// Returns the settings for reaching its shell, and the name for the command.
    pub(super) fn way(&self, across: &Across) -> (Across, String) {
        let mut across = across.clone();
        let mut target = self.host.target().to_owned();
        across.asks_at.clone_from(&self.asks_at);
        match (&self.host.login, &mut across.rsh) {
            (Some(login), None) => target = format!("{login}@{target}"),
            // All commands of this kind accept -l.
            (Some(login), Some(words)) => words.extend(["-l".to_owned(), login.clone()]),
            (None, _) => {}
        }
        (across, target)
    }

    /// Returns the first commands for its shell.
    pub(super) fn beginning(&self) -> String {
        let quoted = |text: &String| text.replace('\'', r"'\''");
        let program = self.host.program.as_ref();
        program.map_or(String::new(), |program| {
            format!("{}='{}'\n", crate::hosts::rsh::OWN_PROGRAM, quoted(program))
        })
    }

    /// Returns the directory in which its tasks run. Variables in it are the host's.
    pub(super) fn directory(&self) -> String {
        let named = self.host.directory.clone();
        named.unwrap_or_else(|| "$HOME".to_owned())
    }

    /// Returns the addresses to which its name resolves.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let named = (self.host.target(), 0).to_socket_addrs();
        let named = named.into_iter().flatten();
        named.map(|address| address.ip())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::host_starter::HostSettings;

    fn wish(change: impl FnOnce(&mut WantedHost)) -> Wish {
        let mut host = WantedHost {
            name: "beta".to_owned(),
            address: None,
            login: None,
            program: None,
            directory: None,
            again: false,
            manner: String::new(),
            way: Ok(Way::Starter),
            settings: HostSettings::default(),
        };
        change(&mut host);
        let places = HostRequests::default().begin((0, 0), 1);
        let mut places = places.expect("a place");
        Wish {
            place: places.next().expect("a place"),
            by: 0,
            host,
            asks_at: None,
        }
    }

    fn way(
        change: impl FnOnce(&mut WantedHost),
        rsh: Option<&[&str]>,
    ) -> (Option<Vec<String>>, String) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let across = Across {
            rsh: rsh.map(words),
            ..Across::new(Vec::new())
        };
        let (across, target) = wish(change).way(&across);
        (across.rsh, target)
    }

    fn login(host: &mut WantedHost) {
        host.login = Some("joe".to_owned());
    }

    #[test]
    fn a_host_is_reached_by_its_address_under_its_login() {
        assert_eq!(way(|_| (), None), (None, "beta".to_owned()));
        let at = |host: &mut WantedHost| {
            login(host);
            host.address = Some("beta-fast".to_owned());
        };
        assert_eq!(way(at, None).1, "joe@beta-fast");
        let (rsh, target) = way(login, Some(&["reach", "{host}"]));
        assert_eq!(target, "beta");
        assert_eq!(rsh.expect("words"), ["reach", "{host}", "-l", "joe"]);
    }

    #[test]
    fn a_program_of_its_own_is_named_to_the_shell_there() {
        let with = |program: &str| {
            let program = Some(program.to_owned());
            wish(|host| host.program = program).beginning()
        };
        assert_eq!(wish(|_| ()).beginning(), "");
        assert_eq!(with("/opt/r"), "REGATTA_AGENT='/opt/r'\n");
        assert_eq!(with("/o'pt/r"), "REGATTA_AGENT='/o'\\''pt/r'\n");
        assert_eq!(wish(|_| ()).directory(), "$HOME");
    }
}
