//! Processes that request to join. Each waits until the launcher has given it a task number.
//!
//! ```text
//! caller              host                                 launcher
//! JoinRequest       >
//!                     JoinRequested  who, and where it  >    (all hosts enter a new task)
//!                                    will listen
//!                                                       <    Admit   it is this task
//!                     SpawnStarted, as any other        >
//!                   < JoinReply
//! ```
//!
//! A new launcher gets the requests again of all processes that still wait.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};

use crate::channel::messages::Report;
use crate::resident::join_socket::Arrival;
use crate::tasks::Tasks;

/// A process that is to become a task, and the socket at which it will listen.
pub(crate) struct Newcomer {
    pub arrival: Arrival,
    pub listener: Option<TcpListener>,
    pub address: Option<SocketAddr>,
}

impl Newcomer {
    /// Prepares a process to become a task. Returns `None` if that is impossible, which the process has been told.
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

    /// Returns the report of its request, under this number.
    fn request(&self, caller: u32) -> Report {
        Report::JoinRequested {
            caller,
            program: self.arrival.program.clone(),
            address: self.address,
        }
    }
}

/// Processes of one host that have no task numbers yet, by numbers of this host's own.
#[derive(Default)]
pub(crate) struct Newcomers {
    waiting: BTreeMap<u32, Newcomer>,
    /// The number of the next process.
    next: u32,
}

impl Newcomers {
    /// Adds a process. Returns the report of its request.
    pub(crate) fn add(&mut self, newcomer: Newcomer) -> Report {
        while self.waiting.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        let request = newcomer.request(number);
        self.waiting.insert(number, newcomer);
        request
    }

    /// Returns the reports of all waiting processes, for a new launcher.
    pub(crate) fn requests(&self) -> Vec<Report> {
        let all = self.waiting.iter();
        all.map(|(&caller, newcomer)| newcomer.request(caller))
            .collect()
    }

    /// Removes a process that does not wait any more.
    pub(crate) fn take(&mut self, number: u32) -> Option<Newcomer> {
        self.waiting.remove(&number)
    }
}
