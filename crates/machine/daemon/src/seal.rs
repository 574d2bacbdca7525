//! Datagrams between daemons: encrypted, and authenticated with the machine's key.
//!
//! ```text
//! mark 4 | salt 16 | number 8 | encrypted | tag 16
//! ```
//!
//! Each run of a daemon draws a random *salt* and seals under a key derived from the machine's key and the salt. It
//! counts its datagrams, and the number is the nonce. So no nonce is used twice under one key, however many daemons
//! share the machine's key and however often they start. The destination is authenticated as well: a datagram does not
//! open at another address.
//!
//! A datagram that was opened once does not open again while its sender is remembered, and one that is more than
//! [`WINDOW`] numbers late does not open at all. Of more than [`MAX_SENDERS`] senders, those not received from for the
//! longest time are forgotten. A replay that is accepted nevertheless changes nothing: the membership recognizes
//! repeated and late datagrams.
//!
//! Pure; opening accepts any bytes.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use regatta_segment::place::Key;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

const MARK: [u8; 4] = *b"rgt\x01";
const SALT: usize = 16;
const HEAD: usize = 4 + SALT + 8;
/// Number of bytes that sealing adds.
pub(crate) const ADDED: usize = HEAD + 16;
/// Number of later datagrams of its sender after which a datagram is too late.
pub(crate) const WINDOW: u64 = 128;
/// Maximum number of senders that are remembered. Each takes less than a hundred bytes, and needs the key to be
/// remembered.
const MAX_SENDERS: usize = 1 << 16;

type Salt = [u8; SALT];

/// Derives a key for one purpose. Neither other derived keys nor the machine's key can be computed from it.
pub(crate) fn derive(key: &Key, purpose: &str, salt: &[u8]) -> Key {
    Key::taken(&mut derived(key, purpose, salt))
}

fn derived(key: &Key, purpose: &str, salt: &[u8]) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &**key);
    let words = [purpose.as_bytes(), &[0], salt].concat();
    let mut derived = [0; 32];
    derived.copy_from_slice(hmac::sign(&key, &words).as_ref());
    derived
}

/// Returns the cipher of a run of a daemon. It is made for each datagram, so that only the machine's key is kept, which
/// is excluded from core dumps.
fn cipher(machine: &Key, salt: &Salt) -> LessSafeKey {
    let bytes = derived(machine, "regatta datagram", salt);
    // Keys of this algorithm have 32 bytes.
    let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes);
    LessSafeKey::new(key.expect("a key of 32 bytes"))
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Returns the associated data: the header, and the address of the receiver.
fn about(head: &[u8], to: SocketAddr) -> Aad<Vec<u8>> {
    let ip = match to.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    Aad::from([head, &ip.octets(), &to.port().to_be_bytes()].concat())
}

/// Seals the datagrams of one run of a daemon.
pub(crate) struct Sealer {
    salt: Salt,
    machine: Key,
    next: u64,
}

impl Sealer {
    /// Creates a sealer with a random salt.
    pub(crate) fn new(machine: &Key) -> std::io::Result<Sealer> {
        let mut salt = Salt::default();
        SystemRandom::new()
            .fill(&mut salt)
            .map_err(|_| std::io::Error::other("the system cannot provide random numbers"))?;
        Ok(Sealer {
            machine: machine.clone(),
            salt,
            next: 0,
        })
    }

    /// Returns a datagram that contains `bytes`, for the daemon at `to`.
    pub(crate) fn seal(&mut self, to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
        self.next += 1;
        let mut sealed = Vec::with_capacity(bytes.len() + ADDED);
        sealed.extend_from_slice(&MARK);
        sealed.extend_from_slice(&self.salt);
        sealed.extend_from_slice(&self.next.to_be_bytes());
        let mut body = bytes.to_vec();
        let about = about(&sealed, to);
        cipher(&self.machine, &self.salt)
            .seal_in_place_append_tag(nonce(self.next), about, &mut body)
            .expect("a datagram is shorter than the cipher's limit");
        sealed.extend_from_slice(&body);
        sealed
    }
}

/// A sender, and which of its latest numbers were received.
struct Sender {
    newest: u64,
    /// Bit n: the number `newest - n` was received.
    seen: u128,
    heard: u64,
}

impl Sender {
    /// Returns whether a datagram with this number is still accepted.
    fn expects(&self, number: u64) -> bool {
        match self.newest.checked_sub(number) {
            None => true,
            Some(late) => late < WINDOW && self.seen & (1 << late) == 0,
        }
    }

    fn note(&mut self, number: u64) {
        match self.newest.checked_sub(number) {
            Some(late) => self.seen |= 1 << late,
            None => {
                let ahead = number - self.newest;
                self.seen = u32::try_from(ahead)
                    .ok()
                    .and_then(|ahead| self.seen.checked_shl(ahead))
                    .unwrap_or(0)
                    | 1;
                self.newest = number;
            }
        }
    }
}

/// Opens the datagrams received by one daemon.
pub(crate) struct Opener {
    machine: Key,
    senders: HashMap<Salt, Sender>,
    opened: u64,
}

impl Opener {
    pub(crate) fn new(machine: &Key) -> Opener {
        Opener {
            machine: machine.clone(),
            senders: HashMap::new(),
            opened: 0,
        }
    }

    /// Returns the content of a datagram received at `own`, or `None` unless a member of the machine sealed it for this
    /// daemon and it was not received before.
    pub(crate) fn open<'a>(&mut self, own: SocketAddr, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        let (head, body) = datagram.split_at_mut_checked(HEAD)?;
        if head[..4] != MARK {
            return None;
        }
        let salt = Salt::try_from(&head[4..4 + SALT]).ok()?;
        let number = u64::from_be_bytes(head[4 + SALT..].try_into().ok()?);
        let known = self.senders.get(&salt);
        if known.is_some_and(|sender| !sender.expects(number)) {
            return None;
        }
        let bytes = cipher(&self.machine, &salt)
            .open_in_place(nonce(number), about(head, own), body)
            .ok()?;
        self.opened += 1;
        if let Some(sender) = self.senders.get_mut(&salt) {
            sender.note(number);
            sender.heard = self.opened;
            return Some(bytes);
        }
        // An unknown sender is remembered only when its datagram opens: a stranger uses no memory.
        self.make_room();
        let sender = Sender {
            newest: number,
            seen: 1,
            heard: self.opened,
        };
        self.senders.insert(salt, sender);
        Some(bytes)
    }

    /// If there are too many senders, forgets the half not received from for the longest time. This is rare, so it may
    /// be slow.
    fn make_room(&mut self) {
        if self.senders.len() < MAX_SENDERS {
            return;
        }
        let mut heard: Vec<u64> = self.senders.values().map(|sender| sender.heard).collect();
        heard.sort_unstable();
        let middle = heard[heard.len() / 2];
        self.senders.retain(|_, sender| sender.heard > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> Key {
        Key::taken(&mut [7; 32])
    }

    fn here() -> SocketAddr {
        "10.0.0.1:4000".parse().expect("an address")
    }

    fn open(opener: &mut Opener, datagram: &[u8]) -> Option<Vec<u8>> {
        opener
            .open(here(), &mut datagram.to_vec())
            .map(<[u8]>::to_vec)
    }

    #[test]
    fn what_was_sealed_opens_once_and_only_where_it_was_sent() {
        let mut sealer = Sealer::new(&key()).expect("a sealer");
        let mut opener = Opener::new(&key());
        let datagrams: Vec<Vec<u8>> = (0..20_u8).map(|n| sealer.seal(here(), &[n])).collect();
        assert!(datagrams.iter().all(|datagram| datagram.len() == ADDED + 1));
        // Out of order, each twice.
        for n in [1, 0, 2, 19, 5, 18, 3, 4] {
            assert_eq!(open(&mut opener, &datagrams[n]), Some(vec![n as u8]));
            assert_eq!(open(&mut opener, &datagrams[n]), None);
        }
        let elsewhere = "10.0.0.1:4001".parse().expect("an address");
        assert_eq!(opener.open(elsewhere, &mut datagrams[7].clone()), None);
        let mut stranger = Opener::new(&Key::taken(&mut [8; 32]));
        assert_eq!(open(&mut stranger, &datagrams[7]), None);
        assert!(stranger.senders.is_empty());
    }

    #[test]
    fn what_comes_too_late_does_not_open() {
        let mut sealer = Sealer::new(&key()).expect("a sealer");
        let mut opener = Opener::new(&key());
        let datagrams: Vec<Vec<u8>> = (0..=WINDOW).map(|_| sealer.seal(here(), b"x")).collect();
        assert!(open(&mut opener, &datagrams[WINDOW as usize]).is_some());
        assert!(open(&mut opener, &datagrams[0]).is_none());
        assert!(open(&mut opener, &datagrams[1]).is_some());
    }

    #[test]
    fn every_run_has_its_own_key_and_every_datagram_its_own_number() {
        let (mut one, mut two) = (Sealer::new(&key()).unwrap(), Sealer::new(&key()).unwrap());
        assert_ne!(one.salt, two.salt);
        let (first, other, second) = (
            one.seal(here(), b"same"),
            two.seal(here(), b"same"),
            one.seal(here(), b"same"),
        );
        assert_ne!(first[HEAD..], other[HEAD..]);
        assert_ne!(first[HEAD..], second[HEAD..]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), marked: bool) {
            let mut opener = Opener::new(&key());
            let mut bytes = bytes;
            if marked && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&MARK);
            }
            prop_assert_eq!(open(&mut opener, &bytes), None);
            prop_assert!(opener.senders.is_empty());
        }

        #[test]
        fn any_damage_is_noticed(at in 0..ADDED + 9, bit in 0..8_u8, cut: bool) {
            let mut sealer = Sealer::new(&key()).unwrap();
            let mut datagram = sealer.seal(here(), b"something");
            if cut { datagram.truncate(at) } else { datagram[at] ^= 1 << bit }
            prop_assert_eq!(open(&mut Opener::new(&key()), &datagram), None);
        }

        #[test]
        fn each_number_opens_at_most_once(order in proptest::collection::vec(0..300_usize, 1..400)) {
            let mut sealer = Sealer::new(&key()).unwrap();
            let datagrams: Vec<Vec<u8>> = (0..300).map(|_| sealer.seal(here(), b"x")).collect();
            let mut opener = Opener::new(&key());
            let mut came = std::collections::HashSet::new();
            let mut newest = 0;
            for n in order {
                let opened = open(&mut opener, &datagrams[n]).is_some();
                let fresh = came.insert(n) && (came.len() == 1 || n + WINDOW as usize > newest);
                prop_assert_eq!(opened, fresh);
                newest = newest.max(n);
            }
        }
    }
}
