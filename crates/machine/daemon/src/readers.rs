//! Properties that hold for any bytes from peers, for tests and the fuzzer.

use std::net::SocketAddr;

use regatta_segment::place::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ask::{self, Birth, Opening, Reply};
use crate::seal::{Opener, Sealer, WINDOW};

/// Checks lines of conversations: each is refused, or encoding what was decoded gives an equal value.
pub fn speech(bytes: &[u8]) {
    for line in bytes.split(|&byte| byte == b'\n') {
        understood::<Opening>(line);
        understood::<Reply>(line);
        understood::<Birth>(line);
    }
}

fn understood<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(line: &[u8]) {
    if let Ok(said) = ask::decode::<T>(line) {
        assert_eq!(ask::decode::<T>(&ask::encode(&said)).as_ref(), Ok(&said));
    }
}

/// A sealed datagram, and what is known about it.
struct Sent {
    bytes: Vec<u8>,
    body: Vec<u8>,
    number: u64,
    by: usize,
    opened: bool,
}

/// Sends datagrams of two senders to one daemon, as the bytes direct: sealed, delivered in any order and repeatedly,
/// damaged, delivered to another daemon, or made up. Checks that each opens once, at its destination, unless it is too
/// late.
///
/// Panics if the system gives no random numbers.
pub fn seals(bytes: &[u8]) {
    const MAX_DATAGRAMS: usize = 300;
    let key = Key::taken(&mut [7; 32]);
    let (here, there): (SocketAddr, SocketAddr) =
        (([10, 0, 0, 1], 9).into(), ([10, 0, 0, 1], 10).into());
    let mut sealers = [(); 2].map(|()| Sealer::new(&key).expect("random numbers"));
    let (mut opener, mut other) = (Opener::new(&key), Opener::new(&key));
    let mut sent: Vec<Sent> = Vec::new();
    let (mut counts, mut newest) = ([0_u64; 2], [None::<u64>; 2]);
    let mut input = bytes.iter().copied();
    while let Some(step) = input.next() {
        let which = input.next().unwrap_or(0);
        if step % 5 == 0 && sent.len() < MAX_DATAGRAMS {
            let by = usize::from(which & 1);
            let body: Vec<u8> = input.by_ref().take(usize::from(which >> 1)).collect();
            counts[by] += 1;
            sent.push(Sent {
                bytes: sealers[by].seal(here, &body),
                body,
                number: counts[by],
                by,
                opened: false,
            });
            continue;
        }
        let known = sent.len();
        let Some(one) = sent.get_mut(usize::from(which) % known.max(1)) else {
            let mut made_up: Vec<u8> = input.by_ref().take(usize::from(which)).collect();
            assert_eq!(opener.open(here, &mut made_up), None);
            continue;
        };
        let mut datagram = one.bytes.clone();
        match step % 5 {
            1 | 2 => {
                let late = newest[one.by].is_some_and(|newest: u64| {
                    newest
                        .checked_sub(one.number)
                        .is_some_and(|late| late >= WINDOW)
                });
                let expected = (!one.opened && !late).then_some(&one.body[..]);
                assert_eq!(opener.open(here, &mut datagram), expected);
                if expected.is_some() {
                    one.opened = true;
                    newest[one.by] = newest[one.by].max(Some(one.number));
                }
            }
            3 => {
                let at = usize::from(input.next().unwrap_or(0)) % datagram.len();
                datagram[at] ^= 1 << (step >> 5);
                assert_eq!(opener.open(here, &mut datagram), None);
            }
            _ => assert_eq!(other.open(there, &mut datagram), None),
        }
    }
}
