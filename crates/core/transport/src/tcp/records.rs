//! The records of TLS 1.3 (RFC 8446, section 5) after the handshake: sealed from where bytes are and opened into where they go.
//!
//! The handshake is rustls's; it ends with keys, and from then on both directions are records of application data, and now
//! and then a change of keys. A stream through rustls copies each byte three times and allocates for every record; here it
//! is copied once on each side. Anything else than such a record ends the connection.
//!
//! *Change of keys* (RFC 8446, section 4.6.3). Each direction changes by itself, as often as its sender needs to:
//!
//! ```text
//! record 0 .. limit-2 of a key    application data, never empty
//! record limit-1                  KeyUpdate(update_not_requested), the last under this key
//! record 0 of the next key        application data again
//! ```
//!
//! - The sender seals a `KeyUpdate` as the last record that its limit allows, and everything after it under the next
//!   key, which rustls derives from the traffic secret of this one. Data are never split by that: a change fits between any two records.
//! - The receiver takes a `KeyUpdate` only as a record of its own, word for word, and only after [`LEAST`] records under the
//!   key. So a peer cannot make it derive keys without end: each costs that many records, none of which may be empty.
//!   A request that this side change its keys, too (`update_requested`), is refused: nobody here sends one.
//! - No nonce is used twice: it is the number of the record under its key, mixed with what came with the key; every key
//!   counts from 0, is used for one direction only, and is dropped when the next one is there. A key seals and opens at most
//!   [`MOST`] records, whatever the limit; a peer that does not change it in time is refused.
//! - Nothing that is not sealed can be sent: what could not be sealed is taken out of the buffer, and whoever gets the
//!   error must end the connection.

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
/// The type within of a handshake's messages, of which only one can come: the word that the sender changes its key, and
/// asks for nothing.
const HANDSHAKE: u8 = 22;
const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];
/// Records sealed with one key: less than half of what AES-GCM bears (RFC 8446, section 5.5).
pub(crate) const MOST: u64 = 1 << 23;
/// Records that must have come before a key may be changed.
pub(crate) const LEAST: u64 = 512;
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

pub(crate) type Secrets = (u64, ConnectionTrafficSecrets);

/// Where the next keys come from.
pub(crate) trait NextKeys {
    /// The next that this side seals with.
    fn sending(&mut self) -> io::Result<Secrets>;
    /// The next that this side opens with.
    fn receiving(&mut self) -> io::Result<Secrets>;
}

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

/// Seals the records that this side sends.
#[derive(Debug)]
pub(crate) struct Sealer {
    key: SealingKey<Counter>,
    /// Records that the key is still to seal, the one that tells of the next key among them.
    left: u64,
    limit: u64,
    /// Sealed, and gone from `sent` on.
    out: Vec<u8>,
    sent: usize,
}

impl Sealer {
    /// Changes its key after `limit` records, within the bounds that the receiver sets.
    pub(crate) fn new(secrets: &Secrets, limit: u64) -> io::Result<Sealer> {
        let limit = limit.clamp(LEAST + 1, MOST);
        Ok(Sealer {
            key: key(secrets)?,
            left: limit.saturating_sub(secrets.0),
            limit,
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
        keys: &mut impl NextKeys,
        mut send: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<usize> {
        let whole: usize = from.iter().map(|part| part.len()).sum();
        let mut done = 0;
        while done < whole && self.flush(&mut send)? {
            while done < whole && self.out.len() + HEAD + PLAIN + TAIL <= BATCH {
                if self.left <= 1 {
                    self.change_key(keys)?;
                }
                done += self.seal(from, done, (whole - done).min(PLAIN))?;
            }
        }
        self.flush(send)?;
        Ok(done)
    }

    /// One record of `length` bytes from byte `at` on.
    fn seal(&mut self, from: &[IoSlice<'_>], at: usize, length: usize) -> io::Result<usize> {
        let before = self.out.len();
        let head = head(length);
        self.out.extend_from_slice(&head);
        let (mut skip, mut left) = (at, length);
        for part in from {
            let bytes = part.get(skip..).unwrap_or_default();
            skip -= part.len().min(skip);
            let keep = bytes.len().min(left);
            self.out.extend_from_slice(&bytes[..keep]);
            left -= keep;
        }
        self.out.push(DATA);
        self.seal_in_place(before, head)?;
        Ok(length)
    }

    /// Seals the record that begins at `before` of the buffer, where it lies open; or takes it out.
    fn seal_in_place(&mut self, before: usize, head: [u8; HEAD]) -> io::Result<()> {
        let plain = &mut self.out[before + HEAD..];
        let sealed = self.key.seal_in_place_separate_tag(Aad::from(head), plain);
        let Ok(tag) = sealed else {
            self.out.truncate(before);
            return Err(broken("a key is used up"));
        };
        self.out.extend_from_slice(tag.as_ref());
        self.left = self.left.saturating_sub(1);
        Ok(())
    }

    /// Tells the other side that the next record comes under the next key.
    #[cold]
    fn change_key(&mut self, keys: &mut impl NextKeys) -> io::Result<()> {
        let next = keys.sending()?;
        let before = self.out.len();
        let head = head(KEY_UPDATE.len());
        self.out.extend_from_slice(&head);
        self.out.extend_from_slice(&KEY_UPDATE);
        self.out.push(HANDSHAKE);
        self.seal_in_place(before, head)?;
        self.key = key(&next)?;
        self.left = self.limit.saturating_sub(next.0);
        Ok(())
    }
}

/// The head of a record of so many bytes.
fn head(length: usize) -> [u8; HEAD] {
    let rest = ((length + TAIL) as u16).to_be_bytes();
    [DATA, 3, 3, rest[0], rest[1]]
}

/// Opens the records of the other side.
///
/// ```text
/// bytes: done | opened, not taken | not opened | room
///               plain               start        end
/// ```
#[derive(Debug)]
pub(crate) struct Opener {
    key: OpeningKey<Counter>,
    /// Records opened with it.
    opened: u64,
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
            opened: 0,
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
        self.more || !self.plain.is_empty() || !matches!(self.whole(), Ok(None))
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
        keys: &mut impl NextKeys,
        mut recv: impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        let room: usize = into.iter().map(|part| part.len()).sum();
        let mut done = 0;
        while done < room {
            if !self.plain.is_empty() {
                done += self.hand_out(into, done);
            } else if let Some(record) = self.whole()? {
                self.open(record, keys)?;
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
                    // Records from before the end come first.
                    Err(_) if done > 0 => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((done > 0).then_some(done))
    }

    fn open(&mut self, record: Range<usize>, keys: &mut impl NextKeys) -> io::Result<()> {
        let (heads, rest) = self.bytes.split_at_mut(record.start);
        let head = heads.last_chunk::<HEAD>().copied().unwrap_or_default();
        if head[..3] != [DATA, 3, 3] {
            return Err(broken("not a record of application data"));
        }
        let sealed = &mut rest[..record.len()];
        let opened = self.key.open_in_place(Aad::from(head), sealed);
        let opened = opened.map_err(|_| broken("a record that was not sealed for this"))?;
        let length = match opened.split_last() {
            Some((&DATA, data)) if !data.is_empty() => data.len(),
            Some((&HANDSHAKE, message)) if message == KEY_UPDATE && self.opened >= LEAST => {
                self.key = key(&keys.receiving()?)?;
                self.opened = 0;
                self.start = record.end;
                return Ok(());
            }
            Some((&HANDSHAKE, _)) => return Err(broken("a change of keys out of place")),
            _ => return Err(broken("a record of something else than data")),
        };
        self.opened += 1;
        self.plain = record.start..record.start + length;
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

    /// Keys that both sides of a test derive alike, the n-th after the first.
    #[derive(Default)]
    struct Counted(u8);

    impl Counted {
        fn next(&mut self) -> io::Result<Secrets> {
            self.0 = self.0.wrapping_add(1);
            let key = AeadKey::from([self.0; 32]);
            let iv = Iv::from([9; 12]);
            Ok((0, ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }))
        }
    }

    impl NextKeys for Counted {
        fn sending(&mut self) -> io::Result<Secrets> {
            self.next()
        }
        fn receiving(&mut self) -> io::Result<Secrets> {
            self.next()
        }
    }

    /// There are none.
    struct Exhausted;

    impl NextKeys for Exhausted {
        fn sending(&mut self) -> io::Result<Secrets> {
            Err(broken("no more keys"))
        }
        fn receiving(&mut self) -> io::Result<Secrets> {
            Err(broken("no more keys"))
        }
    }

    fn sealed(parts: &[&[u8]]) -> Vec<u8> {
        let mut out = vec![];
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut sealer = Sealer::new(&secrets(0), MOST).unwrap();
        let n = sealer.send(&slices, &mut Exhausted, |bytes| {
            out.extend_from_slice(bytes);
            Ok(Some(bytes.len()))
        });
        assert_eq!(
            n.unwrap(),
            parts.iter().map(|part| part.len()).sum::<usize>()
        );
        out
    }

    /// So many messages, each a record of its own, with a change of keys whenever one is due.
    fn sealed_one_by_one(messages: u64, limit: u64, at: u64) -> Vec<u8> {
        let mut out = vec![];
        let (mut sealer, mut keys) = (
            Sealer::new(&secrets(at), limit).unwrap(),
            Counted::default(),
        );
        for number in 0..messages {
            let message = number.to_le_bytes();
            let sent = sealer.send(&[IoSlice::new(&message)], &mut keys, |bytes| {
                out.extend_from_slice(bytes);
                Ok(Some(bytes.len()))
            });
            assert_eq!(sent.unwrap(), message.len());
        }
        out
    }

    /// Receives all of `bytes`, which come in pieces of at most `piece`, into buffers of `room` bytes.
    fn opened(bytes: &[u8], piece: usize, room: usize) -> io::Result<Vec<u8>> {
        opened_by(
            Opener::new(&secrets(0))?,
            &mut Counted::default(),
            bytes,
            piece,
            room,
        )
    }

    fn opened_by(
        mut opener: Opener,
        keys: &mut impl NextKeys,
        mut bytes: &[u8],
        piece: usize,
        room: usize,
    ) -> io::Result<Vec<u8>> {
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
            let n = opener.recv(&mut parts, keys, &mut recv)?.unwrap_or(0);
            all.extend_from_slice(&place[..n]);
        }
        Ok(all)
    }

    /// The bytes that a sealer puts out when it cannot seal a secret, whatever is called afterwards.
    fn put_out_in_vain(mut sealer: Sealer) -> Vec<u8> {
        let mut out = vec![];
        let mut send = |bytes: &[u8]| {
            out.extend_from_slice(bytes);
            Ok(Some(bytes.len()))
        };
        let secret = IoSlice::new(b"a secret");
        for _ in 0..2 {
            let sent = sealer.send(&[secret], &mut Exhausted, &mut send);
            assert!(sent.is_err());
            assert!(sealer.flush(&mut send).unwrap() && sealer.is_flushed());
        }
        out
    }

    #[test]
    fn what_cannot_be_sealed_does_not_go_out() {
        // There is no next key; and a key that has sealed all that it may.
        for at in [MOST - 1, MOST] {
            assert_eq!(
                put_out_in_vain(Sealer::new(&secrets(at), MOST).unwrap()),
                []
            );
        }
        let mut used_up = Sealer::new(&secrets(MOST), MOST).unwrap();
        used_up.left = 7;
        assert_eq!(put_out_in_vain(used_up), []);
    }

    #[test]
    fn no_key_seals_more_than_it_may() {
        let mut sealer = Sealer::new(&secrets(MOST - 3), u64::MAX).unwrap();
        let mut keys = Counted::default();
        for (left, key) in [(2, 0), (1, 0), (MOST - 1, 1), (MOST - 2, 1)] {
            let sent = sealer.send(&[IoSlice::new(b"more")], &mut keys, |bytes| {
                Ok(Some(bytes.len()))
            });
            assert_eq!((sent.unwrap(), sealer.left, keys.0), (4, left, key));
        }
    }

    #[test]
    fn keys_change_and_nothing_is_lost() {
        let expected: Vec<u8> = (0..5000u64).flat_map(u64::to_le_bytes).collect();
        for limit in [0, LEAST + 1, 1024, 4999, 5000, 5001, MOST] {
            let all = sealed_one_by_one(5000, limit, 0);
            for (piece, room) in [(7, 5), (1000, 300), (usize::MAX, 1 << 20)] {
                assert!(opened(&all, piece, room).unwrap() == expected);
            }
        }
    }

    /// Seals anything, as a peer that has the keys can.
    fn forged(records: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
        let (mut out, mut sealer) = (vec![], Sealer::new(&secrets(0), MOST).unwrap());
        for inner in records {
            let (before, head) = (sealer.out.len(), head(inner.len() - 1));
            sealer.out.extend_from_slice(&head);
            sealer.out.extend_from_slice(&inner);
            sealer.seal_in_place(before, head).unwrap();
        }
        out.append(&mut sealer.out);
        out
    }

    #[test]
    fn changes_of_keys_out_of_place_are_refused() {
        let data = || vec![5, DATA];
        let change = |bytes: &[u8]| [bytes, &[HANDSHAKE]].concat();
        let many = || (0..LEAST).map(move |_| data());
        let is_refused = |bytes: &[u8]| opened(bytes, usize::MAX, 1 << 20).is_err();
        let honest = many().chain([change(&KEY_UPDATE)]);
        assert!(!is_refused(&forged(honest)));
        // Too early; at once again under the next key.
        assert!(is_refused(&forged(
            many().skip(1).chain([change(&KEY_UPDATE)])
        )));
        let twice = sealed_one_by_one(2 * LEAST, 0, 0);
        assert!(!is_refused(&twice));
        // One that asks for another; two in one record; half of one; other words of a handshake; nothing at all.
        for inner in [
            change(&[24, 0, 0, 1, 1]),
            change(&[KEY_UPDATE, KEY_UPDATE].concat()),
            change(&KEY_UPDATE[..3]),
            change(&[4, 0, 0, 0, 0]),
            change(&[]),
            vec![DATA],
            vec![21, 0, 21],
        ] {
            assert!(is_refused(&forged(many().chain([inner]))));
        }
        // The old key does not open what should come under the next one.
        assert!(is_refused(&forged(
            many().chain([change(&KEY_UPDATE), data()])
        )));
    }

    #[test]
    fn a_key_that_is_not_changed_in_time_opens_no_more() {
        let mut sealer = Sealer::new(&secrets(MOST - 1), MOST).unwrap();
        sealer.left = 9;
        let mut out = vec![];
        sealer
            .send(&[IoSlice::new(b"last")], &mut Exhausted, |bytes| {
                out.extend_from_slice(bytes);
                Ok(Some(bytes.len()))
            })
            .unwrap();
        let at = |number| Opener::new(&secrets(number)).unwrap();
        let open = |opener| opened_by(opener, &mut Exhausted, &out, usize::MAX, 100);
        assert_eq!(open(at(MOST - 1)).unwrap(), b"last");
        assert!(open(at(MOST)).is_err());
    }

    #[test]
    fn a_head_that_no_record_has_is_not_waited_for() {
        let mut bytes = sealed(&[b"data"]);
        bytes.extend_from_slice(&[DATA, 3, 3, 255, 255]);
        let mut opener = Opener::new(&secrets(0)).unwrap();
        let mut keys = Counted::default();
        let mut take = |opener: &mut Opener, bytes: &[u8]| {
            opener.recv(&mut [IoSliceMut::new(&mut [0; 4])], &mut keys, |room| {
                room[..bytes.len()].copy_from_slice(bytes);
                Ok((!bytes.is_empty()).then_some(bytes.len()))
            })
        };
        assert_eq!(take(&mut opener, &bytes).unwrap(), Some(4));
        // The socket has nothing more to tell of, so whoever looks must be told to look again.
        assert!(opener.holds_back());
        assert!(take(&mut opener, &[]).is_err());
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
