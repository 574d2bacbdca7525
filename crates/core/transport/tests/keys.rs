//! Encrypted connections outlive their keys: both directions change keys as often as they need to, without any effect
//! on messages.

#[path = "support/hosts.rs"]
mod hosts;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hosts::Hosts;
use regatta_connection::calls::{Call, CallListener, Conversation, Greeting, Keys};
use regatta_engine::{Engine, Handle, Mode, Select, Settings, TagSelect};
use regatta_memory::views::Views;
use regatta_secure::{FIRST, SECOND, TAG, THIRD};
use regatta_transport::paths::Paths;
use regatta_wire::hello::{HELLO, PROOF_BYTES, WELCOME};

/// Longer than any of these tests takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(100);
/// Number of records sealed with one key.
const RECORDS_PER_KEY: u64 = 1024;

/// Number of bytes that caller and callee send before their first records.
const BYTES_BEFORE_RECORDS: [usize; 2] = [
    HELLO + PROOF_BYTES + FIRST + THIRD,
    WELCOME + PROOF_BYTES + SECOND,
];
/// Contents of messages that must not be readable in transit.
const SECRET: [u8; 16] = *b"nobody may know!";

/// Counts of a proxy between the two tasks.
#[derive(Default)]
struct Seen {
    calls: AtomicU32,
    /// Number of key changes, by the caller and by the callee of a connection.
    changes: [AtomicU32; 2],
    secrets: AtomicU32,
}

impl Seen {
    /// Checks that there was only one connection, and that both ends have changed their keys at least `least` times.
    fn assert_changes(&self, least: u32) {
        let changes = [0, 1].map(|side| self.changes[side].load(Ordering::SeqCst));
        assert!(changes.iter().all(|&n| n >= least), "{changes:?}");
        assert_eq!(self.calls.load(Ordering::SeqCst), 1);
    }
}

/// Starts a proxy to `target`, and returns its address.
fn watched(target: SocketAddr, seen: Arc<Seen>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let (Ok(caller), Ok(callee)) = (caller, TcpStream::connect(target)) else {
                return;
            };
            seen.calls.fetch_add(1, Ordering::SeqCst);
            for (side, [from, to]) in [[&caller, &callee], [&callee, &caller]]
                .into_iter()
                .enumerate()
            {
                to.set_nodelay(true).unwrap();
                let [from, to] = [from, to].map(|stream| stream.try_clone().unwrap());
                let seen = seen.clone();
                std::thread::spawn(move || pass(from, to, side, &seen));
            }
        }
    });
    address
}

/// Follows the records of one side by the lengths before them, as any eavesdropper can.
struct Records {
    /// Number of bytes until the next record header; `head` has the bytes of that header received so far.
    left: usize,
    head: Vec<u8>,
}

impl Records {
    /// Returns how often the side has changed its key in these bytes. A record without content is a key change.
    fn changes(&mut self, bytes: &[u8]) -> u32 {
        let (mut changes, mut at) = (0, 0);
        while at < bytes.len() {
            let skip = self.left.min(bytes.len() - at);
            self.left -= skip;
            at += skip;
            if self.left == 0 && at < bytes.len() {
                self.head.push(bytes[at]);
                at += 1;
            }
            if let [high, low] = self.head[..] {
                self.left = usize::from(u16::from_be_bytes([high, low]));
                changes += u32::from(self.left == TAG);
                self.head.clear();
            }
        }
        changes
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, side: usize, seen: &Seen) {
    let mut bytes = vec![0; 64 << 10];
    let mut records = Records {
        left: BYTES_BEFORE_RECORDS[side],
        head: Vec::new(),
    };
    // The last bytes are kept in front of the next read, since the secret may be split across two reads.
    let kept = SECRET.len() - 1;
    while let Ok(n @ 1..) = from.read(&mut bytes[kept..]) {
        let windows = bytes[..kept + n].windows(SECRET.len());
        let secrets = windows.filter(|&window| window == SECRET).count();
        seen.secrets.fetch_add(secrets as u32, Ordering::SeqCst);
        let changes = records.changes(&bytes[kept..kept + n]);
        seen.changes[side].fetch_add(changes, Ordering::SeqCst);
        if to.write_all(&bytes[kept..kept + n]).is_err() {
            return;
        }
        bytes.copy_within(n..n + kept, 0);
    }
}

/// Two tasks whose keys are used for few records, and the counts of a proxy between them.
struct Pair {
    tasks: [Engine<Paths>; 2],
    seen: Arc<Seen>,
}

impl Pair {
    /// Makes a connected pair. Each task changes its keys after this many records.
    fn new(trusted: bool, records: u64) -> Pair {
        let seen = Arc::new(Seen::default());
        let hosts = Hosts::new(trusted, [3; 32], |address| watched(address, seen.clone()));
        let tasks = [0, 1].map(|rank| {
            let mut paths = hosts.join(rank);
            paths.change_keys_after(records);
            Engine::new(paths, Settings::default())
        });
        let mut pair = Pair { tasks, seen };
        // Only task 0 connects. If both tasks connected at the same time, one of the two connections would be
        // dropped, and the count of connections would be wrong.
        let (mut bytes, mut into) = ([7], [0]);
        let requests = pair.start(0, &mut bytes, &mut into);
        pair.finish(requests);
        pair
    }

    /// Starts to send `bytes` from task `from` to the other one. Returns the two requests.
    fn start(&mut self, from: usize, bytes: &mut [u8], into: &mut [u8]) -> [(usize, Handle); 2] {
        // SAFETY: both stay valid and unmoved until `finish` has returned.
        let [message, into] =
            [bytes, into].map(|bytes| unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) });
        let to = 1 - from;
        let select = Select {
            context: 0,
            source: Some(from as u32),
            tag: TagSelect::Any,
        };
        let receive = self.tasks[to].start_receive(select, into).unwrap();
        let send = self.tasks[from].start_send(to as u32, 0, 1, message, Mode::Standard);
        [(from, send.unwrap()), (to, receive)]
    }

    fn finish(&mut self, requests: impl IntoIterator<Item = (usize, Handle)>) {
        let start = Instant::now();
        for (task, request) in requests {
            loop {
                if let Some((_, error)) = self.tasks[task].finish(request).unwrap() {
                    assert_eq!(error, None);
                    break;
                }
                self.tasks.iter_mut().for_each(|task| {
                    task.progress();
                });
                assert!(start.elapsed() < TEST_TIMEOUT, "a message does not arrive");
            }
        }
    }
}

/// Sends small messages, messages of one frame and messages in pieces, before and after a key change.
#[test]
fn messages_can_be_read_on_the_way_only_where_the_network_is_trusted() {
    for trusted in [true, false] {
        let mut pair = Pair::new(trusted, RECORDS_PER_KEY);
        for length in [1, 500, 40_000].map(|times| times * SECRET.len()) {
            for from in [0, 1] {
                let (mut bytes, mut into) = (SECRET.repeat(length / SECRET.len()), vec![0; length]);
                for _ in 0..1200 / (1 + length / 1000) {
                    let requests = pair.start(from, &mut bytes, &mut into);
                    pair.finish(requests);
                }
                assert!(into == bytes);
                let secrets = pair.seen.secrets.swap(0, Ordering::SeqCst);
                assert_eq!(secrets > 0, trusted, "{length} bytes: {secrets} times");
            }
        }
    }
}

#[test]
fn messages_to_and_fro_outlive_many_keys_on_one_connection() {
    let mut pair = Pair::new(false, RECORDS_PER_KEY);
    for number in 0..5 * RECORDS_PER_KEY + 76 {
        for from in [0, 1] {
            let (mut bytes, mut into) = (number.to_le_bytes(), [0; 8]);
            let requests = pair.start(from, &mut bytes, &mut into);
            pair.finish(requests);
            assert_eq!(into, number.to_le_bytes());
        }
    }
    pair.seen.assert_changes(5);
}

#[test]
fn messages_both_ways_at_once_outlive_many_keys_on_one_connection() {
    let mut pair = Pair::new(false, RECORDS_PER_KEY);
    let mut bytes: Vec<[u8; 8]> = (0..64u64).map(u64::to_le_bytes).collect();
    for _ in 0..100 {
        let mut intos = [(); 2].map(|()| vec![[0; 8]; bytes.len()]);
        let mut requests = Vec::new();
        for (from, into) in intos.iter_mut().enumerate() {
            for (bytes, into) in bytes.iter_mut().zip(into) {
                requests.extend(pair.start(from, bytes, into));
            }
        }
        pair.finish(requests);
        assert!(intos.iter().all(|into| *into == bytes));
    }
    pair.seen.assert_changes(5);
}

#[test]
fn large_messages_outlive_many_keys_on_one_connection() {
    let mut pair = Pair::new(false, 0);
    let mut bytes: Vec<u8> = (0..64u32 << 20).map(|i| ((i * 7) >> 5) as u8).collect();
    let mut intos = [(); 2].map(|()| vec![0; bytes.len()]);
    let mut requests = Vec::new();
    for (from, into) in intos.iter_mut().enumerate() {
        requests.extend(pair.start(from, &mut bytes, into));
    }
    pair.finish(requests);
    assert!(intos.iter().all(|into| *into == bytes));
    pair.seen.assert_changes(2);
}

/// Returns two authenticated ends, connected as daemons are, and as launchers and agents are.
fn conversations(seen: &Arc<Seen>) -> [Conversation; 2] {
    let mut keys = Keys::new(&[5; 32]);
    keys.change_after(RECORDS_PER_KEY);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = watched(listener.local_addr().unwrap(), seen.clone());
    let mut listener = CallListener::new(listener.into()).unwrap();
    let mut calling = Some(Call::to(address).unwrap());
    let (mut ours, mut theirs) = (None, None);
    let start = Instant::now();
    loop {
        if let Some(call) = calling.take() {
            match call.advance(&keys) {
                Greeting::Pending(call) => calling = Some(call),
                Greeting::Authenticated(conversation) => ours = Some(conversation),
                other => panic!("{other:?}"),
            }
        }
        theirs = theirs.or(listener.attend(&keys).pop());
        if let (Some(_), Some(_)) = (&ours, &theirs) {
            return [ours, theirs].map(|one| one.unwrap());
        }
        assert!(start.elapsed() < TEST_TIMEOUT, "the two do not meet");
    }
}

#[test]
fn conversations_outlive_many_keys() {
    let seen = Arc::new(Seen::default());
    let mut both = conversations(&seen);
    let start = Instant::now();
    for number in 0..5 * RECORDS_PER_KEY {
        for from in [0, 1] {
            let bytes = number.to_le_bytes();
            let (mut sent, mut have, mut into) = (0, 0, [0; 8]);
            while have < bytes.len() {
                if sent < bytes.len() {
                    sent += both[from].send(&bytes[sent..]).unwrap();
                }
                both[from].flush().unwrap();
                assert_eq!(both[from].recv(&mut [0; 1]).unwrap(), None);
                have += both[1 - from].recv(&mut into[have..]).unwrap().unwrap_or(0);
                assert!(start.elapsed() < TEST_TIMEOUT, "nothing comes");
            }
            assert_eq!(into, bytes);
        }
    }
    seen.assert_changes(5);
}
