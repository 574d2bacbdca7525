//! The records of TLS 1.3 (RFC 8446, section 5) after the handshake: sealed from where bytes are and opened into where they go.
//!
//! The handshake is rustls's; it ends with keys, and from then on both directions are records of application data and
//! nothing else. A stream through rustls copies each byte three times and allocates for every record; here it is
//! copied once on each side. Anything that is not a sound record of application data ends the connection, as does
//! the last record that a key may seal: the connection made instead has new keys, and nothing is lost between the two.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, BoundKey, CHACHA20_POLY1305, NONCE_LEN, Nonce,
    NonceSequence, OpeningKey, SealingKey, UnboundKey,
};
use ring::error::Unspecified;
use rustls::ConnectionTrafficSecrets;

/// Bytes before a record: its type, 3 and 3 for a version that is no longer asked for, and the length of the rest.
pub(crate) const HEAD: usize = 5;
/// Most bytes of plaintext in a record.
const PLAIN: usize = 1 << 14;
/// Bytes behind the plaintext: the type it has, and the tag.
const TAIL: usize = 17;
/// The longest that may come.
pub(crate) const LONGEST: usize = PLAIN + 256;
/// The type that all records have by the look of it, and that of application data within.
const DATA: u8 = 23;
/// Records sealed with one key: less than half of what AES-GCM bears (RFC 8446, section 5.5).
const MOST: u64 = 1 << 23;
/// Sealed at a time: the first part is on its way while the next is sealed.
const BATCH: usize = 4 * (HEAD + PLAIN + TAIL);
/// Received at a time.
const ROOM: usize = 16 * (HEAD + LONGEST);

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Nonces of one direction: the number of the record, mixed with what the handshake gave.
#[derive(Debug)]
struct Counter {
    iv: [u8; NONCE_LEN],
    next: u64,
}

impl NonceSequence for Counter {
    fn advance(&mut self) -> Result<Nonce, Unspecified> {
        if self.next >= MOST {
            return Err(Unspecified);
        }
        let mut nonce = self.iv;
        for (byte, number) in nonce[NONCE_LEN - 8..]
            .iter_mut()
            .zip(self.next.to_be_bytes())
        {
            *byte ^= number;
        }
        self.next += 1;
        Ok(Nonce::assume_unique_for_key(nonce))
    }
}

type Secrets = (u64, ConnectionTrafficSecrets);

fn parts(secrets: &Secrets) -> io::Result<(&'static Algorithm, &[u8], Counter)> {
    let (algorithm, key, iv): (&'static Algorithm, &[u8], &[u8]) = match &secrets.1 {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
            (&AES_128_GCM, key.as_ref(), iv.as_ref())
        }
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => {
            (&AES_256_GCM, key.as_ref(), iv.as_ref())
        }
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            (&CHACHA20_POLY1305, key.as_ref(), iv.as_ref())
        }
        _ => return Err(broken("a cipher that was not asked for")),
    };
    let iv = iv
        .try_into()
        .map_err(|_| broken("a nonce of another size"))?;
    let next = secrets.0;
    Ok((algorithm, key, Counter { iv, next }))
}

fn key<K: BoundKey<Counter>>(secrets: &Secrets) -> io::Result<K> {
    let (algorithm, key, counter) = parts(secrets)?;
    let key = UnboundKey::new(algorithm, key).map_err(|_| broken("a key of another size"))?;
    Ok(K::new(key, counter))
}

/// The length of what follows a head.
pub(crate) fn length(head: &[u8; HEAD]) -> io::Result<usize> {
    let length = u16::from_be_bytes([head[3], head[4]]) as usize;
    match length <= LONGEST {
        true => Ok(length),
        false => Err(broken("a record is longer than records may be")),
    }
}

/// What this side sends.
#[derive(Debug)]
pub(crate) struct Sealer {
    key: SealingKey<Counter>,
    /// Sealed, and gone from `sent` on.
    out: Vec<u8>,
    sent: usize,
}

impl Sealer {
    pub(crate) fn new(secrets: &Secrets) -> io::Result<Sealer> {
        Ok(Sealer {
            key: key(secrets)?,
            out: Vec::with_capacity(BATCH),
            sent: 0,
        })
    }

    /// Has all gone that was sealed?
    #[inline]
    pub(crate) fn is_flushed(&self) -> bool {
        self.sent == self.out.len()
    }

    /// Send what was sealed; whether that is all. `send`: how many bytes went.
    pub(crate) fn flush(
        &mut self,
        mut send: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<bool> {
        while self.sent < self.out.len() {
            match send(&self.out[self.sent..])? {
                Some(n) => self.sent += n,
                None => return Ok(false),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Seal and send, a batch at a time, as much as is taken; how much was sealed.
    pub(crate) fn send(
        &mut self,
        from: &[IoSlice<'_>],
        mut send: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<usize> {
        let whole: usize = from.iter().map(|part| part.len()).sum();
        let mut done = 0;
        while done < whole && self.flush(&mut send)? {
            while done < whole && self.out.len() + HEAD + PLAIN + TAIL <= BATCH {
                done += self.seal(from, done, (whole - done).min(PLAIN))?;
            }
        }
        self.flush(send)?;
        Ok(done)
    }

    /// One record of `length` bytes from byte `at` on.
    fn seal(&mut self, from: &[IoSlice<'_>], at: usize, length: usize) -> io::Result<usize> {
        let rest = ((length + TAIL) as u16).to_be_bytes();
        let head = [DATA, 3, 3, rest[0], rest[1]];
        self.out.extend_from_slice(&head);
        let begin = self.out.len();
        let (mut skip, mut left) = (at, length);
        for part in from {
            let bytes = part.get(skip..).unwrap_or_default();
            skip -= part.len().min(skip);
            let keep = bytes.len().min(left);
            self.out.extend_from_slice(&bytes[..keep]);
            left -= keep;
        }
        self.out.push(DATA);
        let sealed = self
            .key
            .seal_in_place_separate_tag(Aad::from(head), &mut self.out[begin..]);
        let tag = sealed.map_err(|_| broken("a key is used up"))?;
        self.out.extend_from_slice(tag.as_ref());
        Ok(length)
    }
}

/// What the other side sends.
///
/// ```text
/// bytes: done | opened, not taken | not opened | room
///               plain               start        end
/// ```
#[derive(Debug)]
pub(crate) struct Opener {
    key: OpeningKey<Counter>,
    bytes: Box<[u8]>,
    plain: Range<usize>,
    start: usize,
    end: usize,
    /// The last look at the socket filled all the room: there may be more.
    more: bool,
}

impl Opener {
    pub(crate) fn new(secrets: &Secrets) -> io::Result<Opener> {
        Ok(Opener {
            key: key(secrets)?,
            bytes: vec![0; ROOM].into_boxed_slice(),
            plain: 0..0,
            start: 0,
            end: 0,
            more: false,
        })
    }

    /// Is there something that needs no more bytes of the socket, or are there more?
    #[inline]
    pub(crate) fn holds_back(&self) -> bool {
        self.more || !self.plain.is_empty() || self.whole().is_ok_and(|whole| whole.is_some())
    }

    /// The first record that is not opened, if it is here as a whole.
    #[inline]
    fn whole(&self) -> io::Result<Option<Range<usize>>> {
        let Some(head) = self.bytes[self.start..self.end].first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let end = self.start + HEAD + length(head)?;
        Ok((end <= self.end).then_some(self.start + HEAD..end))
    }

    /// Receive into `into`, as much as is there; `None`: nothing.
    pub(crate) fn recv(
        &mut self,
        into: &mut [IoSliceMut<'_>],
        mut recv: impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        let room: usize = into.iter().map(|part| part.len()).sum();
        let mut done = 0;
        while done < room {
            if !self.plain.is_empty() {
                done += self.hand_out(into, done);
            } else if let Some(record) = self.whole()? {
                self.open(record)?;
            } else if done > 0 && !self.more {
                // A look at the socket that is known to be vain is saved.
                break;
            } else {
                self.make_room();
                let asked = self.bytes.len() - self.end;
                match recv(&mut self.bytes[self.end..]) {
                    Ok(Some(n)) => {
                        self.end += n;
                        self.more = n == asked;
                    }
                    Ok(None) => {
                        self.more = false;
                        break;
                    }
                    // What came before the end comes first.
                    Err(_) if done > 0 => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((done > 0).then_some(done))
    }

    fn open(&mut self, record: Range<usize>) -> io::Result<()> {
        let (heads, rest) = self.bytes.split_at_mut(record.start);
        let head = heads.last_chunk::<HEAD>().copied().unwrap_or_default();
        if head[..3] != [DATA, 3, 3] {
            return Err(broken("not a record of application data"));
        }
        let sealed = &mut rest[..record.len()];
        let opened = self.key.open_in_place(Aad::from(head), sealed);
        let opened = opened.map_err(|_| broken("a record that was not sealed for this"))?;
        let Some((&mut DATA, data)) = opened.split_last_mut() else {
            return Err(broken("a record of something else than data"));
        };
        self.plain = record.start..record.start + data.len();
        self.start = record.end;
        Ok(())
    }

    /// Copy what is opened to byte `at` of `into` and on; how much that was.
    fn hand_out(&mut self, into: &mut [IoSliceMut<'_>], at: usize) -> usize {
        let mut skip = at;
        let before = self.plain.start;
        for part in into {
            let length = part.len();
            let place = part.get_mut(skip..).unwrap_or_default();
            skip -= length.min(skip);
            let keep = place.len().min(self.plain.len());
            let from = self.plain.start;
            place[..keep].copy_from_slice(&self.bytes[from..from + keep]);
            self.plain.start += keep;
        }
        self.plain.start - before
    }

    /// All is opened but the beginning of a record: what follows it goes behind it, at the front.
    fn make_room(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustls::crypto::cipher::{AeadKey, Iv};

    fn secrets(next: u64) -> Secrets {
        let key = AeadKey::from([7; 32]);
        let iv = Iv::from([9; 12]);
        (next, ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv })
    }

    fn sealed(parts: &[&[u8]]) -> Vec<u8> {
        let mut out = vec![];
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let n = Sealer::new(&secrets(0)).unwrap().send(&slices, |bytes| {
            out.extend_from_slice(bytes);
            Ok(Some(bytes.len()))
        });
        assert_eq!(
            n.unwrap(),
            parts.iter().map(|part| part.len()).sum::<usize>()
        );
        out
    }

    /// Receives all of `bytes`, which come in pieces of at most `piece`, into buffers of `room` bytes.
    fn opened(mut bytes: &[u8], piece: usize, room: usize) -> io::Result<Vec<u8>> {
        let mut opener = Opener::new(&secrets(0))?;
        let (mut all, mut place) = (vec![], vec![0; room]);
        while !bytes.is_empty() || opener.holds_back() {
            let mut recv = |into: &mut [u8]| {
                let n = bytes.len().min(piece).min(into.len());
                into[..n].copy_from_slice(&bytes[..n]);
                bytes = &bytes[n..];
                Ok((n > 0).then_some(n))
            };
            let (one, two) = place.split_at_mut(room / 2);
            let mut parts = [IoSliceMut::new(one), IoSliceMut::new(two)];
            let n = opener.recv(&mut parts, &mut recv)?.unwrap_or(0);
            all.extend_from_slice(&place[..n]);
        }
        Ok(all)
    }

    #[test]
    fn a_used_up_key_ends_the_connection() {
        let mut sealer = Sealer::new(&secrets(MOST - 1)).unwrap();
        let mut send = |bytes: &[u8]| Ok(Some(bytes.len()));
        assert!(sealer.send(&[IoSlice::new(b"last")], &mut send).is_ok());
        assert!(sealer.send(&[IoSlice::new(b"more")], &mut send).is_err());
    }

    #[test]
    fn records_are_taken_in_their_order_only() {
        let all = sealed(&[&[1; 3 * PLAIN]]);
        let one = all.len() / 3;
        for cut in [
            &all[one..],
            &[&all[..one], &all[2 * one..]].concat()[..],
            &all.repeat(2)[..],
        ] {
            assert!(opened(cut, usize::MAX, 1 << 20).is_err());
        }
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened(
            sizes in prop::collection::vec(0usize..40_000, 1..4), piece in 1usize..200_000, room in 2usize..100_000,
        ) {
            let parts: Vec<Vec<u8>> = sizes.iter().map(|&n| (0..n).map(|i| (i * 7 + n) as u8).collect()).collect();
            let slices: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
            let all = sealed(&slices);
            prop_assert_eq!(opened(&all, piece, room).unwrap(), parts.concat());
        }

        #[test]
        fn a_changed_byte_is_noticed(at in any::<prop::sample::Index>(), change in 1u8.., size in 1usize..40_000) {
            let mut all = sealed(&[&vec![3; size]]);
            let at = at.index(all.len());
            all[at] ^= change;
            let got = opened(&all, usize::MAX, 1 << 20);
            // A longer record than there is would be waited for.
            let waits = got.as_ref().is_ok_and(|got| got.len() < size);
            prop_assert!(got.is_err() || waits);
        }

        #[test]
        fn any_bytes_are_refused_or_waited_for(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
            prop_assert!(opened(&bytes, 1000, 500).is_ok_and(|got| got.is_empty()) || opened(&bytes, 1000, 500).is_err());
        }
    }
}
