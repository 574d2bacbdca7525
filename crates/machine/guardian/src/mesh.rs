//! The connections between the guardians of a job on several nodes. They report which tasks have left or died, and
//! which nodes are lost.
//!
//! Each message carries an HMAC under a key for its connection and direction, computed over a sequence number as well.
//! Without the job's key nobody can forge, replay or suppress a message. A connection on which a proof fails counts as
//! lost.
//!
//! ```text
//! caller                              callee
//!                    <──  a nonce (32 bytes), drawn for this connection
//! Record::Node, proof  ──>             identifies the caller, and proves that it is not a replay
//! records            <──>             records
//! ```
//!
//! The nonce is part of the keys of the connection. So a record captured on one connection is not accepted on another,
//! not even the first record.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use regatta_memory::undumped::Undumped;
use regatta_segment::place::Key;
use regatta_wire::guardian::{RECORD, Record, Secret};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::callers::{self, Bounds, Callers, Claim};

/// Interval between two beats of a guardian.
pub(crate) const BEAT_INTERVAL: Duration = Duration::from_millis(500);
/// Silence after which a node's guardian counts as lost: ten missed beats.
const GUARDIAN_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for delivering the last messages before connections are closed.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

const PROOF_BYTES: usize = 32;
const PROVED_RECORD_BYTES: usize = RECORD + PROOF_BYTES;

/// A message about another node.
pub(crate) enum News {
    /// The guardian of this node has sent this record.
    Told(u32, Record),
    /// This node is lost.
    Lost(u32),
}

/// The connections of this node's guardian.
#[derive(Default)]
pub(crate) struct Mesh {
    others: Vec<Other>,
    spoken: Option<Instant>,
}

/// The connection to the guardian of another node.
pub(crate) struct Other {
    node: u32,
    stream: TcpStream,
    ours: Proofs,
    theirs: Proofs,
    buffer: Vec<u8>,
    heard: Instant,
    lost: bool,
}

/// The proofs of one direction of a connection.
struct Proofs {
    key: Undumped<hmac::Key>,
    count: u64,
}

impl Proofs {
    fn new(key: &Secret, (from, to): (u32, u32), nonce: &Secret) -> Self {
        let job = hmac::Key::new(hmac::HMAC_SHA256, key);
        let label = [
            &b"regatta guardian"[..],
            &from.to_le_bytes(),
            &to.to_le_bytes(),
            nonce,
        ]
        .concat();
        let derived = hmac::sign(&job, &label);
        Self {
            key: Undumped::new(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())),
            count: 0,
        }
    }

    fn sign(&mut self, record: Record) -> Vec<u8> {
        let bytes = record.encode();
        let counted = self.counted(&bytes);
        let proof = hmac::sign(&self.key, &counted);
        [&bytes, proof.as_ref()].concat()
    }

    fn open(&mut self, whole: &[u8; PROVED_RECORD_BYTES]) -> Option<Record> {
        let (bytes, proof) = whole.split_first_chunk::<RECORD>()?;
        let counted = self.counted(bytes);
        hmac::verify(&self.key, &counted, proof).ok()?;
        Record::decode(bytes)
    }

    fn counted(&mut self, bytes: &[u8]) -> Vec<u8> {
        let counted = [&self.count.to_le_bytes()[..], bytes].concat();
        self.count += 1;
        counted
    }
}

impl Other {
    /// Creates the state for the guardian of `node` at the other end of `stream`. The caller guarantees that no other
    /// connection has used this nonce with the job's key.
    pub(crate) fn new(
        key: &Secret,
        (me, node): (u32, u32),
        nonce: &Secret,
        stream: TcpStream,
    ) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self {
            node,
            stream,
            ours: Proofs::new(key, (me, node), nonce),
            theirs: Proofs::new(key, (node, me), nonce),
            buffer: Vec::new(),
            heard: Instant::now(),
            lost: false,
        })
    }

    /// Waits for the nonce of the guardian of `node` on `stream`, then sends it this node's number. While it waits it
    /// calls `beat`, so that a slow node does not make the other nodes consider this one lost.
    pub(crate) fn call(
        key: &Secret,
        (me, node): (u32, u32),
        stream: TcpStream,
        until: Instant,
        beat: impl FnMut(),
    ) -> Option<Self> {
        let nonce = read_nonce(&stream, until, beat)?;
        let mut other = Self::new(key, (me, node), &nonce, stream)?;
        other.send(Record::Node(me));
        (!other.lost).then_some(other)
    }

    /// Accepts the guardians that call this one.
    pub(crate) fn listen(
        key: Key,
        me: u32,
        listener: TcpListener,
        bounds: Bounds,
    ) -> std::io::Result<Callers<Self>> {
        let prove = move |claim| Self::called(&key, me, claim);
        callers::listen(listener, bounds, tell_nonce, rest_of_call, prove)
    }

    /// Returns the connection to the guardian that has called, if the caller is one.
    fn called(key: &Secret, me: u32, claim: Claim) -> Option<Self> {
        let whole: [u8; PROVED_RECORD_BYTES] = claim.said.try_into().ok()?;
        // The record names the caller's node, which selects the key; `open` then verifies that the caller has that key.
        let (bytes, _) = whole.split_first_chunk::<RECORD>()?;
        let Some(Record::Node(node)) = Record::decode(bytes) else {
            return None;
        };
        let mut other = Self::new(key, (me, node), &claim.challenge, claim.stream)?;
        other.theirs.open(&whole)?;
        Some(other)
    }

    pub(crate) fn node(&self) -> u32 {
        self.node
    }

    fn send(&mut self, record: Record) {
        let whole = self.ours.sign(record);
        // A record is so small that the socket buffer takes all of it, unless the peer has not read for a long time. A
        // short write therefore means that the peer is lost.
        if !matches!(self.stream.write(&whole), Ok(count) if count == whole.len()) {
            self.lost = true;
        }
    }

    fn receive(&mut self, news: &mut Vec<News>) {
        let mut bytes = [0; 16 * PROVED_RECORD_BYTES];
        while !self.lost {
            match self.stream.read(&mut bytes) {
                Ok(0) => self.lost = true,
                Ok(count) => {
                    self.heard = Instant::now();
                    self.buffer.extend_from_slice(&bytes[..count]);
                    self.take(news);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.lost = true,
            }
        }
        self.lost |= self.heard.elapsed() >= GUARDIAN_TIMEOUT;
    }

    fn take(&mut self, news: &mut Vec<News>) {
        while let Some(whole) = self.buffer.first_chunk::<PROVED_RECORD_BYTES>() {
            let Some(record) = self.theirs.open(whole) else {
                self.lost = true;
                return;
            };
            self.buffer.drain(..PROVED_RECORD_BYTES);
            news.push(News::Told(self.node, record));
        }
    }
}

/// Returns how many bytes of the first record are still missing after `said`.
fn rest_of_call(said: &[u8]) -> Option<usize> {
    PROVED_RECORD_BYTES.checked_sub(said.len())
}

/// Sends the connection's nonce to the caller. This is the first write, so the socket buffer has room for all of it.
fn tell_nonce(mut stream: &TcpStream) -> Option<Secret> {
    let mut nonce = Secret::default();
    SystemRandom::new().fill(&mut nonce).ok()?;
    let told = stream.write(&nonce).ok()?;
    (told == nonce.len()).then_some(nonce)
}

/// Returns the nonce that the called guardian has sent. Calls `beat` every [`BEAT_INTERVAL`] until the nonce is
/// received.
fn read_nonce(mut stream: &TcpStream, until: Instant, mut beat: impl FnMut()) -> Option<Secret> {
    let (mut nonce, mut have) = (Secret::default(), 0);
    while have < nonce.len() {
        let left = until.saturating_duration_since(Instant::now());
        // `set_read_timeout` returns an error for a zero duration, which ends the wait here.
        stream
            .set_read_timeout(Some(left.min(BEAT_INTERVAL)))
            .ok()?;
        match stream.read(&mut nonce[have..]) {
            Ok(0) => return None,
            Ok(count) => have += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Only the timeout of this read has expired (one beat), not `until`.
            Err(error) if error.kind() == ErrorKind::WouldBlock => beat(),
            Err(_) => return None,
        }
    }
    Some(nonce)
}

impl Mesh {
    pub(crate) fn add(&mut self, other: Other) {
        self.others.push(other);
    }

    /// Returns whether there are no connections left.
    pub(crate) fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Returns the descriptors to poll.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.others.iter().map(|other| other.stream.as_fd())
    }

    /// Sends a record to all others.
    pub(crate) fn send_to_all(&mut self, record: Record) {
        self.others.iter_mut().for_each(|other| other.send(record));
    }

    /// Sends a beat to all others, if it is time.
    pub(crate) fn beat(&mut self) {
        if self
            .spoken
            .is_none_or(|spoken| spoken.elapsed() >= BEAT_INTERVAL)
        {
            self.spoken = Some(Instant::now());
            self.send_to_all(Record::Beat);
        }
    }

    /// Returns the messages that were received, and the nodes that are lost.
    pub(crate) fn receive(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        for other in &mut self.others {
            other.receive(&mut news);
            if other.lost {
                news.push(News::Lost(other.node));
            }
        }
        self.others.retain(|other| !other.lost);
        news
    }

    /// Closes all connections once the peers have received the last messages. Closing a socket with unread input would
    /// reset the connection and discard them.
    pub(crate) fn finish(mut self) {
        let until = Instant::now() + FAREWELL_TIMEOUT;
        for other in &self.others {
            let _ = other.stream.shutdown(Shutdown::Write);
        }
        while !self.is_empty() && Instant::now() < until {
            let fds: Vec<_> = self.fds().collect();
            for fd in fds {
                regatta_connection::local_socket::readable(fd, until);
            }
            self.receive();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Secret = [7; 32];
    const NONCE: Secret = [8; 32];
    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    fn proofs() -> (Proofs, Proofs) {
        let proofs = || Proofs::new(&KEY, (0, 1), &NONCE);
        (proofs(), proofs())
    }

    fn whole(bytes: Vec<u8>) -> [u8; PROVED_RECORD_BYTES] {
        bytes.try_into().expect("a whole record")
    }

    #[test]
    fn what_is_said_is_heard_once_and_in_order() {
        let (mut said, mut heard) = proofs();
        let first = whole(said.sign(Record::Left(3)));
        let second = whole(said.sign(Record::Dead(4)));
        assert_eq!(heard.open(&first), Some(Record::Left(3)));
        assert_eq!(heard.open(&first), None, "a record said again");
        let (_, mut heard) = proofs();
        assert_eq!(heard.open(&second), None, "a record left out");
    }

    #[test]
    fn a_changed_record_and_another_direction_are_refused() {
        let (mut said, mut heard) = proofs();
        let mut changed = whole(said.sign(Record::Left(3)));
        changed[1] = 4;
        assert_eq!(heard.open(&changed), None);
        let mut back = Proofs::new(&KEY, (1, 0), &NONCE);
        let (_, mut heard) = proofs();
        assert_eq!(heard.open(&whole(back.sign(Record::Left(3)))), None);
    }

    /// Returns the listening guardian of node 1 and its address.
    fn listens() -> (Callers<Other>, std::net::SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let bounds = Bounds {
            places: 8,
            limit: TEST_TIMEOUT,
        };
        (
            Other::listen(Key::taken(&mut { KEY }), 1, listener, bounds).expect("threads"),
            address,
        )
    }

    #[test]
    fn who_has_the_key_is_heard_and_both_go_on() {
        let (callers, address) = listens();
        let stream = TcpStream::connect(address).expect("a listener");
        let until = Instant::now() + TEST_TIMEOUT;
        let mut caller = Other::call(&KEY, (2, 1), stream, until, || {}).expect("a nonce");
        let mut callee = callers
            .heard
            .recv_timeout(TEST_TIMEOUT)
            .expect("who has the key");
        assert_eq!((caller.node(), callee.node()), (1, 2));
        caller.send(Record::Left(3));
        callee.send(Record::Dead(4));
        for (other, is) in [
            (&mut callee, Record::Left(3)),
            (&mut caller, Record::Dead(4)),
        ] {
            let until = Instant::now() + TEST_TIMEOUT;
            assert!(regatta_connection::local_socket::readable(
                other.stream.as_fd(),
                until
            ));
            let mut news = Vec::new();
            other.receive(&mut news);
            assert!(matches!(news[..], [News::Told(_, record)] if record == is));
        }
    }

    #[test]
    fn a_guardian_beats_while_one_that_it_calls_is_slow() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let caller = TcpStream::connect(address).expect("a listener");
        let (mut slow, _) = listener.accept().expect("a call");
        let mut beats = 0;
        let nonce = read_nonce(&caller, Instant::now() + TEST_TIMEOUT, || {
            beats += 1;
            if beats == 2 {
                slow.write_all(&NONCE).expect("room");
            }
        });
        assert_eq!(nonce, Some(NONCE));
    }

    #[test]
    fn a_nonce_that_does_not_come_in_time_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let caller = TcpStream::connect(address).expect("a listener");
        let until = Instant::now() + BEAT_INTERVAL / 2;
        assert_eq!(read_nonce(&caller, until, || {}), None);
    }

    #[test]
    fn a_call_that_was_recorded_is_not_heard_again() {
        let (callers, address) = listens();
        let until = Instant::now() + TEST_TIMEOUT;
        let connect = || {
            let stream = TcpStream::connect(address).expect("a listener");
            let nonce = read_nonce(&stream, until, || {}).expect("a nonce");
            (stream, nonce)
        };
        let (mut first, nonce) = connect();
        let call = Proofs::new(&KEY, (2, 1), &nonce).sign(Record::Node(2));
        first.write_all(&call).expect("room");
        assert_eq!(
            callers
                .heard
                .recv_timeout(TEST_TIMEOUT)
                .expect("fresh")
                .node(),
            2
        );
        let (mut again, another) = connect();
        assert_ne!(nonce, another);
        again.write_all(&call).expect("room");
        again.set_read_timeout(Some(TEST_TIMEOUT)).expect("a limit");
        assert_eq!(again.read(&mut [0]).expect("its end"), 0, "it is sent away");
        assert!(callers.heard.try_recv().is_err(), "it was heard again");
    }
}
