//! Records that go beside the stream, one by one: they may be lost, late, or somebody else's.
//!
//! Their keys come of the handshake as those of the stream's records do, under a label of their own: so no record of one way opens on
//! the other. Each says its number, which is its nonce as on the stream. A record is opened only if its number is higher
//! than that of every record before it: none opens twice. A record that does not open is nobody's fault, changes nothing, and is not told.
//!
//! The stream says when a sender goes on to the next key. Records under the key before do not open from then on.

use std::io;

use crate::bounds::Bounds;
use crate::cipher::{Cipher, Split, of_bypass};
#[cfg(test)]
use crate::record::TAG;
use crate::record::broken;

/// The numbers of frames are below this.
const END_OF_NUMBERS: u64 = 1 << 62;

/// One end of a bypass: the ciphers of both directions.
#[derive(Debug)]
pub struct Bypass {
    sends: Cipher,
    receives: Cipher,
    bounds: Bounds,
    /// Records under a key, as this end wants it.
    limit: u64,
    /// The first numbers under the present keys.
    sends_since: u64,
    receives_since: u64,
}

/// The secrets of a bypass, until there is one.
pub(crate) struct Secrets(pub(crate) [Split; 2]);

impl Secrets {
    /// From the secrets of both directions of the stream.
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

/// Says nothing of them.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

impl Bypass {
    /// The first secret is that of the records that this end sends.
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

    /// The number of the next record that is sealed.
    #[inline]
    pub fn next(&self) -> u64 {
        self.sends.number()
    }

    /// Should the key of what is sent change?
    #[inline]
    pub fn is_worn(&self) -> bool {
        self.sends.number() - self.sends_since >= self.limit
    }

    /// Seals a record into `out`, which is longer by the tag. False: the key has sealed all that it may.
    #[inline]
    pub fn seal(&mut self, content: &[u8], out: &mut [u8]) -> bool {
        let number = self.sends.number();
        if number - self.sends_since >= self.bounds.most || number >= END_OF_NUMBERS {
            return false;
        }
        self.sends.seal(content, out);
        true
    }

    /// Opens a record of this number into `place`, which is shorter by the tag; whether it is that record, and a new one.
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

    /// Records from the next one on go under another key. The other end must be told its number.
    pub fn change_sends(&mut self) -> u64 {
        self.sends.change();
        self.sends_since = self.sends.number();
        self.sends_since
    }

    /// The other end says that its records from `number` on are under the next key.
    pub fn change_receives(&mut self, number: u64) -> io::Result<()> {
        let since = number.checked_sub(self.receives_since);
        if since.is_none_or(|records| records < self.bounds.least) || number >= END_OF_NUMBERS {
            return Err(broken("a key of a bypass is changed too early"));
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
