//! The handshake: three messages of fixed length, which end with a session. The crate's documentation shows them.

use std::io;

use snow::{Builder, HandshakeState};

use crate::bounds::Bounds;
use crate::bypass::Secrets;
use crate::cipher::{Cipher, NAME, erase};
use crate::primitives::Primitives;
use crate::record::{TAG, broken};
use crate::session::Session;

pub(crate) const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";

/// The secret that both ends share.
pub type Key = [u8; 32];

/// Size of the first message: the caller's ephemeral key, and a tag.
pub const FIRST: usize = 32 + TAG;
/// Size of the second message: the callee's ephemeral key, and a tag.
pub const SECOND: usize = 32 + TAG;
/// Size of the third message: a tag.
pub const THIRD: usize = TAG;

fn failed(error: snow::Error) -> io::Error {
    io::Error::other(error.to_string())
}

fn begin(key: &Key, prologue: &[u8], called: bool) -> Result<HandshakeState, snow::Error> {
    let builder = Builder::with_resolver(PATTERN.parse()?, Box::new(Primitives));
    // With different ciphers the handshake fails.
    let prologue = [NAME, prologue].concat();
    let builder = builder.psk(0, key)?.prologue(&prologue)?;
    match called {
        true => builder.build_initiator(),
        false => builder.build_responder(),
    }
}

/// Overwrites the shared key, which only the first message needs.
fn forget_key(state: &mut HandshakeState) -> Result<(), snow::Error> {
    state.set_psk(0, &[0; 32])
}

/// Writes the next message, which has no content.
fn write<const N: usize>(state: &mut HandshakeState) -> io::Result<[u8; N]> {
    let mut message = [0; N];
    match state.write_message(&[], &mut message).map_err(failed)? {
        n if n == N => Ok(message),
        _ => Err(broken("a message of the handshake has the wrong length")),
    }
}

/// Returns the ciphers of both directions, the one of the caller first, and the secrets of a bypass, the one of this end first.
fn split(mut state: Box<HandshakeState>, called: bool) -> io::Result<([Cipher; 2], Box<Secrets>)> {
    if !state.is_handshake_finished() {
        return Err(broken("a handshake is not complete"));
    }
    let (mut caller, mut callee) = state.dangerously_get_raw_split();
    let ciphers = [&caller, &callee].map(Cipher::new);
    let secrets = Box::new(Secrets::of(match called {
        true => [&caller, &callee],
        false => [&callee, &caller],
    }));
    erase(&mut caller);
    erase(&mut callee);
    Ok((ciphers, secrets))
}

/// The end that begins the handshake.
#[derive(Debug)]
pub struct Caller(Box<HandshakeState>);

impl Caller {
    /// Begins a handshake and returns the first message. Fails if the system gives no random numbers.
    pub fn begin(key: &Key, prologue: &[u8]) -> io::Result<(Caller, [u8; FIRST])> {
        let mut state = begin(key, prologue, true).map_err(failed)?;
        let first = write(&mut state)?;
        forget_key(&mut state).map_err(failed)?;
        Ok((Caller(Box::new(state)), first))
    }

    /// Reads the second message, which authenticates the other end. Returns the session and the third message. The
    /// session changes its sending key after `records`, within the limits of `bounds`.
    pub fn finish(
        mut self,
        second: &[u8; SECOND],
        bounds: Bounds,
        records: u64,
    ) -> io::Result<(Session, [u8; THIRD])> {
        self.0.read_message(second, &mut []).map_err(failed)?;
        let ([mut sends, receives], bypass) = split(self.0, true)?;
        let mut third = [0; THIRD];
        sends.seal(&[], &mut third);
        let session = Session::new([sends, receives], bypass, bounds, records);
        Ok((session, third))
    }
}

/// The end that answers. Its caller has proved that it has the key, but not yet that its message is fresh.
#[derive(Debug)]
pub struct Callee([Cipher; 2], Box<Secrets>);

impl Callee {
    /// Reads the first message and returns the second. Fails if the caller does not have the key or has a different
    /// prologue; then it must get no answer.
    pub fn answer(
        key: &Key,
        prologue: &[u8],
        first: &[u8; FIRST],
    ) -> io::Result<(Callee, [u8; SECOND])> {
        let mut state = begin(key, prologue, false).map_err(failed)?;
        state.read_message(first, &mut []).map_err(failed)?;
        forget_key(&mut state).map_err(failed)?;
        let second = write(&mut state)?;
        let (ciphers, bypass) = split(Box::new(state), false)?;
        Ok((Callee(ciphers, bypass), second))
    }

    /// Reads the third message, which proves that the caller is not a replay. Returns the session, which changes its
    /// sending key after `records`, within the limits of `bounds`.
    pub fn finish(self, third: &[u8; THIRD], bounds: Bounds, records: u64) -> io::Result<Session> {
        let [mut receives, sends] = self.0;
        match receives.open(third, &mut []) {
            true => Ok(Session::new([sends, receives], self.1, bounds, records)),
            false => Err(broken("a caller that is not connected now")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    use crate::tests::exchange;
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds::CONNECTION;
    const KEY: Key = [7; 32];

    /// Runs a handshake between two ends with these keys and prologues. `on_the_way` sees each message. Returns `None`
    /// if it failed.
    fn shake(
        keys: [&Key; 2],
        prologues: [&[u8]; 2],
        mut on_the_way: impl FnMut(usize, &mut [u8]),
    ) -> Option<[Session; 2]> {
        let (caller, mut first) = Caller::begin(keys[0], prologues[0]).unwrap();
        on_the_way(0, &mut first);
        let (callee, mut second) = Callee::answer(keys[1], prologues[1], &first).ok()?;
        on_the_way(1, &mut second);
        let (ours, mut third) = caller.finish(&second, BOUNDS, u64::MAX).ok()?;
        on_the_way(2, &mut third);
        let theirs = callee.finish(&third, BOUNDS, u64::MAX).ok()?;
        Some([ours, theirs])
    }

    #[test]
    fn two_who_know_the_key_understand_each_other() {
        let met = shake([&KEY, &KEY], [b"we", b"we"], |_, _| ());
        let [mut ours, mut theirs] = met.unwrap();
        exchange(&mut ours, &mut theirs, b"question");
        exchange(&mut theirs, &mut ours, b"answer");
    }

    #[test]
    fn another_key_or_another_prologue_gets_no_answer() {
        let mut messages = 0;
        let mut count = |_: usize, _: &mut [u8]| messages += 1;
        assert!(shake([&KEY, &[8; 32]], [b"we", b"we"], &mut count).is_none());
        assert!(shake([&KEY, &KEY], [b"we", b"they"], &mut count).is_none());
        assert!(shake([&KEY, &KEY], [b"", b"0"], &mut count).is_none());
        assert_eq!(messages, 3, "only first messages were made");
    }

    /// The state is on the heap as long as the other end does not answer, and would be in a core dump.
    #[test]
    fn a_handshake_under_way_does_not_hold_the_shared_key() {
        let key: Key = std::array::from_fn(|n| n as u8 ^ 0x5a);
        let holds = |state: &HandshakeState| {
            let (place, length) = (std::ptr::from_ref(state) as u64, size_of_val(state));
            let mut bytes = vec![0; length];
            let memory = std::fs::File::open("/proc/self/mem").unwrap();
            memory.read_exact_at(&mut bytes, place).unwrap();
            bytes.windows(key.len()).any(|window| window == key)
        };
        let unused = begin(&key, b"we", true).unwrap();
        assert!(holds(&unused), "nothing is found in this way");
        let (caller, _) = Caller::begin(&key, b"we").unwrap();
        assert!(!holds(&caller.0));
    }

    /// Replays each of the messages, and a whole recorded handshake.
    #[test]
    fn messages_that_are_sent_again_prove_nothing() {
        let mut recorded = Vec::new();
        shake([&KEY, &KEY], [b"we", b"we"], |_, message| {
            recorded.push(message.to_vec());
        })
        .unwrap();
        let first = *recorded[0].first_chunk().unwrap();
        let [second, again] = [(); 2].map(|()| {
            let (callee, second) = Callee::answer(&KEY, b"we", &first).unwrap();
            let third = recorded[2].first_chunk().unwrap();
            assert!(callee.finish(third, BOUNDS, 0).is_err());
            second
        });
        assert_ne!(second, again, "each answer has an ephemeral key of its own");
        let (caller, _) = Caller::begin(&KEY, b"we").unwrap();
        let second = recorded[1].first_chunk().unwrap();
        assert!(caller.finish(second, BOUNDS, 0).is_err());
    }

    #[test]
    fn messages_that_come_back_prove_nothing() {
        let (caller, first) = Caller::begin(&KEY, b"we").unwrap();
        assert!(caller.finish(&first, BOUNDS, 0).is_err());
        let (_, first) = Caller::begin(&KEY, b"we").unwrap();
        let (callee, second) = Callee::answer(&KEY, b"we", &first).unwrap();
        assert!(Callee::answer(&KEY, b"we", &second).is_err());
        assert!(
            callee
                .finish(second.first_chunk().unwrap(), BOUNDS, 0)
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn any_change_ends_a_handshake(which in 0usize..3, at in any::<prop::sample::Index>(), change in 1u8..) {
            let met = shake([&KEY, &KEY], [b"we", b"we"], |number, message| {
                if number == which {
                    message[at.index(message.len())] ^= change;
                }
            });
            // X25519 ignores the highest bit of a public key, but the hash of the handshake does not.
            prop_assert!(met.is_none());
        }
    }
}
