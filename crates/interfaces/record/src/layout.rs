//! Positions, in words.

/// The version of the layout.
pub const VERSION: u8 = 4;

/// The first four bytes of a record of any version.
pub(crate) const MARK: [u8; 4] = *b"RGpr";

/// The first word of a record: its mark, then a hash of the layout's version and of the functions, which records name by number.
pub const MAGIC: u64 = u32::from_le_bytes(MARK) as u64 | (fingerprint() << 32);

/// Returns a hash (FNV-1a) of the version and of the names of functions in the order of their numbers.
const fn fingerprint() -> u64 {
    let mut hash = fnv(0xcbf2_9ce4_8422_2325, &[VERSION]);
    let mut at = 0;
    while at < crate::CALLS.len() {
        hash = fnv(fnv(hash, crate::CALLS[at].0.as_bytes()), &[0]);
        at += 1;
    }
    hash
}

const fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    hash
}

/// Threads of a task that are recorded at the same time. Calls of further ones are counted, and no more.
pub const THREADS: usize = 16;
/// Room for functions of `regatta.h`.
pub const CALL_SLOTS: usize = 160;
/// Peers of a thread that are told apart; the rest is one more.
pub const PEERS: usize = 256;
/// Classes of lengths: 0, 1, 2, up to 4, up to 8, ...
pub const SIZES: usize = 66;
/// Names of marks and toggles.
pub const NAMES: usize = 128;
/// Words for the list of modules.
pub const MODULE_WORDS: usize = 8192;
/// Addresses that are told apart in samples: a power of two.
pub const SAMPLES: usize = 16384;
/// Maximum number of events of a record.
pub const MAX_EVENTS: usize = 1 << 22;

/// The head.
pub mod head {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// Words of the whole record.
    pub const SIZE: usize = 1;
    /// Room for events.
    pub const EVENTS: usize = 2;
    /// The process.
    pub const PID: usize = 3;
    /// Task number and 1; 0: it is no task.
    pub const TASK: usize = 4;
    /// The boot of the host: records of equal values have one monotonic clock.
    pub const BOOT: usize = 5;
    /// Monotonic time of the beginning, in nanoseconds, as all times.
    pub const BEGAN: usize = 6;
    /// That moment as time since 1970.
    pub const BEGAN_REAL: usize = 7;
    /// When it had joined.
    pub const JOINED: usize = 8;
    /// When it had left.
    pub const LEFT: usize = 9;
    /// When the process ended by itself; 0: it was killed, or ended without the C library's exit.
    pub const ENDED: usize = 10;
    /// Nanoseconds of processor time between two samples; 0: none are taken.
    pub const PERIOD: usize = 11;
    /// Samples taken.
    pub const SAMPLES: usize = 12;
    /// Samples for whose addresses there was no room.
    pub const SAMPLES_LOST: usize = 13;
    /// Events written, those that were overwritten included.
    pub const EVENT_COUNT: usize = 14;
    /// Since when nothing is recorded; 0: it is.
    pub const OFF_SINCE: usize = 15;
    /// How long nothing was recorded, before that.
    pub const OFF: usize = 16;
    /// Calls of threads for which there was no room.
    pub const UNRECORDED: usize = 17;
    /// Marks and toggles for whose names there was no room.
    pub const NAMES_LOST: usize = 18;
    /// Bytes of the list of modules.
    pub const MODULE_BYTES: usize = 19;
    /// Processor time of the process since the beginning, as of the last sample, or when it left or ended.
    pub const PROCESSOR: usize = 20;
    /// The last moment that any thread noted.
    pub const LAST: usize = 21;
    /// The host's name.
    pub const HOST: usize = 32;
    /// The program's path.
    pub const PROGRAM: usize = 48;
    /// Words of each of these texts.
    pub const TEXT: usize = 16;
    /// Words of the head.
    pub const WORDS: usize = 64;
}

/// The part of a thread.
pub mod thread {
    use super::{CALL_SLOTS, PEERS, SIZES};

    /// 1 when a thread has ever had it.
    pub const USED: usize = 0;
    /// 1 while a thread has it.
    pub const TAKEN: usize = 1;
    /// When the first thread began with it.
    pub const BEGAN: usize = 2;
    /// The end of the last call.
    pub const LAST: usize = 3;
    /// Call in which the thread is, and 1.
    pub const CURRENT: usize = 4;
    /// When that began.
    pub const CURRENT_BEGAN: usize = 5;
    /// The peer that it is about, and 1; 0: any, or none.
    pub const CURRENT_PEER: usize = 6;
    /// How long threads have had it that have ended.
    pub const LIFE: usize = 7;
    /// Calls: for each [`call::WORDS`](super::call::WORDS).
    pub const CALLS: usize = 8;
    /// Messages sent by length, and then those received: count and bytes of each class.
    pub const SENT_SIZES: usize = CALLS + CALL_SLOTS * super::call::WORDS;
    /// Messages received, likewise.
    pub const RECEIVED_SIZES: usize = SENT_SIZES + 2 * SIZES;
    /// Peers: for each [`peer::WORDS`](super::peer::WORDS), the last one for all others.
    pub const PEERS_AT: usize = RECEIVED_SIZES + 2 * SIZES;
    /// Words of it all.
    pub const WORDS: usize = PEERS_AT + (PEERS + 1) * super::peer::WORDS;
}

/// A call within the part of a thread.
pub mod call {
    /// How often.
    pub const COUNT: usize = 0;
    /// Nanoseconds in it.
    pub const TIME: usize = 1;
    /// Duration of the longest one.
    pub const MAX_TIME: usize = 2;
    /// Bytes of this task's that it was about.
    pub const BYTES: usize = 3;
    /// How often it failed.
    pub const FAILED: usize = 4;
    /// Samples of the processor in it.
    pub const BUSY: usize = 5;
    /// Words.
    pub const WORDS: usize = 6;
}

/// A peer within the part of a thread.
pub mod peer {
    /// Task number and 1; 0: nobody yet.
    pub const TASK: usize = 0;
    /// Messages to it.
    pub const SENT: usize = 1;
    /// Their bytes.
    pub const SENT_BYTES: usize = 2;
    /// Messages from it.
    pub const RECEIVED: usize = 3;
    /// Their bytes.
    pub const RECEIVED_BYTES: usize = 4;
    /// Words.
    pub const WORDS: usize = 5;
}

/// The name of marks or of a toggle.
pub mod name {
    /// Its text.
    pub const TEXT: usize = 0;
    /// Words of the text, its end included.
    pub const TEXT_WORDS: usize = 8;
    /// How often it was marked.
    pub const MARKS: usize = 8;
    /// How often it was on.
    pub const TIMES: usize = 9;
    /// How long it was on.
    pub const TIME: usize = 10;
    /// Since when it is on; 0: it is off.
    pub const SINCE: usize = 11;
    /// Words.
    pub const WORDS: usize = 12;
}

/// An event.
pub mod event {
    /// Kind, flags, thread and sequence number, packed; 0: nothing, or it was being written.
    pub const WHAT: usize = 0;
    /// Its beginning.
    pub const BEGAN: usize = 1;
    /// Its end.
    pub const ENDED: usize = 2;
    /// Bytes of the message, or the number of the name.
    pub const BYTES: usize = 3;
    /// Task number of the peer, and the tag in the upper half.
    pub const PEER: usize = 4;
    /// Words.
    pub const WORDS: usize = 5;

    /// The kind of a message that belongs to a call with several.
    pub const MESSAGE: u16 = 1000;
    /// The kind of a mark.
    pub const MARK: u16 = 1001;
    /// The kind of a stretch during which a toggle was on.
    pub const TOGGLE: u16 = 1002;

    /// A message was sent.
    pub const SENT: u8 = 1;
    /// A message was received.
    pub const RECEIVED: u8 = 2;
    /// The call failed.
    pub const FAILED: u8 = 4;

    /// The first word. Calls have their number as kind.
    pub const fn pack(kind: u16, flags: u8, thread: u8, sequence: u32) -> u64 {
        (kind as u64 + 1) << 48 | (flags as u64) << 40 | (thread as u64) << 32 | sequence as u64
    }
}

/// Where the threads begin.
pub const THREADS_AT: usize = head::WORDS;
/// Where the names begin.
pub const NAMES_AT: usize = THREADS_AT + THREADS * thread::WORDS;
/// Where the modules begin.
pub const MODULES_AT: usize = NAMES_AT + NAMES * name::WORDS;
/// Where the samples begin.
pub const SAMPLES_AT: usize = MODULES_AT + MODULE_WORDS;
/// Where the events begin.
pub const EVENTS_AT: usize = SAMPLES_AT + 2 * SAMPLES;

/// Words of a record with room for this many events.
pub const fn words(events: usize) -> usize {
    EVENTS_AT + events * event::WORDS
}

/// The class of a length: 0 for 0, and class k for up to 2^(k-1) bytes.
pub const fn class(length: u64) -> usize {
    match length {
        0 => 0,
        _ => 65 - (length - 1).leading_zeros() as usize,
    }
}

/// The greatest length of a class.
pub const fn longest(class: usize) -> u64 {
    match class {
        0 => 0,
        1..=64 => 1 << (class - 1),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_in_the_class_whose_greatest_holds_it() {
        for length in [0, 1, 2, 3, 4, 5, 8, 9, 4096, 4097, u64::MAX] {
            let class = class(length);
            assert!(class < SIZES && length <= longest(class), "{length}");
            assert!(class == 0 || length > longest(class - 1), "{length}");
        }
    }

    #[test]
    fn there_is_room_for_all_calls() {
        assert!(crate::CALLS.len() <= CALL_SLOTS);
    }
}
