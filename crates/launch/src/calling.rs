//! Calling an agent that was started apart: one address after the other, until it answers. Nothing here waits.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use regatta_transport::calls::{Call, Conversation, Greeting, Keys};
use rustix::event::{PollFd, PollFlags};

use crate::card::Card;

/// An encryption that takes longer to begin comes to nothing.
pub(crate) const LIMIT: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(crate) struct Calling {
    keys: Keys,
    left: VecDeque<SocketAddr>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// At the next address.
    Idle,
    Greeting(Call),
    Encrypting(Conversation, Instant),
}

/// How far it has come.
#[derive(Debug)]
pub(crate) enum Called {
    Under(Calling),
    Met(Conversation),
    /// At none of its addresses anybody answered who has the key.
    Nobody,
}

impl Calling {
    /// The agent of a card, first where its host's name leads.
    pub(crate) fn begin(card: &Card, named: impl Iterator<Item = IpAddr>) -> Calling {
        let mut left: VecDeque<SocketAddr> = VecDeque::new();
        for address in named.chain(card.addresses.iter().copied()) {
            let address = SocketAddr::new(address, card.port);
            if !left.contains(&address) {
                left.push_back(address);
            }
        }
        // A loopback is this host's own, and the agent's only if it runs here.
        left.make_contiguous()
            .sort_by_key(|address| address.ip().is_loopback());
        Calling {
            keys: Keys::new(&card.key()),
            left,
            stage: Stage::Idle,
        }
    }

    /// Goes on as far as possible.
    pub(crate) fn advance(mut self) -> Called {
        loop {
            self.stage = match self.stage {
                Stage::Idle => {
                    let Some(address) = self.left.pop_front() else {
                        return Called::Nobody;
                    };
                    Call::to(address).map_or(Stage::Idle, Stage::Greeting)
                }
                Stage::Greeting(call) => match call.advance(&self.keys) {
                    Greeting::Under(call) => {
                        self.stage = Stage::Greeting(call);
                        return Called::Under(self);
                    }
                    Greeting::Met(conversation) => {
                        Stage::Encrypting(conversation, Instant::now() + LIMIT)
                    }
                    Greeting::Version | Greeting::Nothing => Stage::Idle,
                },
                Stage::Encrypting(mut conversation, until) => match conversation.flush() {
                    Ok(()) if conversation.is_flushed() => return Called::Met(conversation),
                    Ok(()) if Instant::now() < until => {
                        self.stage = Stage::Encrypting(conversation, until);
                        return Called::Under(self);
                    }
                    _ => Stage::Idle,
                },
            };
        }
    }

    /// What to wait for.
    pub(crate) fn poll(&self) -> Option<PollFd<'_>> {
        match &self.stage {
            Stage::Idle => None,
            Stage::Greeting(call) => {
                // Once connected it can always be written: from there on only what is read counts.
                let connected = rustix::net::getpeername(call).is_ok();
                let flags = match connected {
                    true => PollFlags::IN,
                    false => PollFlags::IN | PollFlags::OUT,
                };
                Some(PollFd::new(call, flags))
            }
            Stage::Encrypting(conversation, _) => Some(PollFd::new(conversation, PollFlags::IN)),
        }
    }

    /// When it is to go on whatever happens.
    pub(crate) fn until(&self) -> Instant {
        match &self.stage {
            Stage::Idle => Instant::now(),
            Stage::Greeting(call) => call.until(),
            Stage::Encrypting(_, until) => *until,
        }
    }
}
