//! Calls an agent that was started separately from its launcher: one address after the other, until it answers. Nothing
//! here blocks.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use regatta_connection::calls::{Call, Conversation, Greeting, Keys};
use regatta_connection::dial;
use rustix::event::{PollFd, PollFlags};

use crate::contact_line::ContactLine;

/// Time limit for the agent's greeting after its host, which may be busy, has accepted the connection.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// A call of such an agent, in progress.
#[derive(Debug)]
pub(crate) struct Calling {
    keys: Keys,
    left: VecDeque<SocketAddr>,
    stage: Stage,
    /// What this host lacked for a call (such as descriptors), if anything.
    missing: Option<&'static str>,
}

#[derive(Debug)]
enum Stage {
    /// No call in progress: continue with the next address.
    Idle,
    Greeting(Call),
    /// The host has accepted the connection.
    Connected(Call),
}

/// State of a call.
#[derive(Debug)]
pub(crate) enum Called {
    /// In progress.
    Under,
    Met(Conversation),
    /// At none of the addresses an agent with the key has answered. Contains what this host lacked for a call, if
    /// anything.
    Nobody(Option<&'static str>),
}

impl Calling {
    /// Begins to call the agent of a contact line, first at the addresses of its host's name.
    pub(crate) fn begin(
        contact_line: &ContactLine,
        named: impl Iterator<Item = IpAddr>,
    ) -> Calling {
        let mut left: VecDeque<SocketAddr> = VecDeque::new();
        for address in named.chain(contact_line.addresses.iter().copied()) {
            let address = SocketAddr::new(address, contact_line.port);
            if !left.contains(&address) {
                left.push_back(address);
            }
        }
        // A loopback address is the agent's only if it runs on this host, so try these last.
        left.make_contiguous()
            .sort_by_key(|address| address.ip().is_loopback());
        Calling {
            keys: Keys::new(&contact_line.key()),
            left,
            stage: Stage::Idle,
            missing: None,
        }
    }

    /// Proceeds as far as possible without blocking.
    pub(crate) fn advance(&mut self) -> Called {
        loop {
            self.stage = match std::mem::replace(&mut self.stage, Stage::Idle) {
                Stage::Idle => {
                    let Some(address) = self.left.pop_front() else {
                        return Called::Nobody(self.missing);
                    };
                    match Call::to(address) {
                        Ok(call) => Stage::Greeting(call),
                        Err(error) => {
                            self.missing = self.missing.or(dial::shortage(&error));
                            Stage::Idle
                        }
                    }
                }
                Stage::Greeting(call) if rustix::net::getpeername(&call).is_ok() => {
                    Stage::Connected(call.limited_to(Instant::now() + GREETING_TIMEOUT))
                }
                Stage::Greeting(call) => match self.greet(call, Stage::Greeting) {
                    Some(called) => return called,
                    None => Stage::Idle,
                },
                Stage::Connected(call) => match self.greet(call, Stage::Connected) {
                    Some(called) => return called,
                    None => Stage::Idle,
                },
            };
        }
    }

    /// Proceeds with a greeting. While it is pending, stays at the stage `under`. Returns `None` if it has failed.
    fn greet(&mut self, call: Call, under: fn(Call) -> Stage) -> Option<Called> {
        match call.advance(&self.keys) {
            Greeting::Pending(call) => {
                self.stage = under(call);
                Some(Called::Under)
            }
            Greeting::Authenticated(conversation) => Some(Called::Met(conversation)),
            Greeting::OtherVersion | Greeting::Failed => None,
        }
    }

    /// Returns the descriptor to poll for.
    pub(crate) fn poll(&self) -> Option<PollFd<'_>> {
        match &self.stage {
            Stage::Idle => None,
            Stage::Greeting(call) => Some(PollFd::new(call, PollFlags::IN | PollFlags::OUT)),
            // A connected socket is always writable: from here on wait only for input.
            Stage::Connected(call) => Some(PollFd::new(call, PollFlags::IN)),
        }
    }

    /// Returns when to proceed even if the descriptor is not ready.
    pub(crate) fn until(&self) -> Instant {
        match &self.stage {
            Stage::Idle => Instant::now(),
            Stage::Greeting(call) | Stage::Connected(call) => call.until(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Duration;

    use regatta_connection::calls::CallListener;

    use super::*;
    use crate::called_agent::await_launcher;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Returns a listener, and the contact line with its address.
    fn listen() -> (CallListener, ContactLine) {
        let listener = TcpListener::bind((HERE, 0)).expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let contact_line = ContactLine::new(vec![HERE], port).expect("a contact line");
        (
            CallListener::new(listener.into()).expect("a listener"),
            contact_line,
        )
    }

    /// Proceeds until the agent has been reached, or the call has failed.
    fn call(mut calling: Calling) -> Option<Conversation> {
        loop {
            match calling.advance() {
                Called::Under => {}
                Called::Met(conversation) => return Some(conversation),
                Called::Nobody(_) => return None,
            }
            let left = calling.until().saturating_duration_since(Instant::now());
            let timeout = rustix::time::Timespec::try_from(left).expect("a short time");
            let mut fds: Vec<PollFd> = calling.poll().into_iter().collect();
            rustix::event::poll(&mut fds, Some(&timeout)).expect("a poll");
        }
    }

    #[test]
    fn who_has_the_contact_line_is_heard_and_answered_after_those_who_have_not() {
        let (listener, contact_line) = listen();
        let (_, other) = listen();
        let keys = Keys::new(&contact_line.key());
        let wait = Duration::from_secs(60);
        let agent = std::thread::spawn(move || await_launcher(listener, &keys, wait));
        let mut stranger = other;
        stranger.port = contact_line.port;
        assert!(call(Calling::begin(&stranger, [].into_iter())).is_none());
        // The host's name leads to an address without an agent.
        let nowhere = IpAddr::from([127, 99, 99, 99]);
        let met = call(Calling::begin(&contact_line, [nowhere].into_iter()));
        let mut launcher = met.expect("the agent");
        let mut agent = agent.join().expect("the agent").expect("its launcher");
        let (order, mut piece) = (vec![7; 1 << 20], vec![0; 1 << 16]);
        let (mut sent, mut answered) = (0, 0);
        let (mut heard, mut answer) = (Vec::<u8>::new(), Vec::<u8>::new());
        while heard.len() < order.len() || answer.len() < 3 {
            sent += launcher.send(&order[sent..]).expect("a connection");
            answered += agent.send(&b"yes"[answered..]).expect("a connection");
            launcher.flush().expect("a connection");
            agent.flush().expect("a connection");
            let count = agent.recv(&mut piece).expect("a connection");
            heard.extend(&piece[..count.unwrap_or(0)]);
            let count = launcher.recv(&mut piece).expect("a connection");
            answer.extend(&piece[..count.unwrap_or(0)]);
        }
        assert!(heard == order && answer == b"yes");
        drop(launcher);
        while agent.recv(&mut piece).is_ok() {}
    }

    #[test]
    fn an_agent_that_nobody_calls_gives_up() {
        let (listener, contact_line) = listen();
        let keys = Keys::new(&contact_line.key());
        assert!(await_launcher(listener, &keys, Duration::from_millis(50)).is_none());
        assert!(call(Calling::begin(&contact_line, [].into_iter())).is_none());
    }
}
