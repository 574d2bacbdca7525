//! Hosts that join a job while it runs. [`regatta_job::hosts::Arrivals`] decides. Here are the channels to them, some
//! of which cannot be opened, or break.
//!
//! The membership reports machines. The agent of a machine is a host of the job, with a number from a launcher. A
//! machine to which two launchers open channels, one after the other, has two agents.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use regatta_job::HostRecord;
use regatta_job::hosts::{
    Admission, Answer, Arrivals, Effect, Expected, Hello, Input, Interface, Program, Question,
    READY,
};
use regatta_job::registry::DEFAULT_SPEED;

use super::hosts::Host;
use super::launcher::Remote;
use super::{Down, Life, Owner, Sim, What, name_of, run_of};

/// Silence allowed to an arriving host.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const IDENTITY: &str = "this program";

/// One host of the virtual machine, whether or not it is a host of the job.
pub struct Machine {
    pub is_up: bool,
    /// The time at which it was lost, if it was.
    pub lost: Option<Duration>,
}

/// A machine that is arriving.
pub struct Coming {
    pub machine: u32,
    /// The number of its agent, once it has one.
    pub number: Option<u32>,
    /// The number of its channel. Input of an earlier channel is ignored.
    channel: u64,
}

pub fn arrivals(next: u32) -> Arrivals {
    let program = Program {
        identity: IDENTITY.to_owned(),
        machine: "any".to_owned(),
    };
    Arrivals::new(program, None, next)
}

pub fn record_of(number: u32, machine: u32) -> HostRecord {
    HostRecord {
        number,
        name: name_of(machine),
        architecture: "any".to_owned(),
        cores: 1,
        speed: DEFAULT_SPEED,
        alive: true,
    }
}

fn hello(machine: u32) -> Hello {
    Hello {
        cores: 1,
        allowed: Vec::new(),
        architecture: "any".to_owned(),
        host: run_of(machine),
        candidates: vec![Interface {
            name: "lo".to_owned(),
            address: ADDRESS,
        }],
        launcher: None,
        port: 0,
        token: [0; 16],
    }
}

impl Sim {
    /// Returns the machine of a host.
    pub fn machine_of(&self, host: u32) -> u32 {
        self.hosts[host as usize].machine
    }

    /// Returns the run of a host's machine.
    pub fn run_on(&self, host: u32) -> String {
        run_of(self.machine_of(host))
    }

    /// Returns the hosts whose agents are on a machine and have not ended.
    pub fn agents_on(&self, machine: u32) -> Vec<u32> {
        let all = (0..).zip(&self.hosts);
        let there = all.filter(|(_, host)| host.machine == machine && host.life == Life::Up);
        there.map(|(number, _)| number).collect()
    }

    /// Adds a host to the virtual machine.
    pub fn come(&mut self) {
        let machine = self.machines.len() as u32;
        self.machines.push(Machine {
            is_up: true,
            lost: None,
        });
        for host in self.numbers() {
            if self.life(host) == Life::Up {
                let at = self.after(0, 1000);
                self.at(at, What::Came { host, machine });
            }
        }
    }

    /// Lets the membership tell a host of a new machine.
    pub fn learn_came(&mut self, host: u32, machine: u32) {
        self.hosts[host as usize].known.insert(machine);
        self.membership_changed(host);
        let leads = self.launcher_on(host).filter(|_| self.is_of_job(host));
        if let Some(launcher) = leads.filter(|at| self.launchers[*at].rejoin.is_none()) {
            self.look(launcher);
        }
    }

    /// Lets a launcher add the hosts of the virtual machine that it did not know.
    pub fn look(&mut self, launcher: usize) {
        let host = self.launchers[launcher].host;
        if self.launchers[launcher].lifecycle.is_over() || self.life(host) != Life::Up {
            return;
        }
        let own = &self.hosts[host as usize];
        let listed: Vec<u32> = own.known.difference(&own.dead).copied().collect();
        for machine in listed {
            let now = self.now;
            let leader = &mut self.launchers[launcher];
            if !leader.known.insert(run_of(machine)) {
                continue;
            }
            let expected = Expected {
                name: name_of(machine),
                command: "ssh".to_owned(),
                number: None,
                is_called: false,
                admission: Admission::told(ARRIVAL_TIMEOUT, ADDRESS),
            };
            let id = leader.arrivals.expect(now, expected);
            let coming = Coming {
                machine,
                number: None,
                channel: 0,
            };
            leader.coming.insert(id, coming);
        }
        self.carry_out_arrivals(launcher);
    }

    /// Handles input from an arriving host, on the channel with this number.
    pub fn hear_arriving(&mut self, launcher: usize, id: u32, channel: u64, input: Input) {
        let coming = self.launchers[launcher].coming.get(&id);
        let is_its = coming.is_some_and(|coming| coming.channel == channel);
        if is_its && self.life(self.launchers[launcher].host) == Life::Up {
            let now = self.now;
            let is_end = matches!(input, Input::Closed(_));
            let leader = &mut self.launchers[launcher];
            leader.arrivals.handle(now, id, input);
            if let Some(coming) = leader.coming.get_mut(&id).filter(|_| is_end) {
                coming.channel = 0;
            }
            self.carry_out_arrivals(launcher);
        }
    }

    /// Handles the passing of time for the arriving hosts.
    pub fn arrivals_are_due(&mut self, launcher: usize) {
        self.launchers[launcher].arrivals_due = None;
        if self.life(self.launchers[launcher].host) == Life::Up {
            self.carry_out_arrivals(launcher);
        }
    }

    fn carry_out_arrivals(&mut self, launcher: usize) {
        let now = self.now;
        self.launchers[launcher].arrivals.tick(now);
        while let Some(effect) = self.launchers[launcher].arrivals.poll() {
            if self.life(self.launchers[launcher].host) != Life::Up {
                return;
            }
            self.carry_out_arrival(launcher, effect);
        }
        let leader = &mut self.launchers[launcher];
        let due = leader.arrivals.deadline();
        if let Some(at) = due.filter(|at| leader.arrivals_due.is_none_or(|due| *at < due)) {
            leader.arrivals_due = Some(at);
            self.at(at.max(now), What::ArrivalsDue(launcher));
        }
    }

    fn carry_out_arrival(&mut self, launcher: usize, effect: Effect) {
        match effect {
            Effect::Open(id) => self.open_arriving(launcher, id),
            Effect::Ask(id, Question::Prepare { number, .. }) => {
                self.place_agent(launcher, id, number);
                self.send_down(launcher, number, Down::PrepareHost { id });
            }
            Effect::Close(id) => self.close_arriving(launcher, id),
            Effect::Joined(id, number) => {
                let coming = self.launchers[launcher].coming.remove(&id);
                let coming = coming.expect("a host that comes");
                self.note_wrong(coming.number != Some(number), || {
                    format!("host {number} joins as another one: {:?}", coming.number)
                });
                self.admit(launcher, number, coming.machine);
            }
            Effect::Lost(id, _) => {
                self.close_arriving(launcher, id);
                let coming = self.launchers[launcher].coming.remove(&id);
                let registry = &mut self.launchers[launcher].registry;
                // The next launcher must not try again either.
                let run = coming.map(|coming| run_of(coming.machine));
                run.iter().for_each(|run| registry.add_known_run(run));
                self.speak(launcher);
            }
            Effect::Note(_) => {}
            effect => unreachable!("{effect:?}"),
        }
    }

    /// Opens a channel to the shell of a machine, which becomes an agent. Some machines do not know the launcher's host
    /// yet.
    fn open_arriving(&mut self, launcher: usize, id: u32) {
        self.order += 1;
        let channel = self.order;
        let coming = self.launchers[launcher].coming.get_mut(&id);
        let coming = coming.expect("a host that comes");
        let is_open = std::mem::replace(&mut coming.channel, channel) != 0;
        let machine = coming.machine;
        self.note_wrong(is_open, || format!("two channels to machine {machine}"));
        let is_up = self.machines[machine as usize].is_up;
        let mut at = self.now;
        let ready = Input::Line(format!("{READY} {IDENTITY}"));
        let greeting = Input::Greeting(Box::new(hello(machine)), Vec::new());
        for input in [Input::Opened, ready, greeting] {
            let step = self.after(0, self.slowest) - self.now;
            at += step;
            let breaks = !is_up || self.random(12) == 0;
            let input = match breaks {
                false => input,
                true => Input::Closed("it has ended".to_owned()),
            };
            self.at(at, What::Arriving(launcher, id, channel, Box::new(input)));
            if breaks {
                return;
            }
        }
    }

    fn close_arriving(&mut self, launcher: usize, id: u32) {
        let coming = self.launchers[launcher].coming.get_mut(&id);
        let Some(coming) = coming else { return };
        coming.channel = 0;
        if let Some(number) = coming.number {
            self.close_channel(launcher, number);
            self.stop(number);
        }
    }

    /// Makes the agent of a machine the host with this number.
    fn place_agent(&mut self, launcher: usize, id: u32, number: u32) {
        let coming = self.launchers[launcher].coming.get_mut(&id);
        let coming = coming.expect("a host that comes");
        coming.number = Some(number);
        let machine = coming.machine;
        self.note_number(number, machine);
        let mut host = Host::arriving(machine, launcher, self.entered_first());
        for (other, lost) in (0..).zip(&self.machines).map(|(n, one)| (n, one.lost)) {
            host.known.insert(other);
            if lost.is_some_and(|lost| lost + Duration::from_secs(3) <= self.now) {
                host.dead.insert(other);
            }
        }
        host.life = match self.machines[machine as usize].is_up {
            true => Life::Up,
            false => Life::Gone,
        };
        let recent: Vec<u32> = host.known.difference(&host.dead).copied().collect();
        match self.hosts.get_mut(number as usize) {
            Some(before) => *before = host,
            None => self.hosts.push(host),
        }
        for of in recent {
            if self.machines[of as usize].lost.is_some() {
                let at = self.after(2000, 3000);
                let (host, gone) = (number, true);
                self.at(at, What::Learn { host, of, gone });
            }
        }
        self.open_channel(launcher, number);
        if self.life(number) != Life::Up {
            self.end_arriving(launcher, id);
        }
    }

    /// Checks that a number is used once, as far as any host knows that is left.
    fn note_number(&mut self, number: u32, machine: u32) {
        // A number that was given to a machine without an agent.
        while self.hosts.len() < number as usize {
            let nobody = Host::arriving(machine, 0, 0);
            let life = Life::Gone;
            self.hosts.push(Host { life, ..nobody });
        }
        let Some(before) = self.hosts.get(number as usize) else {
            return;
        };
        let was_host = before.has_begun;
        let known = (0..).zip(&self.hosts).any(|(other, host)| {
            let worlds = host.follower.iter().flat_map(|one| &one.local.worlds);
            let mut places = worlds.flat_map(|world| &world.places);
            other != number && self.is_of_job(other) && places.any(|(on, _)| *on == number)
        });
        self.note_wrong(was_host && known, || {
            format!("machine {machine} gets the number {number} of a host that others know")
        });
        self.channels.retain(|(_, to), _| *to != number);
        self.stop(number);
    }

    /// Lets the launcher notice that the channel of an arriving host has ended.
    pub fn end_arriving(&mut self, launcher: usize, id: u32) {
        let Some(coming) = self.launchers[launcher].coming.get(&id) else {
            return;
        };
        let channel = coming.channel;
        let at = self.after(0, self.slowest);
        let input = Box::new(Input::Closed("it is lost".to_owned()));
        self.at(at, What::Arriving(launcher, id, channel, input));
    }

    /// Ends the channels of arriving hosts on a machine that is lost.
    pub fn end_all_arriving(&mut self, machine: u32) {
        for launcher in 0..self.launchers.len() {
            let coming = self.launchers[launcher].coming.iter();
            let there = coming.filter(|(_, coming)| coming.machine == machine);
            let ids: Vec<u32> = there.map(|(id, _)| *id).collect();
            ids.iter().for_each(|id| self.end_arriving(launcher, *id));
        }
    }

    /// Handles that an arriving host is prepared.
    pub fn host_prepared(&mut self, launcher: usize, id: u32) {
        if let Some(coming) = self.launchers[launcher].coming.get(&id) {
            let channel = coming.channel;
            let answer = Input::Answer(Answer::Prepared(Vec::new()));
            self.hear_arriving(launcher, id, channel, answer);
        }
    }

    /// Makes a host join the job: it is sent what the others have been told before.
    fn admit(&mut self, launcher: usize, number: u32, machine: u32) {
        self.send_down(launcher, number, Down::Begin {});
        let leader = &self.launchers[launcher];
        let worlds = leader.worlds.clone().into_iter();
        let gone = leader.gone.clone().into_iter();
        let history = worlds.map(|world| Down::Enter { world });
        let history = history.chain(gone.map(|(task, cause)| Down::Gone { task, cause }));
        history.for_each(|order| self.send_down(launcher, number, order));
        let leader = &mut self.launchers[launcher];
        let run = run_of(machine);
        leader.lifecycle.add_host(number, &name_of(machine));
        leader.registry.add_known_run(&run);
        leader.registry.host_added(record_of(number, machine));
        leader.remotes.insert(number, Remote::default());
        leader.leadership.add(number, &run);
        self.hosts_changed(launcher);
        self.speak(launcher);
        // It may have been lost, and known to be, while it arrived.
        let own = self.launchers[launcher].host;
        if self.hosts[own as usize].dead.contains(&machine) {
            self.give_up_host(launcher, number);
        }
    }

    /// Returns the number of tasks in the table of a host that has just been prepared.
    fn entered_first(&self) -> u32 {
        2 * self.first_hosts
    }

    /// Handles that an agent has received nothing from its launcher for longer than allowed, not counting the time in
    /// which its own processes did not run: `asleep` is that time at the beginning. An agent that has been told who
    /// leads next does not end: it knows by now that its launcher's host is lost.
    pub fn silent(&mut self, host: u32, launcher: usize, asleep: Duration) {
        let own = &self.hosts[host as usize];
        if own.owner != Owner::Leader(launcher) || own.life != Life::Up {
            return;
        }
        if own.asleep > asleep {
            return self.await_silence_of(host, launcher, own.asleep - asleep);
        }
        let (now, follower) = (self.now, own.follower.as_ref());
        if follower.is_some_and(|one| one.is_patient(now, ARRIVAL_TIMEOUT, ARRIVAL_TIMEOUT)) {
            return;
        }
        let has_heard = follower.is_some_and(|one| one.successors().next().is_some());
        self.note_wrong(has_heard, || {
            format!("host {host} has heard who leads next, and ends")
        });
        self.close_channel(launcher, host);
        self.stop(host);
    }
}
