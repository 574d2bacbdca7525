//! Greetings between tasks of one job, of different versions, and of different jobs.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use regatta_secure::{FIRST, SECOND, THIRD};
use regatta_wire::hello::{HELLO, Hello, PROOF_BYTES, WELCOME, Welcome};

use crate::channel::Channel;
use crate::handshake::{Handshake, Identity, Outcome, VERSION};

const AWAIT_TIMEOUT: Duration = Duration::from_secs(20);
const KEY: [u8; 32] = [3; 32];

/// Returns the identity of the first of two tasks, which calls, or of the second.
fn own(me: u32, encrypted: bool) -> Identity {
    Identity::new(&KEY, me, (2, 2), encrypted)
}

#[test]
fn what_is_known_of_the_key_is_in_no_core_dump() {
    let own = own(0, true);
    let place = own.place_of_keys();
    assert_eq!(regatta_memory::undumped::is_undumped(place), Some(true));
}

fn other_version(me: u32, encrypted: bool) -> Identity {
    let mut own = own(me, encrypted);
    own.version = VERSION + 1;
    own
}

/// Returns the two ends of a connection.
fn sockets() -> [TcpStream; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let caller = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let both = [caller, listener.accept().unwrap().0];
    for socket in &both {
        socket.set_nonblocking(true).unwrap();
    }
    both
}

/// Returns how a greeting ends for caller and listener, and their channels.
fn greet(owns: [&Identity; 2]) -> [(Outcome, Option<Channel>); 2] {
    let [caller, listener] = sockets().map(OwnedFd::from);
    let mut shakes = [
        Some(Handshake::caller(caller, 1)),
        Some(Handshake::listener(listener)),
    ];
    let mut ends = [None, None];
    let start = Instant::now();
    while ends.iter().any(Option::is_none) {
        for side in [0, 1] {
            let Some(end) = shakes[side]
                .as_mut()
                .and_then(|one| one.advance(owns[side]))
            else {
                continue;
            };
            // Dropping a failed handshake closes the connection.
            let shake = shakes[side].take();
            let channel = shake.filter(|_| matches!(end, Outcome::Authenticated(_)));
            ends[side] = Some((end, channel.map(Handshake::into_channel)));
        }
        assert!(start.elapsed() < AWAIT_TIMEOUT, "{ends:?}");
    }
    ends.map(|end| end.unwrap())
}

fn pass(from: &mut Channel, to: &mut Channel) {
    assert_eq!(from.send(&[IoSlice::new(b"hello")]).unwrap(), 5);
    let (start, mut into) = (Instant::now(), [0; 9]);
    while to.recv(&mut [IoSliceMut::new(&mut into)]).unwrap() != Some(5) {
        assert!(start.elapsed() < AWAIT_TIMEOUT, "nothing comes");
    }
    assert_eq!(&into[..5], b"hello");
}

#[test]
fn tasks_of_a_job_meet() {
    for encrypted in [true, false] {
        let ends = greet([&own(0, encrypted), &own(1, encrypted)]);
        let [
            (Outcome::Authenticated(1), Some(mut ours)),
            (Outcome::Authenticated(0), Some(mut theirs)),
        ] = ends
        else {
            panic!("{ends:?}");
        };
        assert!([&ours, &theirs].map(Channel::is_secure) == [encrypted; 2]);
        pass(&mut ours, &mut theirs);
        pass(&mut theirs, &mut ours);
    }
}

/// Each of the two learns the other one's number.
#[test]
fn tasks_of_another_version_are_told_apart_from_strangers() {
    for encrypted in [true, false] {
        let (ours, other) = (own(0, encrypted), other_version(1, encrypted));
        let ends = greet([&ours, &other]);
        assert!(
            matches!(
                ends,
                [
                    (Outcome::OtherVersion(1), None),
                    (Outcome::OtherVersion(0), None)
                ]
            ),
            "{ends:?}"
        );
        let (other, ours) = (other_version(0, encrypted), own(1, encrypted));
        let ends = greet([&other, &ours]);
        assert!(
            matches!(
                ends,
                [
                    (Outcome::OtherVersion(1), None),
                    (Outcome::OtherVersion(0), None)
                ]
            ),
            "{ends:?}"
        );
    }
}

/// In another version the caller's message may end with the proof of the hello.
#[test]
fn a_version_without_noise_is_told_apart_too() {
    let [mut caller, listener] = sockets();
    let older = other_version(0, true);
    let mut shake = Handshake::listener(OwnedFd::from(listener));
    let hello = Hello {
        version: VERSION - 1,
        tasks: 2,
        from: 0,
        to: 1,
        encrypted: true,
        nonce: [5; PROOF_BYTES],
    };
    let mut said = hello.encode().to_vec();
    said.extend(older.proof("regatta hello", &said));
    caller.write_all(&said).unwrap();
    let end = shake.advance(&own(1, true));
    assert!(matches!(end, Some(Outcome::OtherVersion(0))), "{end:?}");
    let mut heard = [0; WELCOME + PROOF_BYTES];
    caller.read_exact(&mut heard).unwrap();
    let welcome = Welcome::decode(heard.first_chunk().unwrap()).unwrap();
    assert_eq!(welcome.version, VERSION);
    said.extend_from_slice(&heard[..WELCOME]);
    assert_eq!(heard[WELCOME..], older.proof("regatta welcome", &said));
}

/// A stranger receives neither a greeting nor the listener's version.
#[test]
fn strangers_of_any_version_hear_nothing() {
    for encrypted in [true, false] {
        for version in [VERSION, VERSION + 1] {
            let mut stranger = Identity::new(&[4; 32], 0, (2, 2), encrypted);
            stranger.version = version;
            let [caller, listener] = sockets();
            let mut ear = caller.try_clone().unwrap();
            let mut shake = Handshake::caller(OwnedFd::from(caller), 1);
            assert!(shake.advance(&stranger).is_none());
            let mut listens = Handshake::listener(OwnedFd::from(listener));
            let end = listens.advance(&own(1, encrypted));
            assert!(matches!(end, Some(Outcome::Failed)), "{end:?}");
            drop(listens);
            // The listener has left bytes unread, so the connection may end with a reset.
            let heard = ear.read(&mut [0; 1]);
            assert!(
                matches!(heard, Ok(0))
                    || heard.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset)
            );
        }
    }
}

/// The proofs cover numbers that both ends must share, and an end that encrypts refuses one that does not.
#[test]
fn who_has_the_key_and_means_another_job_or_task_is_hung_up_on() {
    let ours = own(1, true);
    for other in [
        Identity::new(&KEY, 0, (3, 3), true),
        Identity::new(&KEY, 0, (2, 2), false),
        Identity::new(&KEY, 1, (2, 2), true),
        Identity::new(&KEY, 7, (2, 8), true),
    ] {
        let ends = greet([&other, &ours]);
        assert!(
            matches!(ends, [(Outcome::Failed, None), (Outcome::Failed, None)]),
            "{ends:?}"
        );
    }
}

/// Changes each part of what a real caller sends, and of what it receives, one after the other.
#[test]
fn a_greeting_that_is_changed_on_the_way_comes_to_nothing() {
    let whole = [
        HELLO + PROOF_BYTES + FIRST + THIRD,
        WELCOME + PROOF_BYTES + SECOND,
    ];
    let places = [
        (0, HELLO - 1),
        (0, HELLO),
        (0, HELLO + PROOF_BYTES),
        (0, HELLO + PROOF_BYTES + FIRST - 1),
        (0, whole[0] - 1),
        (1, WELCOME - 1),
        (1, WELCOME),
        (1, WELCOME + PROOF_BYTES),
        (1, whole[1] - 1),
    ];
    for changed in places {
        // Bytes written to a Unix socket can be read at once.
        let [(caller, mut before), (mut behind, listener)] = [(); 2].map(|()| {
            let (one, other) = UnixStream::pair().unwrap();
            one.set_nonblocking(true).unwrap();
            other.set_nonblocking(true).unwrap();
            (one, other)
        });
        let owns = [own(0, true), own(1, true)];
        let mut shakes = [
            Some(Handshake::caller(OwnedFd::from(caller), 1)),
            Some(Handshake::listener(OwnedFd::from(listener))),
        ];
        let (mut passed, mut met, mut moves) = ([0; 2], [false; 2], true);
        while moves {
            for (side, shake) in shakes.iter_mut().enumerate() {
                let end = shake.as_mut().and_then(|shake| shake.advance(&owns[side]));
                met[side] |= matches!(end, Some(Outcome::Authenticated(_)));
                // Keep the connection open, so that both ends see only what is sent.
                if end.is_some() {
                    std::mem::forget(shake.take());
                }
            }
            moves = relay(0, &mut before, &mut behind, &mut passed, changed)
                | relay(1, &mut behind, &mut before, &mut passed, changed);
        }
        // A caller is done before the listener has verified its last message.
        let expected = [
            changed.0 == 0 && changed.1 >= HELLO + PROOF_BYTES + FIRST,
            false,
        ];
        assert_eq!(met, expected, "{changed:?}");
    }
}

/// Forwards what one side has sent. Returns whether there was anything.
fn relay(
    side: usize,
    from: &mut UnixStream,
    to: &mut UnixStream,
    passed: &mut [usize; 2],
    changed: (usize, usize),
) -> bool {
    let mut bytes = [0; 500];
    let Ok(n) = from.read(&mut bytes) else {
        return false;
    };
    let at = changed.1.checked_sub(passed[side]);
    if side == changed.0
        && let Some(byte) = at.and_then(|at| bytes[..n].get_mut(at))
    {
        *byte ^= 1;
    }
    passed[side] += n;
    to.write_all(&bytes[..n]).unwrap();
    n > 0
}
