//! Encrypted connections outlive their keys: both directions change them as often as they need to, and nobody notices.

#[path = "support/hosts.rs"]
mod hosts;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hosts::Hosts;
use regatta_engine::{Engine, Handle, Mode, Select, Settings, TagSelect};
use regatta_memory::views::Views;
use regatta_transport::calls::{Call, Conversation, Door, Greeting, Keys};
use regatta_transport::paths::Paths;

/// Longer than any of these tests takes.
const PATIENCE: Duration = Duration::from_secs(100);
/// Records under one key.
const FEW: u64 = 1024;

/// Between whoever calls and `target`; counts the calls.
fn counted(target: SocketAddr, calls: Arc<AtomicU32>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let (Ok(caller), Ok(callee)) = (caller, TcpStream::connect(target)) else {
                return;
            };
            calls.fetch_add(1, Ordering::SeqCst);
            for [from, to] in [[&caller, &callee], [&callee, &caller]] {
                to.set_nodelay(true).unwrap();
                let [from, to] = [from, to].map(|stream| stream.try_clone().unwrap());
                std::thread::spawn(move || pass(from, to));
            }
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(n @ 1..) = from.read(&mut bytes)
        && to.write_all(&bytes[..n]).is_ok()
    {}
}

/// Two tasks whose keys serve few records, and how often one has called the other.
struct Pair {
    tasks: [Engine<Paths>; 2],
    calls: Arc<AtomicU32>,
}

impl Pair {
    fn new() -> Pair {
        let calls = Arc::new(AtomicU32::new(0));
        let hosts = Hosts::new(false, [3; 32], |address| counted(address, calls.clone()));
        let tasks = [0, 1].map(|rank| {
            let mut paths = hosts.join(rank);
            paths.change_keys_after(FEW);
            Engine::new(paths, Settings::default())
        });
        Pair { tasks, calls }
    }

    /// Sends `bytes` from that task to the other one; the two requests.
    fn start(&mut self, from: usize, bytes: &mut [u8], into: &mut [u8]) -> [(usize, Handle); 2] {
        // SAFETY: both stay where they are until `finish` has returned.
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
                assert!(start.elapsed() < PATIENCE, "a message does not arrive");
            }
        }
    }
}

#[test]
fn messages_to_and_fro_outlive_many_keys_on_one_connection() {
    let mut pair = Pair::new();
    for number in 0..5 * FEW + 76 {
        for from in [0, 1] {
            let (mut bytes, mut into) = (number.to_le_bytes(), [0; 8]);
            let requests = pair.start(from, &mut bytes, &mut into);
            pair.finish(requests);
            assert_eq!(into, number.to_le_bytes());
        }
    }
    assert_eq!(pair.calls.load(Ordering::SeqCst), 1);
}

#[test]
fn messages_both_ways_at_once_outlive_many_keys_on_one_connection() {
    let mut pair = Pair::new();
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
    assert_eq!(pair.calls.load(Ordering::SeqCst), 1);
}

#[test]
fn large_messages_outlive_many_keys_on_one_connection() {
    let mut pair = Pair::new();
    let mut bytes: Vec<u8> = (0..40u32 << 20).map(|i| (i * 7 >> 5) as u8).collect();
    let mut intos = [(); 2].map(|()| vec![0; bytes.len()]);
    let mut requests = Vec::new();
    for (from, into) in intos.iter_mut().enumerate() {
        requests.extend(pair.start(from, &mut bytes, into));
    }
    pair.finish(requests);
    assert!(intos.iter().all(|into| *into == bytes));
    assert_eq!(pair.calls.load(Ordering::SeqCst), 1);
}

/// Two who have met, as daemons do, and the launchers and agents of jobs.
fn conversations() -> [Conversation; 2] {
    let mut keys = Keys::new(&[5; 32]);
    keys.change_after(FEW);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut door = Door::new(listener.into()).unwrap();
    let mut calling = Some(Call::to(address).unwrap());
    let (mut ours, mut theirs) = (None, None);
    let start = Instant::now();
    loop {
        if let Some(call) = calling.take() {
            match call.advance(&keys) {
                Greeting::Under(call) => calling = Some(call),
                Greeting::Met(conversation) => ours = Some(conversation),
                other => panic!("{other:?}"),
            }
        }
        theirs = theirs.or(door.attend(&keys).pop());
        if let (Some(_), Some(_)) = (&ours, &theirs) {
            return [ours, theirs].map(|one| one.unwrap());
        }
        assert!(start.elapsed() < PATIENCE, "the two do not meet");
    }
}

#[test]
fn conversations_outlive_many_keys() {
    let mut both = conversations();
    let start = Instant::now();
    for number in 0..5 * FEW {
        for from in [0, 1] {
            let bytes = number.to_le_bytes();
            let (mut sent, mut have, mut into) = (0, 0, [0; 8]);
            while have < bytes.len() {
                if sent < bytes.len() {
                    sent += both[from].send(&bytes[sent..]).unwrap();
                }
                both[from].flush().unwrap();
                // Under the handshake both have to look.
                assert_eq!(both[from].recv(&mut [0; 1]).unwrap(), None);
                have += both[1 - from].recv(&mut into[have..]).unwrap().unwrap_or(0);
                assert!(start.elapsed() < PATIENCE, "nothing comes");
            }
            assert_eq!(into, bytes);
        }
    }
}
