//! The membership, and the events that happen to hosts.

use std::collections::BTreeSet;
use std::time::Duration;

use regatta_job::End;
use regatta_job::credits::SendWindow;
use regatta_job::failover::{ClaimInput, HostState, MembershipView};

use super::launcher::Launcher;
use super::{Life, Owner, Sim, What, run_of};

impl Sim {
    pub fn numbers(&self) -> std::ops::Range<u32> {
        0..self.hosts.len() as u32
    }

    /// Returns whether a host is neither lost nor given up, and runs.
    pub fn is_of_job(&self, host: u32) -> bool {
        let own = &self.hosts[host as usize];
        own.life == Life::Up && own.has_begun && !own.given_up && own.frozen <= self.now
    }

    /// Returns whether a host has left the job, or some launcher has reported that. The next launcher repeats it, even
    /// for a host that has answered.
    pub fn has_left(&self, host: u32) -> bool {
        let own = &self.hosts[host as usize];
        own.life != Life::Up || own.given_up || own.was_given_up
    }

    /// Loses a host: all of it at once, or only the network around it. The others are told one after the other.
    pub fn lose(&mut self, host: u32, life: Life) {
        let machine = self.machine_of(host);
        for agent in self.agents_on(machine) {
            self.lose_agent(agent, life);
        }
        self.lose_machine(machine);
    }

    fn lose_agent(&mut self, host: u32, life: Life) {
        self.cut_channels(host);
        self.await_silence(host);
        let claiming = self.launcher_on(host);
        let claiming = claiming.filter(|at| self.launchers[*at].rejoin.is_some());
        match life {
            Life::Cut => {
                self.stop(host);
                self.hosts[host as usize].life = life;
                let at = self.after(1000, 3000);
                self.at(at, What::Isolated(host));
            }
            _ => {
                // Its daemon ends a moment before.
                if let Some(launcher) = claiming {
                    self.handle_claims(launcher, ClaimInput::DaemonEnded);
                    self.leaves_claims(launcher);
                }
                self.stop(host);
            }
        }
    }

    /// Schedules the silence for the agents of a launcher that is lost.
    fn await_silence(&mut self, host: u32) {
        let Some(launcher) = self.launcher_on(host) else {
            return;
        };
        for other in self.numbers() {
            if self.hosts[other as usize].owner == Owner::Leader(launcher) {
                let time = self.after(10_000, 11_000) - self.now;
                self.await_silence_of(other, launcher, time);
            }
        }
    }

    /// Schedules an event after this time, at which an agent has received nothing from its launcher for too long.
    pub fn await_silence_of(&mut self, host: u32, launcher: usize, time: Duration) {
        let asleep = self.hosts[host as usize].asleep;
        let silent = What::Silent(host, launcher, asleep);
        self.at(self.now + time, silent);
    }

    /// Loses a machine. The membership tells the hosts one after the other.
    pub fn lose_machine(&mut self, of: u32) {
        let machine = &mut self.machines[of as usize];
        machine.is_up = false;
        machine.lost.get_or_insert(self.now);
        self.end_all_arriving(of);
        for other in self.numbers() {
            if self.life(other) == Life::Up {
                for (gone, least, most) in [(false, 300, 1000), (true, 2000, 3000)] {
                    let at = self.after(least, most);
                    let host = other;
                    self.at(at, What::Learn { host, of, gone });
                }
            }
        }
    }

    pub fn stop(&mut self, host: u32) {
        self.hosts[host as usize].life = Life::Gone;
        let now = self.now;
        for task in self.tasks.iter_mut().filter(|task| task.host == host) {
            task.end_now(now, End::Lost);
        }
    }

    /// Stops a host that waits for a launcher, unless it leads itself by now.
    pub fn stop_unless_it_leads(&mut self, host: u32) {
        let leads = |one: &Launcher| one.host == host && one.rejoin.is_none();
        if !self.launchers.iter().any(leads) {
            self.stop(host);
        }
    }

    /// Freezes the processes of a host for a while.
    pub fn freeze(&mut self, host: u32, time: Duration) {
        let until = self.now + time;
        let own = &mut self.hosts[host as usize];
        (own.frozen, own.is_late) = (until, true);
        own.asleep += time;
        if let Some(launcher) = self.launcher_on(host) {
            self.launchers[launcher].asleep += time;
            self.launchers[launcher].arrivals.slept(time);
        }
    }

    /// Gives up a host without an owner. No launcher will own it, unless the one that gave it up is lost.
    pub fn give_up_unowned(&mut self, host: u32) {
        let own = &mut self.hosts[host as usize];
        (own.given_up, own.was_given_up) = (true, true);
        let owner = std::mem::replace(&mut own.owner, Owner::Nobody).launcher();
        owner
            .into_iter()
            .for_each(|by| self.close_channel(by, host));
        let at = self.after(25_000, 35_000);
        self.at(at, What::LosePatience(host));
    }

    /// Returns whether a host can be lost now: only a minority of the hosts that have agreed on each other is lost, and
    /// what tasks were told is known elsewhere. (If the launcher's host and the only one that has confirmed a change
    /// are lost at the same time, the job loses that change.)
    pub fn can_lose(&self, host: u32) -> bool {
        self.can_lose_machine(self.machine_of(host))
    }

    pub fn can_lose_machine(&self, machine: u32) -> bool {
        let others = |host: &u32| self.is_of_job(*host) && self.machine_of(*host) != machine;
        let of_job: Vec<u32> = self.numbers().filter(others).collect();
        let mut left: BTreeSet<u32> = of_job.iter().map(|host| self.machine_of(*host)).collect();
        // Machines that are up without a host of the job count for a majority, too.
        let vacant = (0..).zip(&self.machines).filter(|(_, one)| one.is_up);
        let vacant = vacant.map(|(number, _)| number).filter(|number| {
            *number != machine
                && self
                    .agents_on(*number)
                    .iter()
                    .all(|host| !self.hosts[*host as usize].has_begun)
        });
        left.extend(vacant.filter(|number| *number >= self.first_hosts));
        // Hosts that some host still counts.
        let up = self.hosts.iter().filter(|host| host.life == Life::Up);
        let known = up.map(|host| self.machines.len() - host.dead.len());
        let counted = known.max().unwrap_or(0);
        2 * left.len() > counted && of_job.iter().any(|other| self.knows_all_confirmed(*other))
    }

    /// Returns whether a host has applied every change that any launcher had confirmed.
    fn knows_all_confirmed(&self, host: u32) -> bool {
        let replica = match &self.hosts[host as usize].follower {
            Some(follower) => follower.replica.changes(),
            None => self
                .launcher_on(host)
                .map(|at| self.launchers[at].registry.changes()),
        };
        let confirmed = self.launchers.iter().map(|one| one.confirmed);
        let confirmed = confirmed.max().unwrap_or(0);
        replica.is_some_and(|changes| changes >= confirmed)
    }

    pub fn view(&self, host: u32) -> MembershipView {
        let own = &self.hosts[host as usize];
        let state = |other: u32| match own.suspected.contains(&other) {
            true => HostState::Suspected,
            false => HostState::Alive,
        };
        let is_back = |other: u32| {
            self.hosts
                .get(other as usize)
                .is_some_and(|host| host.is_back)
        };
        let run = |other: u32| match own.dead.contains(&other) {
            false => Some((run_of(other), state(other))),
            true => is_back(other).then(|| (format!("{}-again", run_of(other)), HostState::Alive)),
        };
        MembershipView {
            own: Some(self.run_on(host)),
            left: own.known.iter().filter_map(|other| run(*other)).collect(),
            hindrance: None,
        }
    }

    pub fn learn(&mut self, host: u32, of: u32, gone: bool) {
        let knows = &mut self.hosts[host as usize];
        if knows.life != Life::Up {
            return;
        }
        match gone {
            true => knows.dead.insert(of),
            false => knows.suspected.insert(of),
        };
        self.membership_changed(host);
        let leads = self
            .launcher_on(host)
            .filter(|_| gone && self.follower(host).is_none());
        if let Some(launcher) = leads.filter(|at| self.launchers[*at].rejoin.is_none()) {
            let remotes = self.launchers[launcher].remotes.keys();
            let there = remotes.filter(|host| self.machine_of(**host) == of);
            let there: Vec<u32> = there.copied().collect();
            there
                .into_iter()
                .for_each(|host| self.give_up_host(launcher, host));
        }
    }

    /// Passes the membership's view to a host, if the host needs it.
    pub fn membership_changed(&mut self, host: u32) {
        let (now, view) = (self.now, self.view(host));
        if self.life(host) != Life::Up {
            return;
        }
        let Some(follower) = self.follower(host) else {
            if let Some(launcher) = self.launcher_on(host) {
                self.handle_claims(launcher, ClaimInput::Membership(view, [].into()));
            }
            return;
        };
        follower.handle_membership(now, view);
        let (lost, leads) = (follower.has_lost_owner(now), follower.leads());
        if lost {
            // A launcher that had given it up may have been lost, and the next one knows that.
            let at = self.after(25_000, 35_000);
            if self.hosts[host as usize].was_given_up {
                self.at(at, What::LosePatience(host));
            }
            let own = &mut self.hosts[host as usize];
            own.claimable = true;
            own.outputs.window = SendWindow::default();
            let owner = std::mem::replace(&mut own.owner, Owner::Nobody);
            let closed = owner.launcher();
            closed
                .into_iter()
                .for_each(|by| self.close_channel(by, host));
        }
        if leads {
            self.lead(host);
        }
    }

    /// Handles that a host which is cut off sees no majority: it does not lead, or stops leading.
    pub fn isolated(&mut self, host: u32) {
        let (now, mut view) = (self.now, self.view(host));
        let own_run = self.run_on(host);
        view.hindrance = Some("it sees no majority".to_owned());
        for (run, state) in &mut view.left {
            if *run != own_run {
                *state = HostState::Suspected;
            }
        }
        if let Some(follower) = self.follower(host) {
            follower.handle_membership(now, view);
            let leads = follower.leads();
            self.note_wrong(leads, || format!("host {host} leads without a majority"));
        } else if let Some(launcher) = self.launcher_on(host) {
            let leader = &self.launchers[launcher];
            if leader.rejoin.is_some() {
                let all_are_lost = leader
                    .rejoin
                    .as_ref()
                    .is_some_and(|one| one.awaits_nobody(&view));
                self.handle_claims(launcher, ClaimInput::Membership(view, [].into()));
                if !all_are_lost {
                    self.leaves_claims(launcher);
                }
            } else {
                let goes_on = leader.leadership.cut_off(&view).is_empty();
                self.note_wrong(goes_on, || {
                    format!("host {host} goes on without a majority")
                });
            }
        }
        self.stop(host);
    }
}
