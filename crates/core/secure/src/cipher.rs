//! The cipher of the records of one direction: AEGIS-128X2 from `aegis`, under keys derived from the handshake.
//!
//! ```text
//! secret of the handshake ─> secret 0 ──> secret 1 ──> ...     each overwrites the previous one
//!                            key, mask    key, mask
//! ```
//!
//! Each arrow is HMAC-SHA-256 under a secret, over a label that names this cipher. The nonce of a record is the mask
//! XORed with the record's number, so no nonce is repeated under a key, and nonces are secret.

use std::fmt;
use std::hint::black_box;

use aegis::aegis128x2::Aegis128X2;
use ring::hmac;

use crate::record::TAG;

/// Identifies the cipher and its key derivation, in the handshake and in the derivation of all keys.
pub(crate) const NAME: &[u8] = b"regatta records, AEGIS-128X2, HMAC-SHA-256\0";

/// Minimum size of a content that is sealed or opened from memory to memory in one pass, in bytes. For shorter contents
/// a copy first is cheaper than the incremental cipher, which clears its state at the end (at 4 KiB both take 0.2 us).
const MIN_ONE_PASS_BYTES: usize = 8 << 10;

/// A direction's secret from the handshake, from which secret 0 is derived.
pub(crate) type Split = [u8; 32];

/// Kept on the heap, so that moving the cipher leaves no copy of the keys behind.
struct Keys {
    secret: [u8; 32],
    /// The key, followed by the mask.
    made: [u8; 32],
}

/// One direction's cipher, and the number of its next record.
pub(crate) struct Cipher {
    keys: Box<Keys>,
    number: u64,
}

/// Replaces a secret by the 32 bytes with the label `what` that are derived from it. Not inlined, so that `erase_stack`
/// overwrites its copies afterwards.
#[inline(never)]
fn derive(secret: &mut [u8; 32], what: &[u8]) {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut context = hmac::Context::with_key(&key);
    context.update(NAME);
    context.update(what);
    secret.copy_from_slice(context.sign().as_ref());
}

/// Returns the secret of a direction of the bypass, derived from the handshake's secret of that direction.
pub(crate) fn of_bypass(split: &Split) -> Split {
    let mut secret = *split;
    derive(&mut secret, b"bypass");
    erase_stack();
    secret
}

impl Cipher {
    pub(crate) fn new(split: &Split) -> Cipher {
        let (secret, made) = ([0; 32], [0; 32]);
        let mut keys = Box::new(Keys { secret, made });
        keys.secret.copy_from_slice(split);
        keys.change();
        Cipher { keys, number: 0 }
    }

    /// Returns how many records have been sealed or opened.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Changes the key for the next record. The previous key cannot be computed from the new one.
    pub(crate) fn change(&mut self) {
        self.keys.change();
    }

    #[inline]
    fn of_next(&self) -> Aegis128X2<TAG> {
        let (key, mask) = self.keys.key_and_mask();
        let mixed = u128::from_le_bytes(*mask) ^ u128::from(self.number);
        Aegis128X2::new(key, &mixed.to_le_bytes())
    }

    #[inline]
    fn count(&mut self) {
        let next = self.number.checked_add(1);
        self.number = next.expect("a stream has fewer than 2^64 records");
    }

    /// Seals the next record into `out`, which is longer than `content` by the tag.
    #[inline]
    pub(crate) fn seal(&mut self, content: &[u8], out: &mut [u8]) {
        let (place, end) = out.split_at_mut(content.len());
        let cipher = self.of_next();
        let tag = if content.len() < MIN_ONE_PASS_BYTES {
            place.copy_from_slice(content);
            cipher.encrypt_in_place(place, &[])
        } else {
            let mut pieces = cipher.encryptor(&[]);
            pieces.update(content, place);
            pieces.finalize()
        };
        end.copy_from_slice(&tag);
        self.count();
    }

    /// Opens the next record into `place`, which is shorter than `sealed` by the tag. Returns whether it is that
    /// record; if not, `place` is cleared.
    #[inline]
    pub(crate) fn open(&mut self, sealed: &[u8], place: &mut [u8]) -> bool {
        let Some((content, tag)) = sealed.split_last_chunk::<TAG>() else {
            return false;
        };
        let cipher = self.of_next();
        let opened = if content.len() < MIN_ONE_PASS_BYTES {
            place.copy_from_slice(content);
            cipher.decrypt_in_place(place, tag, &[])
        } else {
            let mut pieces = cipher.decryptor(&[], place);
            let fits = pieces.update(content);
            fits.and_then(|()| pieces.finalize(tag).map(|_| ()))
        };
        if opened.is_err() {
            place.fill(0);
            return false;
        }
        self.count();
        true
    }
}

/// Records that may be missing.
impl Cipher {
    /// Opens the record with this number, which must not be lower than the next number. If it is that record, the next
    /// number is one more.
    #[inline]
    pub(crate) fn open_at(&mut self, number: u64, sealed: &[u8], place: &mut [u8]) -> bool {
        let before = std::mem::replace(&mut self.number, number);
        let opened = self.open(sealed, place);
        if !opened {
            self.number = before;
        }
        opened
    }

    /// Sets the next number to `number`, unless it is higher already.
    pub(crate) fn skip_to(&mut self, number: u64) {
        self.number = self.number.max(number);
    }
}

impl Keys {
    /// Derives the next secret, and from it the key and the mask.
    fn change(&mut self) {
        derive(&mut self.secret, b"secret");
        self.made.copy_from_slice(&self.secret);
        derive(&mut self.made, b"key, mask");
        erase_stack();
    }

    #[inline]
    fn key_and_mask(&self) -> (&[u8; 16], &[u8; 16]) {
        let (halves, _) = self.made.as_chunks();
        (&halves[0], &halves[1])
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        erase(&mut self.secret);
        erase(&mut self.made);
    }
}

/// Does not print the keys.
impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Cipher");
        shown.field("number", &self.number).finish_non_exhaustive()
    }
}

/// Overwrites a secret that is not needed any more, in a way that the compiler does not optimize out.
pub(crate) fn erase(secret: &mut [u8]) {
    secret.fill(0);
    black_box(secret);
}

/// Overwrites the stack below the caller, where functions that have returned may have left copies of secrets.
#[inline(never)]
fn erase_stack() {
    erase(&mut [0; 8 << 10]);
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::primitives::tests::bytes;
    use proptest::prelude::*;

    /// Returns a cipher with this key, and this nonce for the next record.
    fn with(key: &str, nonce: &str) -> Cipher {
        let mut cipher = Cipher::new(&[0; 32]);
        let made = [bytes(key), bytes(nonce)].concat();
        cipher.keys.made.copy_from_slice(&made);
        cipher
    }

    /// Changes the key deep in the stack, where no later call overwrites anything by chance.
    #[inline(never)]
    fn change_far_down(cipher: &mut Cipher, frames: u32) {
        let mut frame = black_box([0_u8; 1024]);
        match frames {
            0 => cipher.change(),
            _ => change_far_down(cipher, frames - 1),
        }
        black_box(&mut frame);
    }

    /// Reads this process's memory at an address.
    fn memory(at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let memory = File::open("/proc/self/mem").expect("this process' memory");
        memory.read_exact_at(&mut bytes, at as u64).expect("mapped");
        bytes
    }

    /// Returns the complement of the HMAC state under a secret, so that a search for the state does not find this copy.
    /// Everything derived from the secret can be computed from that state.
    #[inline(never)]
    fn opposite_of_state(secret: &[u8]) -> Vec<u8> {
        let key = Box::new(hmac::Key::new(hmac::HMAC_SHA256, secret));
        let state = memory((&raw const *key).addr(), size_of::<hmac::Key>());
        state.iter().map(|byte| !byte).collect()
    }

    /// Nothing of a secret from before a change is left on the stack below.
    #[test]
    fn a_secret_that_has_been_changed_is_gone() {
        let mut cipher = Cipher::new(&[7; 32]);
        change_far_down(&mut cipher, 20);
        let opposite = opposite_of_state(&cipher.keys.secret);
        cipher.change();
        const BELOW: usize = 64 << 10;
        let below = memory((&raw const cipher).addr() - BELOW, BELOW);
        let is_state = |at: &[u8]| at.iter().zip(&opposite).all(|(one, other)| *one == !other);
        assert!(!below.windows(24).any(is_state));
    }

    fn sealed(cipher: &mut Cipher, content: &[u8]) -> Vec<u8> {
        let mut out = vec![0; content.len() + TAG];
        cipher.seal(content, &mut out);
        out
    }

    /// Test vectors of AEGIS-128X2 from `draft-irtf-cfrg-aegis-aead`. From the second only the ciphertext is compared:
    /// its tag covers associated data, which records do not have.
    #[test]
    fn the_cipher_is_the_one_that_is_published() {
        let cipher = || {
            with(
                "000102030405060708090a0b0c0d0e0f",
                "101112131415161718191a1b1c1d1e1f",
            )
        };
        let tag = bytes("63117dc57756e402819a82e13eca8379");
        assert_eq!(sealed(&mut cipher(), &[]), tag);
        let content = [4, 5, 6, 7].repeat(30);
        let expected = bytes(
            "5795544301997f93621b278809d6331b3bfa6f18e90db12c4aa35965b5e98c5fc6fb4e54bcb6111842c20637252eff74\
             7cb3a8f85b37de80919a589fe0f24872bc926360696739e05520647e390989e1eb5fd42f99678a0276a498f8c454761c\
             9d6aacb647ad56be62b29c22cd4b5761b38f43d5a5ee062f1aebc200804f405cab637f2adebb6d77",
        );
        let beside = bytes("0102030401020304");
        let mut room = content.clone();
        let tag = cipher().of_next().encrypt_in_place(&mut room, &beside);
        assert_eq!([&room[..], &tag].concat(), expected);
        let mut pieces = cipher().of_next().encryptor(&beside);
        pieces.update(&content, &mut room);
        assert_eq!([&room[..], &pieces.finalize()].concat(), expected);
    }

    /// Keys are derived by HMAC-SHA-256 as another implementation computes it (Python's `hmac` and `hashlib`).
    #[test]
    fn keys_are_made_by_the_rule() {
        let mut cipher = Cipher::new(&[7; 32]);
        let keys = |cipher: &Cipher| cipher.keys.made.to_vec();
        let first = keys(&cipher);
        assert_eq!(
            first,
            bytes("785c7c72a42697901e07b437f282d2431bf7973160fecb8234fd08a95cfc66ab")
        );
        cipher.change();
        assert_eq!(
            keys(&cipher),
            bytes("8b094c25fbcbfd2935045fe07334b02b10f18965335fc11ebc2c5244b3ebe7b8")
        );
    }

    #[test]
    fn a_changed_key_opens_nothing_from_before_and_numbers_go_on() {
        let [mut ours, mut theirs] = [(); 2].map(|()| Cipher::new(&[7; 32]));
        let first = sealed(&mut ours, b"text");
        ours.change();
        let second = sealed(&mut ours, b"text");
        assert_ne!(first, second);
        let mut room = [0; 4];
        theirs.change();
        assert!(!theirs.open(&first, &mut room) && !theirs.open(&second, &mut room));
        let mut theirs = Cipher::new(&[7; 32]);
        assert!(theirs.open(&first, &mut room));
        assert!(!theirs.open(&second, &mut room));
        theirs.change();
        assert!(theirs.open(&second, &mut room));
        assert_eq!((&room, theirs.number()), (b"text", 2));
    }

    #[test]
    fn a_text_opens_into_just_its_room_and_what_does_not_open_is_cleared() {
        for length in [4, MIN_ONE_PASS_BYTES - 1, MIN_ONE_PASS_BYTES, 65_519] {
            let mut cipher = Cipher::new(&[7; 32]);
            let text = vec![5; length];
            let mut record = sealed(&mut cipher, &text);
            let mut room = vec![9; length + 2];
            let mut cipher = Cipher::new(&[7; 32]);
            record[length / 2] ^= 1;
            assert!(!cipher.open(&record, &mut room[..length]));
            assert!(room[..length].iter().all(|&byte| byte == 0));
            record[length / 2] ^= 1;
            assert!(!cipher.open(&record[..TAG - 1], &mut []));
            assert!(cipher.open(&record, &mut room[..length]));
            assert_eq!(room, [&text[..], &[9, 9]].concat());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Both ways to seal and to open, for short and for long contents, give the same result.
        #[test]
        fn one_pass_and_a_copy_before_are_the_same(length in 0usize..70_000, seed in any::<u8>()) {
            let text: Vec<u8> = (0..length).map(|at| (at * 7) as u8 ^ seed).collect();
            let record = sealed(&mut Cipher::new(&[seed; 32]), &text);
            let cipher = Cipher::new(&[seed; 32]).of_next();
            let mut room = text.clone();
            let tag = cipher.encrypt_in_place(&mut room, &[]);
            prop_assert!(record == [&room[..], &tag].concat());
            room.fill(0);
            prop_assert!(Cipher::new(&[seed; 32]).open(&record, &mut room));
            prop_assert!(room == text);
        }
    }
}
