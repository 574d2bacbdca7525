//! A bypass beside a connection: frames of Ethernet that go past the kernel's TCP/IP, for what is small and in a hurry.
//!
//! *The connection stays the carrier.* It alone brings everything, in its order; the bypass only brings some of it sooner. Each frame on the bypass has
//! its place in the link's one order, the number of its first byte, and the outbox keeps it as it keeps every numbered parcel. Before
//! anything is written on the connection, all that went by the bypass and is not known to have come is written there, behind a word that says
//! with which byte it goes on ([`Parcel::Place`](regatta_wire::link::Parcel::Place)). The receiver drops what it has. So loss, delay, doubling and other orders on
//! the bypass cost time alone, and nothing is sent twice by the bypass.
//!
//! *Nothing is overtaken.* Each frame says after how many bytes of the connection it comes ([`Word::after`]): all that had gone there when it was
//! sent, streams and words about them included. A receiver takes it only when all these have come, and when its parcel is the one that is expected next; until
//! then it waits ([`Early`]). A sender does not use the bypass while a stream of its own is open. So the link sees the parcels in the order in which
//! it would see them without a bypass, and nothing else in it knows of one.
//!
//! *Ahead of the connection* a sender goes when something has come since it last used the connection, and [`MAX_AHEAD_BYTES`](super::early::MAX_AHEAD_BYTES) bytes at most: what waits at
//! the receiver has its bound there. Otherwise it awaits the receiver's word, on the bypass, that every byte of the connection has come ([`Word::heard`]).
//! Two tasks that both send at once would await that for ever: each word comes after the next message has gone. But what goes ahead is repeated if the
//! connection is used before it is confirmed: a task that only sends would say everything twice, and so would two that send something
//! short and something long in turn. So after a run of fewer than [`MIN_RUN_FRAMES`] frames by the bypass the next [`HOLD_BACK_FRAMES`] that go by the connection come before any goes ahead.
//!
//! *When the connection takes over:* a frame is too long for the bypass, or no frame; [`WINDOW_FRAMES`] frames have had no answer; the oldest that is
//! not confirmed was so at a tick of the progress thread [`REPEAT_AFTER`] ago, so it went 15 to 30 ms ago; the bypass refuses a frame; the task leaves. After a
//! tick the receiver's answer to a question on the bypass is awaited, after a new key its word that it knows of it. A bypass that is dead
//! never answers, so it is not used, and costs four frames a second. Tasks that are away hardly use it.
//!
//! *Confirmations.* What a task sends next confirms what it has taken; else a frame of its own does, for every [`FRAMES_PER_CONFIRMATION`]th one or at a
//! tick. None goes before a sleep: tasks that share a core sleep after each message, and everything would go twice.
//!
//! *Opening.* After [`FRAMES_BEFORE_OFFER`](super::link) frames on an encrypted connection either side offers a bypass there ([`Parcel::Bypass`](regatta_wire::link::Parcel::Bypass)); the other one
//! offers in return if it can. A question each way must be answered on the bypass before it is used. That takes the right to open such sockets, an
//! address on the same segment; nothing is said when it comes to nothing. The bypass goes
//! with its connection: frames that have come by it are still taken until there is another one.
//!
//! *Keys* come of the connection's handshake under their own label ([`regatta_secure::Bypass`]). A frame that does not open, or that is older than
//! another one, is nobody's. Until it opens nothing of it is believed.
//!
//! Why not under the connection, as another socket: a lost frame would have to be repeated by us, with timers, as the kernel does it well.
//! Why numbers of bytes, not of records: the link counts so already, and acknowledges, resumes and drops by them.

mod carrying;
mod group_use;

use std::time::{Duration, Instant};

use regatta_connection::channel::Channel;
use regatta_connection::packet_socket::Sender;
use regatta_memory::ticks::{ticks, ticks_of};
use regatta_wire::bypass::{
    ENTRY_FRONT_BYTES, FRONT_BYTES, Mac, Offer, WORD_BYTES, Word, entry, set_number,
};

use super::early::Early;
use super::inbox::Inbox;
use group_use::GroupUse;

/// Maximum number of frames without an answer.
pub(super) const WINDOW_FRAMES: u64 = 16;
/// Maximum number of words without an answer, beside the frames.
pub(super) const WINDOW_WORDS: u64 = 4;
/// Number of frames taken after which they are confirmed, if nothing else goes back.
const FRAMES_PER_CONFIRMATION: u32 = 8;
/// Number of polls, while frames come by the bypass, of which one includes the connection.
const CONNECTION_CHECK_INTERVAL_POLLS: u32 = 64;
/// Microseconds after which a poll includes the connection in any case. Programs that poll rarely always include it.
pub(super) const CONNECTION_CHECK_INTERVAL_MICROSECONDS: u64 = 20;
/// Maximum number of reads of the connection between two confirmations of them.
const MAX_READS_PER_CONFIRMATION: u32 = 64;
/// Time after which a frame is repeated that a tick has found not confirmed. The receiver confirms at a tick of its own, 10 ms later if it sleeps.
pub(super) const REPEAT_AFTER: Duration = Duration::from_millis(15);
/// Maximum number of questions without an answer, a tick apart.
const MAX_UNANSWERED_QUESTIONS: u32 = 3;
/// Number of frames that go by the connection after one that was repeated without being lost: its sender or receiver was away or
/// slept, and a bypass saves such tasks nothing.
const REST_FRAMES: u32 = 32;
/// A new key has not been told of yet.
const UNTOLD: u64 = u64::MAX;
/// Minimum number of frames in a run by the bypass; after a shorter one the sender holds back.
const MIN_RUN_FRAMES: u32 = 8;
/// Number of frames that go by the connection, after a short run, before one goes ahead of it.
const HOLD_BACK_FRAMES: u32 = 128;
/// Size of the buffers, in bytes: the longest frame fits.
const BUFFER_BYTES: usize = 2048;
pub(super) const TAG: usize = regatta_secure::TAG;

/// One end of a bypass.
pub(crate) struct Bypass {
    keys: regatta_secure::Bypass,
    sender: Sender,
    /// Of this side's offer.
    mac: Mac,
    mtu: u16,
    /// Its number in this task.
    pub(super) slot: u8,
    /// The other side has offered as well.
    met: bool,
    /// The other side's tag and its number of the bypass.
    receiver: (u32, u8),
    /// Bytes of the longest packet that both interfaces take.
    packet: usize,
    pub(super) group: GroupUse,
    plain: Box<[u8; BUFFER_BYTES]>,
    out: Box<[u8; BUFFER_BYTES]>,
    /// Bytes of the longest parcel.
    most: usize,
    /// Behind the last frame that has come; and what the other side has said of ours.
    got: u64,
    peer_got: u64,
    /// It must have got so many for the bypass to be used.
    need: u64,
    /// Bytes of the connection that have come there; and so many must have for the bypass to be used, as they tell of a key.
    heard: u64,
    pub(super) told: u64,
    /// Bytes that have come on the connection, when there is none any more.
    came: u64,
    /// Bytes that had come from there by whichever way when a frame last went by the connection.
    said_at: u64,
    early: Early,
    /// Frames that have gone since a frame went by the connection, and frames that go there before one goes ahead.
    run: u32,
    shy: u32,
    /// Frames taken that have not been confirmed.
    owed: u32,
    /// Reads of the connection since the last confirmation, and how many there are to be.
    read: u32,
    gap: u32,
    /// The first byte that a tick has found not confirmed, and when.
    stale: Option<(u64, Instant)>,
    questions: u32,
    /// So many frames go by the connection before the next one by the bypass.
    rest: u32,
    /// The last frame came by the bypass; looks since then.
    lately: bool,
    looks: u32,
    /// When the connection was looked at, in ticks.
    looked: u64,
    /// [`CONNECTION_CHECK_INTERVAL_MICROSECONDS`], in ticks.
    max_unlooked: u64,
}

impl std::fmt::Debug for Bypass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Bypass");
        shown
            .field("slot", &self.slot)
            .field("next", &self.keys.next());
        shown
            .field("peer_got", &self.peer_got)
            .field("got", &self.got);
        shown.finish_non_exhaustive()
    }
}

impl Bypass {
    /// By way of an interface with this address and this longest packet.
    pub(super) fn new(
        keys: regatta_secure::Bypass,
        sender: Sender,
        (mac, mtu): (Mac, u16),
        slot: u8,
    ) -> Bypass {
        Bypass {
            keys,
            sender,
            mac,
            mtu,
            slot,
            met: false,
            receiver: (0, 0),
            packet: 0,
            group: GroupUse::default(),
            plain: Box::new([0; BUFFER_BYTES]),
            out: Box::new([0; BUFFER_BYTES]),
            most: 0,
            got: 0,
            peer_got: 0,
            need: u64::MAX,
            heard: 0,
            told: 0,
            came: 0,
            said_at: 0,
            early: Early::new(),
            run: 0,
            shy: 0,
            owed: 0,
            read: 0,
            gap: 1,
            stale: None,
            questions: 0,
            rest: 0,
            lately: false,
            looks: 0,
            looked: 0,
            max_unlooked: ticks_of(CONNECTION_CHECK_INTERVAL_MICROSECONDS),
        }
    }

    /// The other side's offer is there.
    fn meet(&mut self, offer: &Offer) {
        let packet = usize::from(offer.mtu.min(self.mtu));
        (self.packet, self.receiver) = (packet, (offer.tag, offer.slot));
        let around = FRONT_BYTES - regatta_wire::bypass::ETHERNET_HEAD_BYTES + WORD_BYTES + TAG;
        self.most = packet
            .min(BUFFER_BYTES / 2 + BUFFER_BYTES / 4)
            .saturating_sub(around);
        self.out[..FRONT_BYTES].copy_from_slice(&offer.front(&self.mac));
        self.met = true;
    }

    /// Bytes of the longest packet; `None`: the other side has not offered.
    pub(super) fn packet(&self) -> Option<usize> {
        self.met.then_some(self.packet)
    }

    #[inline]
    fn unanswered(&self) -> u64 {
        self.keys.next() - self.peer_got
    }

    /// May a parcel of `size` bytes go this way, when so many bytes have gone on the connection, and so many of parcels may go ahead of it?
    #[inline]
    fn is_free(&self, size: usize, sent: u64, ahead: usize) -> bool {
        (self.heard == sent || size <= ahead)
            && self.heard >= self.told
            && self.peer_got >= self.need
            && self.unanswered() < WINDOW_FRAMES
            && size <= self.most
            && !self.keys.is_worn()
    }

    /// The next frame goes by the connection.
    #[cfg(test)]
    pub(super) fn rest_once(&mut self) {
        self.rest = 1;
    }

    /// Have frames been lost, as far as is known?
    fn is_in_doubt(&self) -> bool {
        self.met && (self.peer_got < self.need || self.unanswered() >= WINDOW_FRAMES)
    }

    /// Are frames used one after the other?
    pub(super) fn is_used(&self) -> bool {
        self.met && !self.is_in_doubt()
    }

    /// Seals and sends a frame; whether it has gone.
    #[inline]
    pub(super) fn send(&mut self, word: &Word, parcel: &[u8]) -> bool {
        if !self.met {
            return false;
        }
        let number = self.keys.next();
        let end = FRONT_BYTES + WORD_BYTES + parcel.len() + TAG;
        let sealed = &mut self.out[FRONT_BYTES..end];
        if !seal(&mut self.keys, &mut self.plain, word, parcel, sealed) {
            return false;
        }
        if let Some(front) = self.out.first_chunk_mut() {
            set_number(front, number);
        }
        let gone = self.sender.send(&self.out[..end]).is_ok();
        match gone {
            true => self.owed = 0,
            // A queue that is full, or an interface that is down: it may take frames later.
            false => self.rest = REST_FRAMES,
        }
        gone
    }

    /// Seals a frame into `room`, which it fills, as an entry of a frame for several tasks. Returns the receiver's tag. An entry that cannot be sealed
    /// does not open, and counts as lost.
    pub(super) fn seal_entry(&mut self, word: &Word, parcel: &[u8], room: &mut [u8]) -> u32 {
        let ((tag, slot), number) = (self.receiver, self.keys.next());
        let (head, sealed) = room.split_at_mut(ENTRY_FRONT_BYTES);
        head.copy_from_slice(&entry(slot, sealed.len() as u16, number));
        seal(&mut self.keys, &mut self.plain, word, parcel, sealed);
        (self.owed, self.run) = (0, self.run.saturating_add(1));
        tag
    }

    /// What this side has got from the other one, by whichever way, as a frame says it.
    #[inline]
    fn word(&self, channel: &Channel, inbox: &Inbox) -> Word {
        Word {
            reached: inbox.reached,
            heard: channel.received(),
            got: self.got,
            ..Word::default()
        }
    }

    /// The word of a frame whose parcel begins with byte `position`, after all that has gone on the connection.
    #[inline]
    pub(super) fn word_at(&self, position: u64, channel: &Channel, inbox: &Inbox) -> Word {
        Word {
            position,
            after: channel.sent(),
            ..self.word(channel, inbox)
        }
    }

    /// Takes note of the other side's word, on a connection on which so many bytes have gone.
    #[inline]
    fn note(&mut self, word: &Word, sent: u64) -> Result<(), &'static str> {
        if word.heard > sent || word.got > self.keys.next() {
            return Err("a bypass confirms what was not sent");
        }
        self.heard = word.heard;
        if word.got > self.peer_got {
            self.peer_got = word.got;
            self.questions = 0;
        }
        Ok(())
    }

    /// While frames come this way the connection is looked at now and then.
    #[inline]
    pub(super) fn spares_look(&mut self) -> bool {
        if !self.lately {
            return false;
        }
        self.looks = self.looks.wrapping_add(1);
        let now = ticks();
        let is_soon = now.wrapping_sub(self.looked) < self.max_unlooked;
        let spares = !self.looks.is_multiple_of(CONNECTION_CHECK_INTERVAL_POLLS) && is_soon;
        if !spares {
            self.looked = now;
        }
        spares
    }
}

/// Seals a word and a parcel, put together in `plain`, into `sealed`, which they fill with the cipher's tag. False: the key has sealed all that it may.
#[inline]
fn seal(
    keys: &mut regatta_secure::Bypass,
    plain: &mut [u8; BUFFER_BYTES],
    word: &Word,
    parcel: &[u8],
    sealed: &mut [u8],
) -> bool {
    let length = WORD_BYTES + parcel.len();
    plain[..WORD_BYTES].copy_from_slice(&word.encode());
    plain[WORD_BYTES..length].copy_from_slice(parcel);
    keys.seal(&plain[..length], sealed)
}
