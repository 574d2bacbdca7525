//! The join socket of an agent: a process that asks to join on its host waits until the launcher has given it a number.
//!
//! ```text
//! caller              agent                                launcher
//! JoinRequest       >
//!                     JoinRequested  who, and where it  >    (all hosts enter a new task)
//!                                    will listen
//!                                                       <    Admit   it is this task
//!                     SpawnStarted, as any other        >
//!                   < JoinReply
//! ```
//!
//! A launcher that comes after another hears of all again who still wait.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use rustix::event::PollFd;

use crate::channel::messages::Report;
use crate::join_socket::{Arrival, JoinSocket};
use crate::place::Place;
use crate::tasks::Tasks;

/// A process that is to become a task, and where it is to listen.
pub(crate) struct Newcomer {
    pub arrival: Arrival,
    pub listener: Option<TcpListener>,
    pub address: Option<SocketAddr>,
}

impl Newcomer {
    /// None: it cannot be, and has been told why.
    pub(crate) fn of(arrival: Arrival, tasks: &mut Tasks) -> Option<Newcomer> {
        let listener = tasks.listener().map_err(|(_, sentence)| sentence);
        let place = listener.and_then(|listener| {
            let address = listener.as_ref().map(TcpListener::local_addr).transpose();
            let address = address.map_err(|error| error.to_string())?;
            Ok((listener, address))
        });
        match place {
            Ok((listener, address)) => Some(Newcomer {
                arrival,
                listener,
                address,
            }),
            Err(sentence) => {
                arrival.refuse(sentence);
                None
            }
        }
    }
}

/// Processes of one host that have no number as tasks yet, by numbers of this host's own.
#[derive(Default)]
pub(crate) struct Newcomers {
    waiting: BTreeMap<u32, Newcomer>,
    /// The number of the next one.
    next: u32,
}

impl Newcomers {
    /// One more waits. Its number.
    pub(crate) fn add(&mut self, newcomer: Newcomer) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.waiting.insert(number, newcomer);
        number
    }

    /// It waits no more.
    pub(crate) fn take(&mut self, number: u32) -> Option<Newcomer> {
        self.waiting.remove(&number)
    }
}

/// The join socket of an agent, with the processes that wait there.
pub(crate) struct AgentJoinSocket {
    pub socket: JoinSocket,
    newcomers: Newcomers,
}

impl AgentJoinSocket {
    /// The join socket of the job of this name on this host. None: there is one already, of this job or of another one.
    pub(crate) fn open(job: &str) -> Option<AgentJoinSocket> {
        let claimed = Place::of_job(job).and_then(|place| place.claim()).ok()?;
        Some(AgentJoinSocket {
            socket: JoinSocket::new(claimed).ok()?,
            newcomers: Newcomers::default(),
        })
    }

    /// One with a join socket of a test's own, which is paused and goes on when it is handled.
    #[cfg(test)]
    pub(crate) fn about_to_open(name: &str) -> AgentJoinSocket {
        let claimed = Place::scratch(name).claim().expect("a place");
        let mut socket = JoinSocket::new(claimed).expect("a join socket");
        socket.pause_for(Duration::ZERO);
        AgentJoinSocket {
            socket,
            newcomers: Newcomers::default(),
        }
    }

    /// The descriptors to wait for.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.socket.polls()
    }

    /// The time until connections are accepted again, while they are not.
    pub(crate) fn until_open(&self) -> Option<Duration> {
        self.socket.until_open()
    }

    /// The requests to join that have come by now.
    pub(crate) fn handle_requests(&mut self, tasks: &mut Tasks) -> Vec<Report> {
        let arrivals = self.socket.handle_callers();
        let newcomers = arrivals.into_iter();
        let newcomers = newcomers.filter_map(|arrival| Newcomer::of(arrival, tasks));
        newcomers
            .map(|newcomer| {
                let report = join_requested(self.newcomers.next, &newcomer);
                self.newcomers.add(newcomer);
                report
            })
            .collect()
    }

    /// All who wait, for a launcher that has not heard of them.
    pub(crate) fn waiting(&self) -> Vec<Report> {
        let all = self.newcomers.waiting.iter();
        all.map(|(&caller, newcomer)| join_requested(caller, newcomer))
            .collect()
    }

    /// It waits no more.
    pub(crate) fn take(&mut self, caller: u32) -> Option<Newcomer> {
        self.newcomers.take(caller)
    }

    /// All of them wait no more.
    pub(crate) fn take_all(&mut self) -> Vec<Newcomer> {
        std::mem::take(&mut self.newcomers.waiting)
            .into_values()
            .collect()
    }
}

fn join_requested(caller: u32, newcomer: &Newcomer) -> Report {
    Report::JoinRequested {
        caller,
        program: newcomer.arrival.program.clone(),
        address: newcomer.address,
    }
}
