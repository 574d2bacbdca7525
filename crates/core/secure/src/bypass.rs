//! Records sent beside the stream, one by one: they may be lost, late, or forged.
//!
//! Their keys are derived from the handshake like those of the stream's records, under a label of their own, so no
//! record of the stream opens on the bypass or the reverse. Each record carries its number, which determines its nonce
//! as on the stream. A record is opened only if its number is higher than that of every record opened before, so none
//! opens twice. A record that does not open is ignored: it changes nothing and is not reported.
//!
//! The stream announces when a sender changes to the next key. Records under the previous key do not open from then on.

use std::io;

use crate::bounds::Bounds;
use crate::cipher::{Cipher, Split, of_bypass};
#[cfg(test)]
use crate::record::TAG;
use crate::record::broken;

/// Exclusive upper bound of frame numbers.
const END_OF_NUMBERS: u64 = 1 << 62;

/// One end of a bypass: the ciphers of both directions.
#[derive(Debug)]
pub struct Bypass {
    sends: Cipher,
    receives: Cipher,
    bounds: Bounds,
    /// Number of records after which this end wants to change its key.
    limit: u64,
    /// The first numbers under the current keys.
    sends_since: u64,
    receives_since: u64,
}

/// The secrets from which a bypass is made when it is requested.
pub(crate) struct Secrets(pub(crate) [Split; 2]);

impl Secrets {
    /// Derives the secrets from those of both directions of the stream.
    pub(crate) fn of(directions: [&Split; 2]) -> Secrets {
        Secrets(directions.map(of_bypass))
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.0
            .iter_mut()
            .for_each(|secret| crate::cipher::erase(secret));
    }
}

/// Does not print the secrets.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

impl Bypass {
    /// Creates a bypass. The first secret is that of the records that this end sends.
    pub(crate) fn new(secrets: &Secrets, bounds: Bounds, limit: u64) -> Bypass {
        let [sends, receives] = [0, 1].map(|at: usize| Cipher::new(&secrets.0[at]));
        Bypass {
            sends,
            receives,
            bounds,
            limit: limit.min(bounds.most).max(bounds.least + 1),
            sends_since: 0,
            receives_since: 0,
        }
    }

    /// Returns the number of the next record to be sealed.
    #[inline]
    pub fn next(&self) -> u64 {
        self.sends.number()
    }

    /// Returns whether the sending key should be changed.
    #[inline]
    pub fn is_worn(&self) -> bool {
        self.sends.number() - self.sends_since >= self.limit
    }

    /// Seals a record into `out`, which is longer than `content` by the tag. Returns `false` if the key has reached its
    /// limit.
    #[inline]
    pub fn seal(&mut self, content: &[u8], out: &mut [u8]) -> bool {
        let number = self.sends.number();
        if number - self.sends_since >= self.bounds.most || number >= END_OF_NUMBERS {
            return false;
        }
        self.sends.seal(content, out);
        true
    }

    /// Opens the record with this number into `place`, which is shorter than `sealed` by the tag. Returns whether it is
    /// that record and has not been opened before.
    #[inline]
    pub fn open(&mut self, number: u64, sealed: &[u8], place: &mut [u8]) -> bool {
        if number < self.receives.number() || number >= END_OF_NUMBERS {
            return false;
        }
        if number - self.receives_since >= self.bounds.most {
            return false;
        }
        self.receives.open_at(number, sealed, place)
    }

    /// Changes the sending key. Returns the number of the first record under the new key, which must be sent to the
    /// other end.
    pub fn change_sends(&mut self) -> u64 {
        self.sends.change();
        self.sends_since = self.sends.number();
        self.sends_since
    }

    /// Changes the receiving key, as the other end has announced: its records from `number` on are under the next key.
    /// Fails if the key is changed too early.
    pub fn change_receives(&mut self, number: u64) -> io::Result<()> {
        let since = number.checked_sub(self.receives_since);
        if since.is_none_or(|records| records < self.bounds.least) || number >= END_OF_NUMBERS {
            return Err(broken("a key of a bypass was changed too early"));
        }
        self.receives.change();
        self.receives.skip_to(number);
        self.receives_since = number;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: Bounds = Bounds {
        least: 4,
        most: 8,
        bytes: 1 << 20,
    };

    fn ends(bounds: Bounds) -> [Bypass; 2] {
        let secrets = [[1; 32], [2; 32]];
        let [ours, theirs] = [&secrets[0], &secrets[1]];
        let ours_first = Secrets::of([ours, theirs]);
        let theirs_first = Secrets::of([theirs, ours]);
        [&ours_first, &theirs_first].map(|secrets| Bypass::new(secrets, bounds, 6))
    }

    fn sealed(bypass: &mut Bypass, text: &[u8]) -> (u64, Vec<u8>) {
        let (number, mut out) = (bypass.next(), vec![0; text.len() + TAG]);
        assert!(bypass.seal(text, &mut out));
        (number, out)
    }

    fn opens(bypass: &mut Bypass, (number, record): &(u64, Vec<u8>)) -> bool {
        let mut place = vec![9; record.len() - TAG];
        let opened = bypass.open(*number, record, &mut place);
        assert!(opened || place.iter().all(|&byte| byte == 0 || byte == 9));
        opened
    }

    #[test]
    fn records_open_once_and_those_from_before_the_newest_do_not() {
        let [mut ours, mut theirs] = ends(Bounds::CONNECTION);
        let records: Vec<_> = (0..4).map(|_| sealed(&mut ours, b"text")).collect();
        assert!(opens(&mut theirs, &records[1]) && opens(&mut theirs, &records[2]));
        for old in &records[..3] {
            assert!(!opens(&mut theirs, old), "sent again, or late");
        }
        assert!(!opens(&mut ours, &records[3]), "it comes back");
        let other = (records[3].0 + 1, records[3].1.clone());
        assert!(!opens(&mut theirs, &other), "with another number");
        assert!(
            opens(&mut theirs, &records[3]),
            "what was refused changes nothing"
        );
    }

    #[test]
    fn a_record_of_the_stream_does_not_open_on_the_bypass() {
        let split = [1; 32];
        let mut stream = Cipher::new(&split);
        let mut record = vec![0; 4 + TAG];
        stream.seal(b"text", &mut record);
        let [_, mut theirs] = ends(Bounds::CONNECTION);
        assert!(!opens(&mut theirs, &(0, record)));
    }

    #[test]
    fn keys_change_together_and_one_before_opens_nothing() {
        let [mut ours, mut theirs] = ends(SMALL);
        let late: Vec<_> = (0..6).map(|_| sealed(&mut ours, b"text")).collect();
        assert!(opens(&mut theirs, &late[0]) && ours.is_worn());
        let number = ours.change_sends();
        let first = sealed(&mut ours, b"text");
        assert!(!opens(&mut theirs, &first), "it has not been told yet");
        theirs.change_receives(number).unwrap();
        assert!(!opens(&mut theirs, &late[5]) && opens(&mut theirs, &first));
        assert!(theirs.change_receives(number + 1).is_err(), "too early");
        assert!(theirs.change_receives(0).is_err());
        assert!(theirs.change_receives(u64::MAX).is_err());
    }

    #[test]
    fn no_key_seals_or_opens_more_than_it_may() {
        let [mut ours, mut theirs] = ends(SMALL);
        let mut out = [0; TAG];
        let sealed = (0..20).filter(|_| ours.seal(&[], &mut out)).count();
        assert_eq!(sealed, SMALL.most as usize);
        assert!(!theirs.open(SMALL.most, &out, &mut []));
        assert!(!theirs.open(u64::MAX, &out, &mut []));
    }

    proptest! {
        #[test]
        fn any_bytes_open_as_nothing(number: u64, bytes in prop::collection::vec(any::<u8>(), TAG..100)) {
            let [mut ours, mut theirs] = ends(Bounds::CONNECTION);
            prop_assert!(!opens(&mut theirs, &(number, bytes)));
            let sound = sealed(&mut ours, b"text");
            prop_assert!(opens(&mut theirs, &sound));
        }

        #[test]
        fn a_changed_record_does_not_open(at in any::<prop::sample::Index>(), change in 1u8..) {
            let [mut ours, mut theirs] = ends(Bounds::CONNECTION);
            let (number, mut record) = sealed(&mut ours, b"text");
            record[at.index(4 + TAG)] ^= change;
            prop_assert!(!opens(&mut theirs, &(number, record.clone())));
            record[at.index(4 + TAG)] ^= change;
            prop_assert!(opens(&mut theirs, &(number, record)));
        }
    }
}
