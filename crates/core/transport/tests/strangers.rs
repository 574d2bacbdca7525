//! A caller without the job's key learns nothing from a task's port and has no effect, and the tasks of the job can
//! still connect.

#[path = "support/hosts.rs"]
mod hosts;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hosts::Hosts;
use regatta_engine::{Frames, Peers, Presence, Upkeep};
use regatta_memory::views::Views;
use regatta_secure::{FIRST, SECOND, THIRD};
use regatta_transport::paths::Paths;
use regatta_wire::hello::{HELLO, PROOF_BYTES, WELCOME};
use regatta_wire::{Frame, Kind};

const AWAIT_TIMEOUT: Duration = Duration::from_secs(20);

fn turn(task: &mut Paths) {
    let mut cursor = 0;
    while task.next_ready(&mut cursor).is_some() {}
}

/// Checks that a message gets through from task 0 to task 1.
fn talk(tasks: &mut [Paths; 2], tag: i32) {
    let frame = Frame {
        kind: Kind::Eager,
        context: 0,
        tag,
    };
    let mut bytes = *b"how do you do";
    // SAFETY: the bytes outlive the call.
    let views = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
    assert!(tasks[0].send(1, frame, &views).unwrap());
    let start = Instant::now();
    loop {
        tasks.iter_mut().for_each(turn);
        if let Some(front) = tasks[1].front(0).unwrap() {
            assert_eq!(front.frame, frame);
            assert_eq!(tasks[1].accept_bytes(0), b"how do you do");
            return;
        }
        assert!(start.elapsed() < AWAIT_TIMEOUT, "nothing came");
    }
}

fn address(hosts: &Hosts, rank: usize) -> SocketAddr {
    hosts.listeners[rank].local_addr().unwrap()
}

fn call(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Returns what a task sends to a caller before it closes the connection.
fn answer(stream: &mut TcpStream, task: &mut Paths) -> Vec<u8> {
    let (mut said, mut bytes) = (vec![], [0; 512]);
    let start = Instant::now();
    while start.elapsed() < AWAIT_TIMEOUT {
        turn(task);
        match stream.read(&mut bytes) {
            Ok(0) => return said,
            Ok(n) => said.extend_from_slice(&bytes[..n]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return said,
        }
    }
    panic!("a stranger is not hung up on; it was told {said:?}");
}

#[test]
fn nonsense_is_answered_with_silence() {
    for trusted in [true, false] {
        let hosts = Hosts::new(trusted, [1; 32], |address| address);
        let mut tasks = [hosts.join(0), hosts.join(1)];
        let mut almost = b"regatta\x02".to_vec();
        almost.resize(HELLO + PROOF_BYTES, 0);
        let web = b"GET / HTTP/1.1\r\n\r\n".to_vec();
        for words in [web, vec![0; 1], vec![0xff; 100_000], almost] {
            let mut stream = call(address(&hosts, 1));
            let _ = stream.write_all(&words);
            assert_eq!(answer(&mut stream, &mut tasks[1]), []);
        }
        talk(&mut tasks, 1);
        // Once more, now that there is a connection.
        let mut stream = call(address(&hosts, 1));
        stream.write_all(&[3; 40]).unwrap();
        assert_eq!(answer(&mut stream, &mut tasks[1]), []);
        talk(&mut tasks, 2);
    }
}

#[test]
fn who_says_nothing_is_hung_up_on() {
    let hosts = Hosts::new(true, [1; 32], |address| address);
    let mut tasks = [hosts.join(0), hosts.join(1)];
    let mut stream = call(address(&hosts, 1));
    // The beginning of a handshake, and no more.
    stream.write_all(b"regatta").unwrap();
    assert_eq!(answer(&mut stream, &mut tasks[1]), []);
    talk(&mut tasks, 1);
}

#[test]
fn many_half_open_connections_keep_nobody_out() {
    let hosts = Hosts::new(true, [1; 32], |address| address);
    let mut tasks = [hosts.join(0), hosts.join(1)];
    let mut callers = vec![];
    for _ in 0..300 {
        callers.push(call(address(&hosts, 1)));
        turn(&mut tasks[1]);
    }
    talk(&mut tasks, 1);
    drop(callers);
}

#[test]
fn another_key_opens_nothing() {
    let ours = Hosts::new(true, [1; 32], |address| address);
    let other = Hosts::new(true, [2; 32], |_| address(&ours, 1));
    let mut task = ours.join(1);
    let mut stranger = other.join(0);
    let frame = Frame {
        kind: Kind::Eager,
        context: 0,
        tag: 0,
    };
    assert!(stranger.send(1, frame, &Views::none()).unwrap());
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        turn(&mut task);
        turn(&mut stranger);
        assert!(task.front(0).unwrap().is_none());
    }
    assert!(task.path(0).contains("not used yet"), "{}", task.path(0));
    assert_eq!(task.presence(0), Presence::Here);
}

/// Returns two tasks that have connected through an eavesdropper, and all that the caller has sent.
fn overheard(trusted: bool) -> (Hosts, [Paths; 2], SocketAddr, Vec<u8>) {
    let overhear = TcpListener::bind("127.0.0.1:0").unwrap();
    let between = overhear.local_addr().unwrap();
    let mut real = vec![];
    let hosts = Hosts::new(trusted, [1; 32], |address| {
        real.push(address);
        if real.len() == 2 { between } else { address }
    });
    let mut tasks = [hosts.join(0), hosts.join(1)];
    let frame = Frame {
        kind: Kind::Eager,
        context: 0,
        tag: 0,
    };
    assert!(tasks[0].send(1, frame, &Views::none()).unwrap());
    let (mut caller, _) = overhear.accept().unwrap();
    let mut callee = call(real[1]);
    caller.set_nonblocking(true).unwrap();
    // Passes everything on, and records what the caller sends.
    let mut said = vec![];
    let start = Instant::now();
    let mut bytes = [0; 512];
    while tasks[1].front(0).unwrap().is_none() {
        tasks.iter_mut().for_each(turn);
        if let Ok(n) = caller.read(&mut bytes) {
            said.extend_from_slice(&bytes[..n]);
            callee.write_all(&bytes[..n]).unwrap();
        }
        if let Ok(n) = callee.read(&mut bytes) {
            caller.write_all(&bytes[..n]).unwrap();
        }
        assert!(start.elapsed() < AWAIT_TIMEOUT, "the two do not meet");
    }
    // The connection stays open.
    std::mem::forget((caller, callee));
    (hosts, tasks, real[1], said)
}

/// A recorded handshake cannot be replayed: what follows the listener's answer must prove its new nonce, or use its
/// new key.
#[test]
fn what_was_overheard_is_of_no_use() {
    for (trusted, answered) in [
        (true, WELCOME + PROOF_BYTES),
        (false, WELCOME + PROOF_BYTES + SECOND),
    ] {
        let (_hosts, mut tasks, address, said) = overheard(trusted);
        assert!(said.len() > HELLO + PROOF_BYTES + FIRST + THIRD);
        let mut again = call(address);
        again.write_all(&said).unwrap();
        // The replay is answered like any caller with the key; then it fails to prove that it has the key.
        let told = answer(&mut again, &mut tasks[1]);
        assert_eq!(told.len(), answered);
        assert_eq!(tasks[1].accept_bytes(0), []);
        assert!(tasks[1].front(0).unwrap().is_none());
        // The connection that it should have replaced still exists.
        let path = tasks[1].path(0);
        assert!(path.contains("; connected"), "{path}");
    }
}

/// A recorded handshake with a forged key behind it.
#[test]
fn a_greeting_that_was_overheard_is_not_answered_with_other_words_behind_it() {
    let (_hosts, mut tasks, address, mut said) = overheard(false);
    said.truncate(HELLO + PROOF_BYTES + FIRST);
    for at in [HELLO + PROOF_BYTES, HELLO + PROOF_BYTES + FIRST - 1] {
        let mut words = said.clone();
        words[at] ^= 1;
        let mut again = call(address);
        again.write_all(&words).unwrap();
        assert_eq!(answer(&mut again, &mut tasks[1]), []);
    }
}
