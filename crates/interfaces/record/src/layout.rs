//! Positions of all parts of a record, in words.

/// The version of the layout.
pub const VERSION: u8 = 4;

/// The first four bytes of a record of any version.
pub(crate) const MARK: [u8; 4] = *b"RGpr";

/// The first word of a record: the mark, then a hash of the layout's version and of the functions, which records refer to by number.
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

/// Maximum number of threads of a task that are recorded at the same time. Calls of further threads are only counted.
pub const THREADS: usize = 16;
/// Maximum number of recorded functions of `regatta.h`.
pub const CALL_SLOTS: usize = 160;
/// Maximum number of peers of a thread with an entry of their own. All other peers share one more entry.
pub const PEERS: usize = 256;
/// Number of classes of lengths: 0, 1, 2, up to 4, up to 8, ...
pub const SIZES: usize = 66;
/// Maximum number of names of marks and toggles.
pub const NAMES: usize = 128;
/// Size of the list of modules, in words.
pub const MODULE_WORDS: usize = 8192;
/// Maximum number of different sampled addresses. A power of two.
pub const SAMPLES: usize = 16384;
/// Maximum number of events of a record.
pub const MAX_EVENTS: usize = 1 << 22;

/// Positions within the head.
pub mod head {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// Size of the whole record, in words.
    pub const SIZE: usize = 1;
    /// Maximum number of events kept.
    pub const EVENTS: usize = 2;
    /// Process id.
    pub const PID: usize = 3;
    /// Task id plus 1, or 0 if the process is not a task.
    pub const TASK: usize = 4;
    /// Identifies the host's boot. Records with equal values have the same monotonic clock.
    pub const BOOT: usize = 5;
    /// Monotonic time of the beginning, in nanoseconds. All times are monotonic and in nanoseconds unless stated otherwise.
    pub const BEGAN: usize = 6;
    /// Time of the beginning since 1970, in nanoseconds.
    pub const BEGAN_REAL: usize = 7;
    /// Time when the process had joined the job.
    pub const JOINED: usize = 8;
    /// Time when the process had left the job.
    pub const LEFT: usize = 9;
    /// Time when the process exited, or 0 if it was killed or ended without the C library's `exit`.
    pub const ENDED: usize = 10;
    /// Processor time between two samples, in nanoseconds, or 0 if none are taken.
    pub const PERIOD: usize = 11;
    /// Number of samples taken.
    pub const SAMPLES: usize = 12;
    /// Number of samples for whose addresses there was no room.
    pub const SAMPLES_LOST: usize = 13;
    /// Number of events written, including those that were overwritten.
    pub const EVENT_COUNT: usize = 14;
    /// Time since when recording is off, or 0 if it is on.
    pub const OFF_SINCE: usize = 15;
    /// Total time for which recording was off before that.
    pub const OFF: usize = 16;
    /// Number of calls of threads for which there was no room.
    pub const UNRECORDED: usize = 17;
    /// Number of marks and toggles for whose names there was no room.
    pub const NAMES_LOST: usize = 18;
    /// Length of the list of modules, in bytes.
    pub const MODULE_BYTES: usize = 19;
    /// Processor time of the process since the beginning, in nanoseconds. Updated at each sample, and when the process leaves or exits.
    pub const PROCESSOR: usize = 20;
    /// The latest time that any thread has recorded.
    pub const LAST: usize = 21;
    /// Name of the host.
    pub const HOST: usize = 32;
    /// Path of the program.
    pub const PROGRAM: usize = 48;
    /// Size of each of these texts, in words.
    pub const TEXT: usize = 16;
    /// Size of the head, in words.
    pub const WORDS: usize = 64;
}

/// Positions within the part of a thread.
pub mod thread {
    use super::{CALL_SLOTS, PEERS, SIZES};

    /// 1 if any thread has ever used the part.
    pub const USED: usize = 0;
    /// 1 while a thread uses the part.
    pub const TAKEN: usize = 1;
    /// Time when the current or last thread began to use the part.
    pub const BEGAN: usize = 2;
    /// Time when the last call ended.
    pub const LAST: usize = 3;
    /// Number of the call that the thread is in, plus 1, or 0 if it is in none.
    pub const CURRENT: usize = 4;
    /// Time when that call began.
    pub const CURRENT_BEGAN: usize = 5;
    /// Task id of that call's peer plus 1, or 0 for any peer or none.
    pub const CURRENT_PEER: usize = 6;
    /// Total time for which threads that have ended used the part.
    pub const LIFE: usize = 7;
    /// Calls, [`call::WORDS`](super::call::WORDS) each.
    pub const CALLS: usize = 8;
    /// Messages sent, by class of length: count and bytes of each class.
    pub const SENT_SIZES: usize = CALLS + CALL_SLOTS * super::call::WORDS;
    /// Messages received, by class of length: count and bytes of each class.
    pub const RECEIVED_SIZES: usize = SENT_SIZES + 2 * SIZES;
    /// Peers, [`peer::WORDS`](super::peer::WORDS) each. The last entry is for all peers without an entry.
    pub const PEERS_AT: usize = RECEIVED_SIZES + 2 * SIZES;
    /// Size of the part, in words.
    pub const WORDS: usize = PEERS_AT + (PEERS + 1) * super::peer::WORDS;
}

/// Positions within the entry of a call.
pub mod call {
    /// Number of calls.
    pub const COUNT: usize = 0;
    /// Total time in the call, in nanoseconds.
    pub const TIME: usize = 1;
    /// Duration of the longest call, in nanoseconds.
    pub const MAX_TIME: usize = 2;
    /// Total bytes of this task's data in the calls.
    pub const BYTES: usize = 3;
    /// Number of failed calls.
    pub const FAILED: usize = 4;
    /// Number of samples taken during the call.
    pub const BUSY: usize = 5;
    /// Size of the entry, in words.
    pub const WORDS: usize = 6;
}

/// Positions within the entry of a peer.
pub mod peer {
    /// Task id plus 1, or 0 if the entry is free.
    pub const TASK: usize = 0;
    /// Number of messages sent to the peer.
    pub const SENT: usize = 1;
    /// Bytes sent to the peer.
    pub const SENT_BYTES: usize = 2;
    /// Number of messages received from the peer.
    pub const RECEIVED: usize = 3;
    /// Bytes received from the peer.
    pub const RECEIVED_BYTES: usize = 4;
    /// Size of the entry, in words.
    pub const WORDS: usize = 5;
}

/// Positions within the entry of a name of marks or of a toggle.
pub mod name {
    /// Text of the name, NUL-terminated.
    pub const TEXT: usize = 0;
    /// Size of the text including its NUL, in words.
    pub const TEXT_WORDS: usize = 8;
    /// Number of marks.
    pub const MARKS: usize = 8;
    /// Number of times that the toggle was switched on.
    pub const TIMES: usize = 9;
    /// Total time for which the toggle was on, in nanoseconds.
    pub const TIME: usize = 10;
    /// Time since when the toggle is on, or 0 if it is off.
    pub const SINCE: usize = 11;
    /// Size of the entry, in words.
    pub const WORDS: usize = 12;
}

/// Positions within an event, and its kinds and flags.
pub mod event {
    /// Kind, flags, thread and sequence number, packed by [`pack`], or 0 if there is no event or it was being written.
    pub const WHAT: usize = 0;
    /// Time when the event began.
    pub const BEGAN: usize = 1;
    /// Time when the event ended.
    pub const ENDED: usize = 2;
    /// Length of the message in bytes, or the number of the name.
    pub const BYTES: usize = 3;
    /// Task id of the peer in the lower half, and the tag in the upper half.
    pub const PEER: usize = 4;
    /// Size of an event, in words.
    pub const WORDS: usize = 5;

    /// Kind of a further message of a call that has several.
    pub const MESSAGE: u16 = 1000;
    /// Kind of a mark.
    pub const MARK: u16 = 1001;
    /// Kind of an interval during which a toggle was on.
    pub const TOGGLE: u16 = 1002;

    /// Flag: a message was sent.
    pub const SENT: u8 = 1;
    /// Flag: a message was received.
    pub const RECEIVED: u8 = 2;
    /// Flag: the call failed.
    pub const FAILED: u8 = 4;

    /// Packs the first word of an event. The kind of a call is its number.
    pub const fn pack(kind: u16, flags: u8, thread: u8, sequence: u32) -> u64 {
        (kind as u64 + 1) << 48 | (flags as u64) << 40 | (thread as u64) << 32 | sequence as u64
    }
}

/// Position of the first thread's part.
pub const THREADS_AT: usize = head::WORDS;
/// Position of the first name.
pub const NAMES_AT: usize = THREADS_AT + THREADS * thread::WORDS;
/// Position of the list of modules.
pub const MODULES_AT: usize = NAMES_AT + NAMES * name::WORDS;
/// Position of the first sample.
pub const SAMPLES_AT: usize = MODULES_AT + MODULE_WORDS;
/// Position of the first event.
pub const EVENTS_AT: usize = SAMPLES_AT + 2 * SAMPLES;

/// Returns the size of a record with room for `events` events, in words.
pub const fn words(events: usize) -> usize {
    EVENTS_AT + events * event::WORDS
}

/// Returns the class of a length: class 0 for an empty message, and class k for up to 2^(k-1) bytes.
pub const fn class(length: u64) -> usize {
    match length {
        0 => 0,
        _ => 65 - (length - 1).leading_zeros() as usize,
    }
}

/// Returns the maximum length of a class, in bytes.
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
