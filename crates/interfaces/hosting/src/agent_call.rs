//! Calling an agent that was started apart: one address after the other, until it answers. Nothing here waits.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use regatta_connection::calls::{Call, Conversation, Greeting, Keys};
use regatta_connection::dial;
use rustix::event::{PollFd, PollFlags};

use crate::contact_line::ContactLine;

/// Time an agent has to greet once its host, which may be busy, has accepted the connection.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// A call of an agent that was started apart, under way.
#[derive(Debug)]
pub(crate) struct Calling {
    keys: Keys,
    left: VecDeque<SocketAddr>,
    stage: Stage,
    /// The thing that this host lacked for a call.
    missing: Option<&'static str>,
}

#[derive(Debug)]
enum Stage {
    /// At the next address.
    Idle,
    Greeting(Call),
    /// The host has taken the connection.
    Connected(Call),
}

/// How far it has come.
#[derive(Debug)]
pub(crate) enum Called {
    /// Not to its end.
    Under,
    Met(Conversation),
    /// At none of its addresses anybody answered who has the key. With what this host lacked for a call, if it lacked something.
    Nobody(Option<&'static str>),
}

impl Calling {
    /// Begins to call the agent of a contact line, first where its host's name leads.
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
        // A loopback is this host's own, and the agent's only if it runs here.
        left.make_contiguous()
            .sort_by_key(|address| address.ip().is_loopback());
        Calling {
            keys: Keys::new(&contact_line.key()),
            left,
            stage: Stage::Idle,
            missing: None,
        }
    }

    /// Goes on as far as possible.
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

    /// Goes on with a greeting, which stays at the stage `under` as long as it is under way; none: it came to nothing.
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

    /// The descriptors to wait for.
    pub(crate) fn poll(&self) -> Option<PollFd<'_>> {
        match &self.stage {
            Stage::Idle => None,
            Stage::Greeting(call) => Some(PollFd::new(call, PollFlags::IN | PollFlags::OUT)),
            // It can always be written: from here on only what is read counts.
            Stage::Connected(call) => Some(PollFd::new(call, PollFlags::IN)),
        }
    }

    /// When it is to go on whatever happens.
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

    /// A listener at a port, and the contact line that leads there.
    fn listen() -> (CallListener, ContactLine) {
        let listener = TcpListener::bind((HERE, 0)).expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let contact_line = ContactLine::new(vec![HERE], port).expect("a contact line");
        (
            CallListener::new(listener.into()).expect("a listener"),
            contact_line,
        )
    }

    /// Until somebody has been met, or nobody.
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
        // Where its name leads there is nobody.
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
