//! The handshake of a connection: who calls whom, and that both belong to the job.
//!
//! The grammar stands in `regatta_wire::hello`. Proofs are HMAC-SHA-256 under the job's key, each over a label of its
//! own and everything said before it. So nobody without the key can make one, a proof of one side is none
//! of the other, and an old one does not fit a new nonce. A listener answers nothing before the caller's first
//! proof holds: to whoever has no key there is an open port, and silence.
//!
//! The words of both make a seed that only they can know, another one for each connection: from it come
//! the keys an encrypted connection begins with (see `secure`).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use regatta_engine::Peer;
use regatta_wire::hello::{HELLO, Hello, WELCOME, WORD, Welcome};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::epoll::EventFlags;

use super::channel::Channel;
use super::records;
use regatta_segment::place::Key;

/// Version of what flows on connections.
pub(crate) const VERSION: u32 = 4;
/// A handshake that takes longer comes to nothing.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

/// A task's knowledge of itself and its job.
#[derive(Debug)]
pub(crate) struct Own {
    key: hmac::Key,
    pub(crate) me: Peer,
    /// Tasks the job began with: the same for all that belong to it.
    tasks: u32,
    /// And how many it may have.
    most: u32,
    pub(crate) encrypted: bool,
    /// After so many records it changes the key of an encrypted connection.
    pub(crate) records: u64,
}

impl Own {
    pub(crate) fn new(key: &Key, me: Peer, (tasks, most): (u32, u32), encrypted: bool) -> Own {
        Own {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            me,
            tasks,
            most,
            encrypted,
            records: records::MOST,
        }
    }

    fn proof(&self, label: &str, said: &[u8]) -> [u8; WORD] {
        let mut proof = [0; WORD];
        proof.copy_from_slice(hmac::sign(&self.key, &labelled(label, said)).as_ref());
        proof
    }

    /// Takes the same time whatever differs.
    fn holds(&self, label: &str, said: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.key, &labelled(label, said), proof).is_ok()
    }
}

fn labelled(label: &str, said: &[u8]) -> Vec<u8> {
    [label.as_bytes(), &[0], said].concat()
}

/// Where a handshake stands: what is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connected,
    Hello,
    Welcome,
    Proof,
}

/// How a handshake ended.
#[derive(Debug)]
pub(crate) enum End {
    /// Both have proved that they belong to the job.
    Met { peer: Peer, seed: [u8; WORD] },
    /// The peer belongs to the job, but speaks another version.
    Version(Peer),
    /// It came to nothing.
    Nothing,
}

/// A handshake under way.
#[derive(Debug)]
pub(crate) struct Shake {
    channel: Channel,
    stage: Stage,
    /// The peer that this task calls, or that says it calls.
    peer: Peer,
    buffer: [u8; HELLO + WORD],
    have: usize,
    /// The words of both.
    said: Vec<u8>,
    /// Nobody listens there.
    refused: bool,
    /// Once the other host has taken the call, it waits for its listener.
    patient: bool,
    pub(crate) until: Instant,
}

impl Shake {
    /// This task calls `peer`; the socket is being connected.
    pub(crate) fn caller(socket: OwnedFd, peer: Peer) -> Shake {
        Shake::new(socket, peer, Stage::Connected)
    }

    /// Somebody calls.
    pub(crate) fn listener(socket: OwnedFd) -> Shake {
        Shake::new(socket, Peer::MAX, Stage::Hello)
    }

    fn new(socket: OwnedFd, peer: Peer, stage: Stage) -> Shake {
        Shake {
            channel: Channel::plain(socket),
            stage,
            peer,
            buffer: [0; HELLO + WORD],
            have: 0,
            said: Vec::new(),
            refused: false,
            patient: false,
            until: Instant::now() + LIMIT,
        }
    }

    /// The caller waits as long as it takes, once it has said hello: its call is in the listener's queue, and a listener that
    /// computes, or is stopped, gets to it later. Another call would only be one more in the queue.
    pub(crate) fn patient(mut self) -> Shake {
        self.patient = true;
        self
    }

    /// Whether it takes longer than it may.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        now > self.until && !(self.patient && self.has_greeted())
    }

    /// Whether the other side's kernel leaves this one without an answer.
    pub(crate) fn is_silent(&self) -> bool {
        self.channel.is_silent()
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// From now on `epoll` reports these events, under this token, until the connection is dropped.
    pub(crate) fn watch(
        &mut self,
        epoll: &Arc<OwnedFd>,
        token: u64,
        flags: EventFlags,
    ) -> io::Result<()> {
        self.channel.watch(epoll, token, flags)
    }

    /// This task has called, and said hello: now it listens.
    pub(crate) fn has_greeted(&self) -> bool {
        self.stage != Stage::Connected
    }

    /// The other host has answered that nobody listens there.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused
    }

    /// Has the caller's greeting been answered, for its proof held?
    pub(crate) fn is_welcomed(&self) -> bool {
        self.stage == Stage::Proof
    }

    /// The connection, when both have met.
    pub(crate) fn into_channel(self) -> Channel {
        self.channel
    }

    /// Go on as far as possible; `None`: not at the end yet.
    pub(crate) fn advance(&mut self, own: &Own) -> Option<End> {
        match self.step(own) {
            Ok(None) if self.is_overdue(Instant::now()) => Some(End::Nothing),
            Ok(end) => end,
            Err(_) => Some(End::Nothing),
        }
    }

    fn step(&mut self, own: &Own) -> io::Result<Option<End>> {
        if self.stage == Stage::Connected && !self.connected(own)? {
            return Ok(None);
        }
        loop {
            let (size, label) = match self.stage {
                Stage::Connected => return Ok(None),
                Stage::Hello => (HELLO, "regatta hello"),
                Stage::Welcome => (WELCOME, "regatta welcome"),
                Stage::Proof => (0, "regatta proof"),
            };
            let whole = size + WORD;
            while self.have < whole {
                let place = &mut self.buffer[self.have..whole];
                match self.channel.recv(&mut [IoSliceMut::new(place)])? {
                    Some(n) => self.have += n,
                    None => return Ok(None),
                }
                if self.stage != Stage::Proof && !is_greeting(&self.buffer[..self.have]) {
                    return Ok(Some(End::Nothing));
                }
            }
            self.have = 0;
            self.said.extend_from_slice(&self.buffer[..size]);
            let proof = &self.buffer[size..whole];
            if !own.holds(label, &self.said, proof) {
                return Ok(Some(End::Nothing));
            }
            self.said.extend_from_slice(proof);
            if let Some(end) = self.understood(own)? {
                return Ok(Some(end));
            }
        }
    }

    /// The connection may stand now: say hello.
    fn connected(&mut self, own: &Own) -> io::Result<bool> {
        let error = rustix::net::sockopt::socket_error(&self.channel)?;
        self.refused = error == Err(rustix::io::Errno::CONNREFUSED);
        error?;
        if rustix::net::getpeername(&self.channel).is_err() {
            return Ok(false);
        }
        let hello = Hello {
            version: VERSION,
            tasks: own.tasks,
            from: own.me,
            to: self.peer,
            encrypted: own.encrypted,
            nonce: nonce()?,
        };
        self.send_proved(own, "regatta hello", &hello.encode())?;
        self.stage = Stage::Welcome;
        Ok(true)
    }

    /// Say something and prove it, as one.
    fn send_proved(&mut self, own: &Own, label: &str, bytes: &[u8]) -> io::Result<()> {
        self.said.extend_from_slice(bytes);
        let proof = own.proof(label, &self.said);
        self.said.extend_from_slice(&proof);
        let whole = [bytes, &proof].concat();
        // The socket's buffer is empty: it takes all of it, or something is wrong.
        let n = self.channel.send(&[IoSlice::new(&whole)])?;
        (n == whole.len())
            .then_some(())
            .ok_or(io::ErrorKind::WriteZero.into())
    }

    /// The proof of the other side holds: answer.
    fn understood(&mut self, own: &Own) -> io::Result<Option<End>> {
        match self.stage {
            Stage::Hello => {
                let bytes = self.buffer.first_chunk::<HELLO>();
                let Some(hello) = bytes.and_then(|bytes| Hello::decode(bytes).ok()) else {
                    return Ok(Some(End::Nothing));
                };
                let same =
                    (hello.tasks, hello.to, hello.encrypted) == (own.tasks, own.me, own.encrypted);
                if !same || hello.from >= own.most || hello.from == own.me {
                    return Ok(Some(End::Nothing));
                }
                self.peer = hello.from;
                let welcome = Welcome {
                    version: VERSION,
                    nonce: nonce()?,
                };
                self.send_proved(own, "regatta welcome", &welcome.encode())?;
                self.stage = Stage::Proof;
                Ok((hello.version != VERSION).then_some(End::Version(self.peer)))
            }
            Stage::Welcome => {
                let bytes = self.buffer.first_chunk::<WELCOME>();
                let Some(welcome) = bytes.and_then(|bytes| Welcome::decode(bytes).ok()) else {
                    return Ok(Some(End::Nothing));
                };
                if welcome.version != VERSION {
                    return Ok(Some(End::Version(self.peer)));
                }
                self.send_proved(own, "regatta proof", &[])?;
                self.met(own)
            }
            _ => self.met(own),
        }
    }

    fn met(&self, own: &Own) -> io::Result<Option<End>> {
        let (peer, seed) = (self.peer, own.proof("regatta session", &self.said));
        Ok(Some(End::Met { peer, seed }))
    }
}

/// Could this become a greeting? All begin with the same word.
fn is_greeting(bytes: &[u8]) -> bool {
    let begin = b"regatta\x02";
    let n = bytes.len().min(begin.len());
    bytes[..n] == begin[..n]
}

fn nonce() -> io::Result<[u8; WORD]> {
    let mut nonce = [0; WORD];
    SystemRandom::new()
        .fill(&mut nonce)
        .map_err(|_| io::Error::other("no random numbers"))?;
    Ok(nonce)
}
