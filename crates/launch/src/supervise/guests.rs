//! Tasks that are no children of ours: they came by the door of a job that stays, or the launcher was called by one.

use regatta_transport::job::TaskState;
use regatta_wire::control::{Output, Place, Spawn};
use rustix::process::Signal;

use super::Supervisor;
use super::spawning::Newcomer;
use crate::course::End;
use crate::door::{Arrival, Door};
use crate::tasks::{Ended, Tasks};

impl Supervisor<'_> {
    /// Lets those in who have knocked.
    pub(super) fn heed_door(&mut self) {
        let arrivals = self.door.as_mut().map_or_else(Vec::new, Door::heed);
        for arrival in arrivals {
            self.let_in(arrival);
        }
    }

    fn let_in(&mut self, arrival: Arrival) {
        let arrival = match self.claimed(arrival) {
            Some(unknown) => unknown,
            None => return,
        };
        let Some(tasks) = &mut self.tasks else { return };
        let listener = match tasks.listener() {
            Ok(listener) => listener,
            Err((_, sentence)) => return arrival.refuse(sentence),
        };
        let order = Spawn {
            program: arrival.program.clone(),
            arguments: Vec::new(),
            count: 1,
            place: Place::Here,
            search: None,
            directory: None,
            environment: Vec::new(),
            output: Output::Job,
            orphans: false,
            on_behalf: None,
        };
        self.begin_guest(Newcomer { arrival, listener }, order);
    }

    /// Takes note of guests that have ended, or have left.
    pub(super) fn heed_guests(&mut self) {
        let Some(tasks) = &self.tasks else { return };
        let mut gone = Vec::new();
        for (&rank, guest) in &self.guests {
            let state = tasks.job().state(rank);
            let left = state == TaskState::Left;
            // Whoever has called us stays ours until its process ends.
            let parted = left && self.door.is_some() && !tasks.controls.has(rank);
            let end = guest.end(left).or(parted.then_some(End::Exited(0)));
            gone.extend(end.map(|end| (rank, end, state)));
        }
        for (rank, end, state) in gone {
            self.guest_ended(rank, end, state);
        }
    }

    /// Those who came by the door are asked to end where others are made to: they were not started for this job.
    pub(super) fn signal_guests(&self, signal: Signal) {
        if self.door.is_some() {
            let signal = match signal {
                Signal::KILL => Signal::TERM,
                other => other,
            };
            for guest in self.guests.values() {
                guest.signal(signal.as_raw());
            }
        }
    }

    fn guest_ended(&mut self, rank: u32, end: End, state: TaskState) {
        let pid = self.guests.remove(&rank).map_or(0, |guest| guest.pid);
        self.tasks.iter_mut().for_each(|tasks| tasks.departed(rank));
        self.task_ended(Ended {
            rank,
            pid,
            end,
            state,
        });
        let was_ours = self.tasks.as_ref().is_some_and(Tasks::is_adopted);
        if was_ours && rank == 0 && state != TaskState::Left {
            let mut acts = Vec::new();
            self.course.abandoned(self.started.elapsed(), &mut acts);
            self.perform(acts);
        }
    }
}
