//! Connections that are cut repeatedly, at any byte: every message arrives once, whole and in order.

#[path = "support/hosts.rs"]
mod hosts;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hosts::Hosts;
use regatta_engine::{Engine, Handle, Mode, Select, Settings, TagSelect, Upkeep};
use regatta_memory::views::Views;
use regatta_transport::paths::Paths;

/// Longer than any of these tests takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(100);

fn hash(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Starts a proxy to `target` that passes a number of bytes on and then cuts the connection, until `mercy` cuts have
/// been made. Returns the proxy's address.
fn scissors(target: SocketAddr, seed: u64, cuts: Arc<AtomicU64>, mercy: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let pass = move || {
        for (n, caller) in (0..).zip(listener.incoming()) {
            let (Ok(caller), Ok(callee)) = (caller, TcpStream::connect(target)) else {
                return;
            };
            for stream in [&caller, &callee] {
                stream.set_nodelay(true).unwrap();
            }
            // The cut is anywhere from within the handshake to far into a large message.
            let most = 1 << (4 + hash(seed ^ n) % 18);
            for (side, pair) in [[&caller, &callee], [&callee, &caller]].iter().enumerate() {
                let [from, to] = pair.map(|stream| stream.try_clone().unwrap());
                let last = hash(seed ^ n << 8 ^ side as u64) % most;
                let cuts = cuts.clone();
                std::thread::spawn(move || carry(from, to, last, &cuts, mercy));
            }
        }
    };
    std::thread::spawn(pass);
    address
}

fn carry(mut from: TcpStream, mut to: TcpStream, mut left: u64, cuts: &AtomicU64, mercy: u64) {
    let mut bytes = vec![0; 64 << 10];
    let merciful = cuts.load(Ordering::SeqCst) >= mercy;
    loop {
        let most = match merciful {
            true => bytes.len(),
            false => bytes.len().min(left as usize),
        };
        let n = match from.read(&mut bytes[..most]) {
            Ok(n) if n > 0 => n,
            _ => break,
        };
        if to.write_all(&bytes[..n]).is_err() {
            break;
        }
        left -= (n as u64).min(left);
    }
    cuts.fetch_add(1, Ordering::SeqCst);
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn contents(task: u32, n: u64) -> Vec<u8> {
    let key = hash(n << 1 | task as u64);
    let len = match key % 32 {
        0..20 => key >> 8 & 63,
        20..28 => key >> 8 & 0x3fff,
        28..31 => key >> 8 & 0x3_ffff,
        _ => key >> 8 & 0xf_ffff,
    };
    let mut word = key;
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while bytes.len() < len as usize {
        bytes.extend_from_slice(&word.to_le_bytes());
        word = word.rotate_left(9).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ len;
    }
    bytes.truncate(len as usize);
    bytes
}

struct Pending(u64, Handle, Vec<u8>);

struct Task {
    engine: Engine<Paths>,
    me: u32,
    sends: VecDeque<Pending>,
    receives: VecDeque<Pending>,
    sent: u64,
    received: u64,
}

impl Task {
    fn turn(&mut self, count: u64) -> bool {
        while self.sends.len() < 12 && self.sent < count {
            let mut bytes = contents(self.me, self.sent);
            // SAFETY: the bytes stay valid and unmoved until the request is complete.
            let views = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
            let tag = self.sent as i32;
            let sent = self
                .engine
                .start_send(1 - self.me, 0, tag, views, Mode::Standard);
            self.sends
                .push_back(Pending(self.sent, sent.unwrap(), bytes));
            self.sent += 1;
        }
        while self.receives.len() < 12 && self.received + (self.receives.len() as u64) < count {
            let n = self.received + self.receives.len() as u64;
            let mut bytes = vec![0; 1 << 20];
            // SAFETY: the bytes stay valid and unmoved until the request is complete.
            let views = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
            let select = Select {
                context: 0,
                source: Some(1 - self.me),
                tag: TagSelect::Any,
            };
            let handle = self.engine.start_receive(select, views).unwrap();
            self.receives.push_back(Pending(n, handle, bytes));
        }
        self.engine.progress();
        while let Some(Pending(_, handle, _)) = self.sends.front() {
            let Some((_, error)) = self.engine.finish(*handle).unwrap() else {
                break;
            };
            assert_eq!(error, None);
            self.sends.pop_front();
        }
        while let Some(Pending(n, handle, bytes)) = self.receives.front() {
            let Some((status, error)) = self.engine.finish(*handle).unwrap() else {
                break;
            };
            let expected = contents(1 - self.me, *n);
            assert_eq!(
                (error, status.tag as u64, status.length),
                (None, *n, expected.len())
            );
            assert!(
                bytes[..status.length] == expected[..],
                "message {n} is damaged"
            );
            self.received += 1;
            self.receives.pop_front();
        }
        self.sent == count && self.received == count && self.sends.is_empty()
    }
}

fn all_arrive(trusted: bool, seed: u64, count: u64, mercy: u64) {
    let cuts = Arc::new(AtomicU64::new(0));
    let mut each = seed;
    let hosts = Hosts::new(trusted, [7; 32], |address| {
        each += 1;
        scissors(address, hash(each), cuts.clone(), mercy)
    });
    let mut tasks = [0, 1].map(|me| Task {
        engine: Engine::new(hosts.join(me), Settings::default()),
        me,
        sends: VecDeque::new(),
        receives: VecDeque::new(),
        sent: 0,
        received: 0,
    });
    let start = Instant::now();
    while !tasks
        .each_mut()
        .map(|task| task.turn(count))
        .iter()
        .all(|done| *done)
    {
        assert!(
            start.elapsed() < TEST_TIMEOUT,
            "after {} cuts: sent {:?}, received {:?}; {}; {}",
            cuts.load(Ordering::SeqCst),
            [tasks[0].sent, tasks[1].sent],
            [tasks[0].received, tasks[1].received],
            tasks[0].engine.transport_mut().path(1),
            tasks[1].engine.transport_mut().path(0),
        );
    }
    let cuts = cuts.load(Ordering::SeqCst);
    assert!(cuts > mercy / 2, "cut {cuts} times only");
}

#[test]
fn nothing_is_lost_when_connections_are_cut() {
    all_arrive(true, 1, 1500, 150);
}

#[test]
fn nor_when_they_are_encrypted() {
    all_arrive(false, 2, 1000, 100);
}
