//! The handshake of a connection, which tells each end who the other is and proves that both belong to the job.
//!
//! `regatta_wire::hello` has the format. Proofs are HMAC-SHA-256 under the job's key, each over its own label and
//! everything sent before it. So a proof cannot be made without the key, cannot be reflected to the other side, and
//! cannot be replayed under a new nonce. A listener answers nothing until the caller's first proof has been verified: a
//! stranger without the key sees an open port that never answers.
//!
//! The greeting is always in the clear and has the same format in every version, so ends of different versions can read
//! it. It is all that a stranger can learn. On an encrypted connection the messages of a Noise handshake
//! (`regatta_secure`) follow the greetings, under a key derived from the job's key and with the caller's greeting as
//! prologue. The last Noise message is the caller's proof; nothing that the caller sent has an effect until it is
//! verified.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use regatta_memory::undumped::Undumped;
use regatta_secure::{Bounds, Callee, Caller, FIRST, Key, SECOND, THIRD};
use regatta_wire::hello::{HELLO, Hello, PROOF_BYTES, WELCOME, Welcome};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::epoll::EventFlags;

use crate::channel::Channel;

/// Version of what is sent on connections.
pub const VERSION: u32 = 13;
/// Time limit for a handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

/// Keys derived from the job's key.
struct Keys {
    /// For proofs.
    proofs: hmac::Key,
    /// For Noise handshakes only.
    channel: Key,
}

/// What a task needs to authenticate itself: its number, the job's size and keys. The keys are excluded from core
/// dumps.
#[derive(Debug)]
pub struct Identity {
    keys: Undumped<Keys>,
    /// This end's number among those that know the key.
    pub me: u32,
    /// Number of tasks with which the job began, the same for all of its tasks.
    tasks: u32,
    /// Maximum number of tasks of the job.
    most: u32,
    pub(crate) version: u32,
    /// Whether connections are encrypted. Both ends must agree.
    pub encrypted: bool,
    /// Number of records after which this end changes the key of an encrypted connection.
    pub records: u64,
}

impl Identity {
    /// Creates the identity of task `me` of a job that began with `tasks` tasks and may have `most`.
    pub fn new(key: &Key, me: u32, (tasks, most): (u32, u32), encrypted: bool) -> Identity {
        let proofs = hmac::Key::new(hmac::HMAC_SHA256, key);
        let channel = [0; PROOF_BYTES];
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

    /// Returns the address of the keys derived from the job's key.
    #[cfg(test)]
    pub(crate) fn place_of_keys(&self) -> usize {
        &raw const *self.keys as usize
    }

    /// Returns a number derived from the job's key, the same for all of its tasks. It is sent in the clear and reveals
    /// nothing about the key.
    pub fn group_tag(&self) -> u32 {
        let [a, b, c, d, ..] = self.proof("regatta group", &[]);
        u32::from_be_bytes([a, b, c, d])
    }

    pub(crate) fn proof(&self, label: &str, transcript: &[u8]) -> [u8; PROOF_BYTES] {
        proof(&self.keys.proofs, label, transcript)
    }

    /// Returns whether the proof is valid, in constant time.
    fn holds(&self, label: &str, transcript: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.keys.proofs, &labelled(label, transcript), proof).is_ok()
    }
}

fn labelled(label: &str, transcript: &[u8]) -> Vec<u8> {
    [label.as_bytes(), &[0], transcript].concat()
}

fn proof(key: &hmac::Key, label: &str, transcript: &[u8]) -> [u8; PROOF_BYTES] {
    let mut proof = [0; PROOF_BYTES];
    proof.copy_from_slice(hmac::sign(key, &labelled(label, transcript)).as_ref());
    proof
}

/// What a handshake waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// For the socket to be connected.
    Connecting,
    Hello,
    /// For the Noise message after the hello.
    First,
    Welcome,
    /// For the Noise message after the welcome.
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
    /// Both ends have proved that they belong to the job. Carries the peer's number.
    Authenticated(u32),
    /// The peer belongs to the job, but has another version. Carries its number.
    OtherVersion(u32),
    /// The handshake failed.
    Failed,
}

/// A handshake under way.
#[derive(Debug)]
pub struct Handshake {
    channel: Channel,
    stage: Stage,
    /// The number of the peer: the task that is called, or the one that the caller claims to be.
    peer: u32,
    buffer: [u8; HELLO + PROOF_BYTES],
    have: usize,
    /// Transcript of both sides, without the Noise messages.
    transcript: Vec<u8>,
    noise: Noise,
    /// Whether the connection was refused.
    refused: bool,
    /// No timeout applies once the TCP connection is established and the hello is sent; see [`Handshake::patient`].
    patient: bool,
    /// Time limit; after it the handshake fails.
    pub until: Instant,
}

impl Handshake {
    /// Starts a handshake as the caller of `peer`. The socket may still be connecting.
    pub fn caller(socket: OwnedFd, peer: u32) -> Handshake {
        Handshake::new(socket, peer, Stage::Connecting)
    }

    /// Starts a handshake as the listener, on an accepted socket.
    pub fn listener(socket: OwnedFd) -> Handshake {
        Handshake::new(socket, u32::MAX, Stage::Hello)
    }

    fn new(socket: OwnedFd, peer: u32, stage: Stage) -> Handshake {
        Handshake {
            channel: Channel::plain(socket),
            stage,
            peer,
            buffer: [0; HELLO + PROOF_BYTES],
            have: 0,
            transcript: Vec::new(),
            noise: Noise::None,
            refused: false,
            patient: false,
            until: Instant::now() + HANDSHAKE_TIMEOUT,
        }
    }

    /// Removes the time limit after the hello has been sent. From then on the call is in the listener's queue, and a
    /// listener that computes or is stopped accepts it later. A second call would only be one more in the queue.
    pub fn patient(mut self) -> Handshake {
        self.patient = true;
        self
    }

    /// Returns whether the time limit has passed.
    pub fn is_overdue(&self, now: Instant) -> bool {
        now > self.until && !(self.patient && self.has_sent_hello())
    }

    /// Returns whether the peer's kernel does not acknowledge.
    pub fn is_silent(&self) -> bool {
        self.channel.is_silent()
    }

    /// Returns the connection that carries the handshake.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Returns the connection's socket.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Registers the socket with `epoll` for these events under `token`, until the connection is dropped.
    pub fn watch(&mut self, epoll: &Arc<OwnedFd>, token: u64, flags: EventFlags) -> io::Result<()> {
        self.channel.watch(epoll, token, flags)
    }

    /// Returns whether the caller is connected and has sent its hello.
    pub fn has_sent_hello(&self) -> bool {
        self.stage != Stage::Connecting
    }

    /// Returns whether the other host has refused the connection.
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// Returns whether the callee has verified the hello's proof and has sent its welcome.
    pub fn has_sent_welcome(&self) -> bool {
        self.stage == Stage::Proof
    }

    /// Returns the connection, after the handshake has succeeded.
    pub fn into_channel(self) -> Channel {
        self.channel
    }

    /// Continues the handshake as far as possible without blocking. Returns `None` while it is not complete.
    pub fn advance(&mut self, own: &Identity) -> Option<Outcome> {
        match self.step(own) {
            Ok(None) if self.is_overdue(Instant::now()) => Some(Outcome::Failed),
            Ok(end) => end,
            Err(_) => Some(Outcome::Failed),
        }
    }

    /// Returns the size of the message that is awaited, in bytes.
    fn awaited(&self, own: &Identity) -> usize {
        match self.stage {
            Stage::Connecting => 0,
            Stage::Hello => HELLO + PROOF_BYTES,
            Stage::First => FIRST,
            Stage::Welcome => WELCOME + PROOF_BYTES,
            Stage::Second => SECOND,
            Stage::Proof if own.encrypted => THIRD,
            Stage::Proof => PROOF_BYTES,
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
        let mut message = self.proved(own, "regatta hello", &hello.encode());
        if own.encrypted {
            let (caller, first) = Caller::begin(&own.keys.channel, &self.transcript)?;
            self.noise = Noise::Caller(caller);
            message.extend_from_slice(&first);
        }
        self.send(&message)?;
        self.stage = Stage::Welcome;
        Ok(true)
    }

    /// Appends `bytes` and their proof to the transcript; returns both as sent on the wire.
    fn proved(&mut self, own: &Identity, label: &str, bytes: &[u8]) -> Vec<u8> {
        self.transcript.extend_from_slice(bytes);
        let proof = own.proof(label, &self.transcript);
        self.transcript.extend_from_slice(&proof);
        [bytes, &proof].concat()
    }

    /// Sends a message. The socket buffer is empty at this point, so a short write is an error.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let n = self.channel.send(&[IoSlice::new(bytes)])?;
        (n == bytes.len())
            .then_some(())
            .ok_or(io::ErrorKind::WriteZero.into())
    }

    /// Checks the proof that follows the first `size` bytes of the buffer, and adds both to the transcript.
    fn holds(&mut self, own: &Identity, label: &str, size: usize) -> bool {
        let (bytes, proof) = self.buffer[..size + PROOF_BYTES].split_at(size);
        self.transcript.extend_from_slice(bytes);
        let holds = own.holds(label, &self.transcript, proof);
        self.transcript.extend_from_slice(proof);
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
            // In other versions something else may follow the hello. Answer with a welcome, so that the caller learns
            // our version, and stop.
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
        let answer = answer.map(|first| Callee::answer(&own.keys.channel, &self.transcript, first));
        let Some(Ok((callee, second))) = answer else {
            return Ok(Some(Outcome::Failed));
        };
        self.noise = Noise::Callee(callee);
        self.welcome(own, &second)?;
        Ok(None)
    }

    /// Answers a hello with the welcome, followed by the Noise message `behind`.
    fn welcome(&mut self, own: &Identity, behind: &[u8]) -> io::Result<()> {
        let welcome = Welcome {
            version: own.version,
            nonce: nonce()?,
        };
        let mut message = self.proved(own, "regatta welcome", &welcome.encode());
        message.extend_from_slice(behind);
        self.stage = Stage::Proof;
        self.send(&message)
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
        let message = self.proved(own, "regatta proof", &[]);
        self.send(&message)?;
        Ok(Some(Outcome::Authenticated(self.peer)))
    }

    fn handle_second(&mut self, own: &Identity) -> io::Result<Option<Outcome>> {
        let (Noise::Caller(caller), Some(second)) = (self.take_noise(), self.buffer.first_chunk())
        else {
            return Ok(Some(Outcome::Failed));
        };
        let (session, third) = caller.finish(second, Bounds::CONNECTION, own.records)?;
        self.send(&third)?;
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

/// Returns whether these first bytes can begin a greeting. All greetings begin with the same magic bytes.
fn is_greeting(bytes: &[u8]) -> bool {
    let magic = b"regatta\x02";
    let n = bytes.len().min(magic.len());
    bytes[..n] == magic[..n]
}

fn nonce() -> io::Result<[u8; PROOF_BYTES]> {
    let mut nonce = [0; PROOF_BYTES];
    SystemRandom::new()
        .fill(&mut nonce)
        .map_err(|_| io::Error::other("the system cannot provide random numbers"))?;
    Ok(nonce)
}
