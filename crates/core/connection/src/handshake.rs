//! The handshake of a connection: who calls whom, and that both belong to the job.
//!
//! The grammar stands in `regatta_wire::hello`. Proofs are HMAC-SHA-256 under the job's key, each over a label of its
//! own and everything said before it. So nobody without the key can make one, a proof of one side is none
//! of the other, and an old one does not fit a new nonce. A listener answers nothing before the caller's first
//! proof holds: to whoever has no key there is an open port, and silence.
//!
//! The greeting is in the clear, whatever follows it, and the same in every version: so two of different versions understand
//! that, and a stranger hears no more than that of anybody. A connection to be encrypted has the messages of a Noise handshake
//! (`regatta_secure`) behind the greetings, under a key that comes from the job's, and with the caller's greeting as its prologue. The
//! last of them is the caller's proof: before it holds, nothing comes of what the caller has said.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use regatta_memory::undumped::Undumped;
use regatta_secure::{Bounds, Callee, Caller, FIRST, Key, SECOND, THIRD};
use regatta_wire::hello::{HELLO, Hello, WELCOME, WORD, Welcome};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::epoll::EventFlags;

use crate::channel::Channel;

/// Version of what flows on connections.
pub const VERSION: u32 = 13;
/// Time limit for a handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

/// Keys made from the job's key.
struct Keys {
    /// Of proofs.
    proofs: hmac::Key,
    /// Of Noise handshakes, and of no other use.
    channel: Key,
}

/// A task's knowledge of itself and its job. Its knowledge of the key is in no core dump.
#[derive(Debug)]
pub struct Identity {
    keys: Undumped<Keys>,
    /// This end's number among those that know the key.
    pub me: u32,
    /// Tasks the job began with: the same for all that belong to it.
    tasks: u32,
    /// And how many it may have.
    most: u32,
    pub(crate) version: u32,
    /// Whether connections are encrypted. Both ends must say so.
    pub encrypted: bool,
    /// After so many records it changes the key of an encrypted connection.
    pub records: u64,
}

impl Identity {
    /// The end `me` of a job that began with `tasks` tasks and may have `most`.
    pub fn new(key: &Key, me: u32, (tasks, most): (u32, u32), encrypted: bool) -> Identity {
        let proofs = hmac::Key::new(hmac::HMAC_SHA256, key);
        let channel = [0; WORD];
        let mut keys = Undumped::new(Keys { proofs, channel });
        keys.channel = proof(&keys.proofs, "regatta channel", &[]);
        Identity {
            keys,
            me,
            tasks,
            most,
            version: VERSION,
            encrypted,
            records: Bounds::CONNECTION.most,
        }
    }

    /// The address of the keys made from the job's key.
    #[cfg(test)]
    pub(crate) fn place_of_keys(&self) -> usize {
        &raw const *self.keys as usize
    }

    /// Returns a number made from the job's key, the same for all of its tasks. It travels in the clear and reveals nothing about the key.
    pub fn group_tag(&self) -> u32 {
        let [a, b, c, d, ..] = self.proof("regatta group", &[]);
        u32::from_be_bytes([a, b, c, d])
    }

    pub(crate) fn proof(&self, label: &str, said: &[u8]) -> [u8; WORD] {
        proof(&self.keys.proofs, label, said)
    }

    /// Returns whether the proof holds. Takes the same time whatever differs.
    fn holds(&self, label: &str, said: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.keys.proofs, &labelled(label, said), proof).is_ok()
    }
}

fn labelled(label: &str, said: &[u8]) -> Vec<u8> {
    [label.as_bytes(), &[0], said].concat()
}

fn proof(key: &hmac::Key, label: &str, said: &[u8]) -> [u8; WORD] {
    let mut proof = [0; WORD];
    proof.copy_from_slice(hmac::sign(key, &labelled(label, said)).as_ref());
    proof
}

/// What a handshake awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The socket's connection.
    Connecting,
    Hello,
    /// The Noise message behind the hello.
    First,
    Welcome,
    /// The Noise message behind the welcome.
    Second,
    Proof,
}

/// A Noise handshake under way.
#[derive(Debug)]
enum Noise {
    None,
    Caller(Caller),
    Callee(Callee),
}

/// How a handshake ended.
#[derive(Debug)]
pub enum Outcome {
    /// Both have proved that they belong to the job; the peer's number.
    Authenticated(u32),
    /// The peer belongs to the job, but speaks another version; its number.
    OtherVersion(u32),
    /// There is no connection.
    Failed,
}

/// A handshake under way.
#[derive(Debug)]
pub struct Handshake {
    channel: Channel,
    stage: Stage,
    /// The peer that this task calls, or that says it calls.
    peer: u32,
    buffer: [u8; HELLO + WORD],
    have: usize,
    /// The words of both, but for those of Noise.
    said: Vec<u8>,
    noise: Noise,
    /// Nobody listens there.
    refused: bool,
    /// Once the other host has taken the call, it waits for its listener.
    patient: bool,
    /// It comes to nothing at this time.
    pub until: Instant,
}

impl Handshake {
    /// This task calls `peer`; the socket is being connected.
    pub fn caller(socket: OwnedFd, peer: u32) -> Handshake {
        Handshake::new(socket, peer, Stage::Connecting)
    }

    /// Somebody calls.
    pub fn listener(socket: OwnedFd) -> Handshake {
        Handshake::new(socket, u32::MAX, Stage::Hello)
    }

    fn new(socket: OwnedFd, peer: u32, stage: Stage) -> Handshake {
        Handshake {
            channel: Channel::plain(socket),
            stage,
            peer,
            buffer: [0; HELLO + WORD],
            have: 0,
            said: Vec::new(),
            noise: Noise::None,
            refused: false,
            patient: false,
            until: Instant::now() + HANDSHAKE_TIMEOUT,
        }
    }

    /// The caller waits as long as it takes, once it has said hello: its call is in the listener's queue, and a listener that
    /// computes, or is stopped, gets to it later. Another call would only be one more in the queue.
    pub fn patient(mut self) -> Handshake {
        self.patient = true;
        self
    }

    /// Whether it takes longer than it may.
    pub fn is_overdue(&self, now: Instant) -> bool {
        now > self.until && !(self.patient && self.has_sent_hello())
    }

    /// Whether the other side's kernel leaves this one without an answer.
    pub fn is_silent(&self) -> bool {
        self.channel.is_silent()
    }

    /// The connection, which carries the handshake.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Its socket.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// From now on `epoll` reports these events, under this token, until the connection is dropped.
    pub fn watch(&mut self, epoll: &Arc<OwnedFd>, token: u64, flags: EventFlags) -> io::Result<()> {
        self.channel.watch(epoll, token, flags)
    }

    /// Returns whether the caller is connected and has sent its hello.
    pub fn has_sent_hello(&self) -> bool {
        self.stage != Stage::Connecting
    }

    /// The other host has answered that nobody listens there.
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// Returns whether the callee has found the hello's proof right and has sent its welcome.
    pub fn has_sent_welcome(&self) -> bool {
        self.stage == Stage::Proof
    }

    /// The connection, when both have met.
    pub fn into_channel(self) -> Channel {
        self.channel
    }

    /// Go on as far as possible; `None`: not at the end yet.
    pub fn advance(&mut self, own: &Identity) -> Option<Outcome> {
        match self.step(own) {
            Ok(None) if self.is_overdue(Instant::now()) => Some(Outcome::Failed),
            Ok(end) => end,
            Err(_) => Some(Outcome::Failed),
        }
    }

    /// Bytes of the message that is awaited.
    fn awaited(&self, own: &Identity) -> usize {
        match self.stage {
            Stage::Connecting => 0,
            Stage::Hello => HELLO + WORD,
            Stage::First => FIRST,
            Stage::Welcome => WELCOME + WORD,
            Stage::Second => SECOND,
            Stage::Proof if own.encrypted => THIRD,
            Stage::Proof => WORD,
        }
    }

    fn step(&mut self, own: &Identity) -> io::Result<Option<Outcome>> {
        if self.stage == Stage::Connecting && !self.send_hello_if_connected(own)? {
            return Ok(None);
        }
        loop {
            let whole = self.awaited(own);
            while self.have < whole {
                let place = &mut self.buffer[self.have..whole];
                match self.channel.recv(&mut [IoSliceMut::new(place)])? {
                    Some(n) => self.have += n,
                    None => return Ok(None),
                }
                let greets = matches!(self.stage, Stage::Hello | Stage::Welcome);
                if greets && !is_greeting(&self.buffer[..self.have]) {
                    return Ok(Some(Outcome::Failed));
                }
            }
            self.have = 0;
            let end = match self.stage {
                Stage::Connecting => return Ok(None),
                Stage::Hello => self.handle_hello(own)?,
                Stage::First => self.handle_first(own)?,
                Stage::Welcome => self.handle_welcome(own)?,
                Stage::Second => self.handle_second(own)?,
                Stage::Proof => self.handle_proof(own)?,
            };
            if let Some(end) = end {
                return Ok(Some(end));
            }
        }
    }

    /// Sends the hello if the socket is connected by now. Returns whether it is.
    fn send_hello_if_connected(&mut self, own: &Identity) -> io::Result<bool> {
        let error = rustix::net::sockopt::socket_error(&self.channel)?;
        self.refused = error == Err(rustix::io::Errno::CONNREFUSED);
        error?;
        if rustix::net::getpeername(&self.channel).is_err() {
            return Ok(false);
        }
        let hello = Hello {
            version: own.version,
            tasks: own.tasks,
            from: own.me,
            to: self.peer,
            encrypted: own.encrypted,
            nonce: nonce()?,
        };
        let mut words = self.proved(own, "regatta hello", &hello.encode());
        if own.encrypted {
            let (caller, first) = Caller::begin(&own.keys.channel, &self.said)?;
            self.noise = Noise::Caller(caller);
            words.extend_from_slice(&first);
        }
        self.say(&words)?;
        self.stage = Stage::Welcome;
        Ok(true)
    }

    /// Something, and its proof behind it.
    fn proved(&mut self, own: &Identity, label: &str, bytes: &[u8]) -> Vec<u8> {
        self.said.extend_from_slice(bytes);
        let proof = own.proof(label, &self.said);
        self.said.extend_from_slice(&proof);
        [bytes, &proof].concat()
    }

    /// The socket's buffer is empty: it takes all of it, or something is wrong.
    fn say(&mut self, words: &[u8]) -> io::Result<()> {
        let n = self.channel.send(&[IoSlice::new(words)])?;
        (n == words.len())
            .then_some(())
            .ok_or(io::ErrorKind::WriteZero.into())
    }

    /// Does the proof hold that has come behind so many bytes?
    fn holds(&mut self, own: &Identity, label: &str, size: usize) -> bool {
        let (bytes, proof) = self.buffer[..size + WORD].split_at(size);
        self.said.extend_from_slice(bytes);
        let holds = own.holds(label, &self.said, proof);
        self.said.extend_from_slice(proof);
        holds
    }

    fn handle_hello(&mut self, own: &Identity) -> io::Result<Option<Outcome>> {
        let holds = self.holds(own, "regatta hello", HELLO);
        let hello = self.buffer.first_chunk().map(Hello::decode);
        let (true, Some(Ok(hello))) = (holds, hello) else {
            return Ok(Some(Outcome::Failed));
        };
        let same = (hello.tasks, hello.to, hello.encrypted) == (own.tasks, own.me, own.encrypted);
        if !same || hello.from >= own.most || hello.from == own.me {
            return Ok(Some(Outcome::Failed));
        }
        self.peer = hello.from;
        if hello.version != own.version {
            // Other versions may have other words behind a hello. The welcome says why they are not read.
            self.welcome(own, &[])?;
            return Ok(Some(Outcome::OtherVersion(self.peer)));
        }
        if own.encrypted {
            self.stage = Stage::First;
        } else {
            self.welcome(own, &[])?;
        }
        Ok(None)
    }

    fn handle_first(&mut self, own: &Identity) -> io::Result<Option<Outcome>> {
        let answer = self.buffer.first_chunk();
        let answer = answer.map(|first| Callee::answer(&own.keys.channel, &self.said, first));
        let Some(Ok((callee, second))) = answer else {
            return Ok(Some(Outcome::Failed));
        };
        self.noise = Noise::Callee(callee);
        self.welcome(own, &second)?;
        Ok(None)
    }

    /// Answers a hello.
    fn welcome(&mut self, own: &Identity, behind: &[u8]) -> io::Result<()> {
        let welcome = Welcome {
            version: own.version,
            nonce: nonce()?,
        };
        let mut words = self.proved(own, "regatta welcome", &welcome.encode());
        words.extend_from_slice(behind);
        self.stage = Stage::Proof;
        self.say(&words)
    }

    fn handle_welcome(&mut self, own: &Identity) -> io::Result<Option<Outcome>> {
        let holds = self.holds(own, "regatta welcome", WELCOME);
        let welcome = self.buffer.first_chunk().map(Welcome::decode);
        let (true, Some(Ok(welcome))) = (holds, welcome) else {
            return Ok(Some(Outcome::Failed));
        };
        if welcome.version != own.version {
            return Ok(Some(Outcome::OtherVersion(self.peer)));
        }
        if own.encrypted {
            self.stage = Stage::Second;
            return Ok(None);
        }
        let words = self.proved(own, "regatta proof", &[]);
        self.say(&words)?;
        Ok(Some(Outcome::Authenticated(self.peer)))
    }

    fn handle_second(&mut self, own: &Identity) -> io::Result<Option<Outcome>> {
        let (Noise::Caller(caller), Some(second)) = (self.take_noise(), self.buffer.first_chunk())
        else {
            return Ok(Some(Outcome::Failed));
        };
        let (session, third) = caller.finish(second, Bounds::CONNECTION, own.records)?;
        self.say(&third)?;
        self.channel.secure(session);
        Ok(Some(Outcome::Authenticated(self.peer)))
    }

    fn handle_proof(&mut self, own: &Identity) -> io::Result<Option<Outcome>> {
        let holds = match (own.encrypted, self.take_noise()) {
            (true, Noise::Callee(callee)) => self.handle_third(own, callee)?,
            (false, Noise::None) => self.holds(own, "regatta proof", 0),
            _ => false,
        };
        Ok(Some(match holds {
            true => Outcome::Authenticated(self.peer),
            false => Outcome::Failed,
        }))
    }

    fn handle_third(&mut self, own: &Identity, callee: Callee) -> io::Result<bool> {
        let Some(third) = self.buffer.first_chunk() else {
            return Ok(false);
        };
        let session = callee.finish(third, Bounds::CONNECTION, own.records)?;
        self.channel.secure(session);
        Ok(true)
    }

    fn take_noise(&mut self) -> Noise {
        std::mem::replace(&mut self.noise, Noise::None)
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
