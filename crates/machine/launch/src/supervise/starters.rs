//! A task that starts the tasks of this host instead of the launcher.
//!
//! Such a task receives orders what to start. Its children join by the join socket, like programs that were started by
//! hand, but each presents a ticket, by which it gets the task number that is reserved for it. Processes whose parent
//! is not the launcher can only join by a join socket. So the starter is a task of a resident job, on its launcher's
//! host.

use std::collections::HashMap;
use std::net::TcpListener;

use regatta_job::registry::Refused;
use regatta_job::spawn::SpawnedTasks;
use regatta_job::{End, Ended};
use regatta_wire::control::{RequestError, Tell};

use super::Supervisor;
use crate::resident::join_socket::{Arrival, JoinSocket};
use crate::tasks::Started;
use crate::tasks::prepared::StartOutcome;

/// The first ticket. No process has such a number as its pid, so a ticket can be used where the pid is not known yet.
const FIRST_TICKET: u32 = 10_000_000;

/// The task that starts the tasks of this host, if there is one, and the tasks that are awaited.
#[derive(Default)]
pub(super) struct Starters {
    starter: Option<Starter>,
    awaited: Awaited,
}

impl Starters {
    /// Returns whether a task starts the tasks of this host.
    pub(super) fn is_set(&self) -> bool {
        self.starter.is_some()
    }
}

/// The task that starts others, and the number of its request, by which it receives orders.
#[derive(Clone, Copy)]
struct Starter {
    task: u32,
    watch: u32,
}

/// Tasks that have numbers and whose processes have not joined, by their tickets.
#[derive(Default)]
struct Awaited {
    tickets: HashMap<u32, Vacancy>,
    given: u32,
}

impl Awaited {
    /// Returns an unused ticket.
    fn next_ticket(&mut self) -> u32 {
        loop {
            let ticket = FIRST_TICKET + self.given;
            self.given = self.given.wrapping_add(1) & 0x3fff_ffff;
            if !self.tickets.contains_key(&ticket) {
                return ticket;
            }
        }
    }
}

/// The number of a task that is awaited, and the socket at which it will listen.
struct Vacancy {
    rank: u32,
    listener: Option<TcpListener>,
}

impl Supervisor<'_> {
    /// Makes this task the starter of the other tasks of its host.
    pub(super) fn set_starter(&mut self, by: u32, id: u32) {
        let outcome = self.may_start(by).map(|()| {
            self.starters.starter = Some(Starter {
                task: by,
                watch: id,
            });
            0
        });
        self.registry.reply(by, id, outcome);
    }

    fn may_start(&mut self, by: u32) -> Result<(), Refused> {
        if self.worker.join_socket.is_none() || self.is_elsewhere(by) {
            let sentence = "only a task of a resident job, on the launcher's host, can start tasks in the launcher's place";
            return Err((RequestError::Host, sentence.to_owned()));
        }
        match self.starters.starter {
            Some(Starter { task, .. }) if task != by => {
                let sentence = format!("task {task} already starts the tasks of this host");
                Err((RequestError::Exists, sentence))
            }
            _ => Ok(()),
        }
    }

    /// Orders the starter to start tasks. For all other parts of the launcher these tasks have been started.
    pub(super) fn start_by_starter(&mut self, share: SpawnedTasks) -> Vec<StartOutcome> {
        let ranks = share.tasks();
        let order = self
            .spawns
            .order(share.spawn)
            .map(|(order, _)| order.clone());
        let handed = self
            .worker
            .tasks
            .as_mut()
            .and_then(|tasks| tasks.hand_over(share));
        let join_socket = self.worker.join_socket.as_ref();
        let (
            Some(Starter { task: to, watch }),
            Some((file, mut listeners)),
            Some(job),
            Some(order),
        ) = (
            self.starters.starter,
            handed,
            join_socket.and_then(JoinSocket::name),
            order,
        )
        else {
            let refused = (RequestError::State, "the job is being ended".to_owned());
            return ranks.map(|rank| (rank, Err(refused.clone()))).collect();
        };
        let mut outcomes = Vec::new();
        for rank in ranks {
            let ticket = self.starters.awaited.next_ticket();
            let listener = listeners.pop_front();
            self.starters
                .awaited
                .tickets
                .insert(ticket, Vacancy { rank, listener });
            let token = format!("{job}?{ticket}").into_bytes();
            let invited = (b"REGATTA_JOB".to_vec(), token);
            self.registry.send(
                to,
                Tell::Start {
                    watch,
                    task: rank,
                    ticket,
                    program: file.as_os_str().as_encoded_bytes().to_vec(),
                    arguments: order.arguments.clone(),
                    environment: order.environment.iter().cloned().chain([invited]).collect(),
                },
            );
            outcomes.push((rank, Ok(Started { rank, pid: ticket })));
        }
        outcomes
    }

    /// Makes a process with a valid ticket a task. Returns other processes unchanged.
    pub(super) fn claimed(&mut self, arrival: Arrival) -> Option<Arrival> {
        let vacancy = arrival
            .ticket
            .and_then(|ticket| self.starters.awaited.tickets.remove(&ticket));
        let Some(Vacancy { rank, listener }) = vacancy else {
            return Some(arrival);
        };
        let tasks = self.worker.tasks.as_mut()?;
        match tasks.receive(rank, &arrival, listener.as_ref()) {
            Ok(started) => self.registry.task_started(rank, started.pid),
            Err(_) => self.never_came(rank, End::Lost),
        }
        None
    }

    /// Handles the starter's report that a task has ended. Only used for tasks that never joined; the launcher notices
    /// the end of others.
    pub(super) fn said_to_have_ended(&mut self, by: u32, id: u32, task: u32, status: i32) {
        let is_starter = self
            .starters
            .starter
            .is_some_and(|starter| starter.task == by);
        let outcome = match is_starter {
            true => Ok(0),
            false => {
                let sentence =
                    "only the task that starts the tasks of this host can report their end";
                Err((RequestError::Denied, sentence.to_owned()))
            }
        };
        self.registry.reply(by, id, outcome);
        let mut vacancies = self.starters.awaited.tickets.iter();
        let ticket =
            vacancies.find_map(|(&ticket, vacancy)| (vacancy.rank == task).then_some(ticket));
        if let (true, Some(ticket)) = (is_starter, ticket) {
            self.starters.awaited.tickets.remove(&ticket);
            let end = match status & 0x7f {
                0 => End::Exited(status >> 8 & 0xff),
                signal => End::Signalled {
                    signal,
                    core: status & 0x80 != 0,
                },
            };
            self.never_came(task, end);
        }
    }

    /// Stops waiting for tasks that will not join: the starter has ended, or the job is being ended.
    pub(super) fn handle_starter(&mut self) {
        let Some(starter) = self.starters.starter else {
            return;
        };
        let lives = self.registry.is_alive(starter.task);
        if lives && !self.lifecycle.is_ending() {
            return;
        }
        if !lives {
            self.starters.starter = None;
        }
        for (_, vacancy) in std::mem::take(&mut self.starters.awaited.tickets) {
            self.never_came(vacancy.rank, End::Lost);
        }
    }

    fn never_came(&mut self, rank: u32, end: End) {
        let Some(tasks) = &mut self.worker.tasks else {
            return;
        };
        tasks.later_ended(rank);
        let state = tasks.job().state(rank);
        self.task_ended(Ended {
            rank,
            pid: 0,
            end,
            state,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_ticket_is_given_while_somebody_is_awaited_with_it() {
        let mut awaited = Awaited::default();
        let first = awaited.next_ticket();
        let vacancy = Vacancy {
            rank: 1,
            listener: None,
        };
        awaited.tickets.insert(first, vacancy);
        awaited.given = 0;
        assert_eq!(awaited.next_ticket(), first + 1);
    }
}
