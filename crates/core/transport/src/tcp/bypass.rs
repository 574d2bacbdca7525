//! A bypass beside a connection: Ethernet frames that skip the kernel's TCP/IP, for small and urgent messages.
//!
//! *The connection stays the carrier.* The connection alone delivers everything, in order; the bypass only delivers
//! some of it sooner. Each frame on the bypass has its position in the link's single order, the number of its first
//! byte, and the outbox keeps it like every numbered parcel. Before anything is written on the connection, all frames
//! that were sent by the bypass and are not confirmed are written there, behind a parcel that names the byte at which
//! they begin ([`Parcel::Place`](regatta_wire::link::Parcel::Place)). The receiver drops what it already has. So
//! loss, delay, duplication and reordering on the bypass only cost time, and nothing is sent twice by the bypass.
//!
//! *Order.* Each frame says how many bytes of the connection precede it ([`Word::after`]): all that had been sent
//! there when the frame was sent, including streams and parcels about streams. A receiver takes the frame only when
//! all these bytes have been received, and when its parcel is the next one expected; until then the frame waits
//! ([`Early`]). A sender does not use the bypass while it has an open stream. So the link sees the parcels in the
//! order in which it would see them without a bypass, and no other part of the link knows of bypasses.
//!
//! *Frames ahead of the connection.* A sender may send ahead of unconfirmed bytes of the connection if it has
//! received something since it last used the connection, and then at most
//! [`MAX_AHEAD_BYTES`](super::early::MAX_AHEAD_BYTES) bytes, the bound of what waits at the receiver. Otherwise the
//! sender waits until the receiver has confirmed, on the bypass, that it received every byte of the connection
//! ([`Word::heard`]). Two tasks that both send at once would wait for that for ever, since each confirmation comes
//! after the next message has been sent. But what is sent ahead is repeated if the connection is used before it is
//! confirmed. A task that only sends would send everything twice, and so would two tasks that alternate between short
//! and long messages. So after a run of fewer than [`MIN_RUN_FRAMES`] frames by the bypass, the next
//! [`HOLD_BACK_FRAMES`] frames that go by the connection must pass before one is sent ahead.
//!
//! *The connection is used* if a frame is too long for the bypass, or the parcel is not a frame; if [`WINDOW_FRAMES`]
//! frames are unanswered; if the oldest unconfirmed frame was already unconfirmed at a tick of the progress thread
//! [`REPEAT_AFTER`] ago, so that it was sent 15 to 30 ms ago; if the bypass refuses a frame; or if the task leaves.
//! After a tick the sender waits for the receiver's answer to a question on the bypass; after a key change, for its
//! confirmation of the new key. A dead bypass never answers, so it is not used, and costs four frames a second. Tasks
//! that make few calls hardly use the bypass.
//!
//! *Confirmations.* A task confirms what it has taken with its next frame. Without one it sends a confirmation of its
//! own, after every [`FRAMES_PER_CONFIRMATION`] frames or at a tick. It does not confirm before it sleeps: tasks that
//! share a core sleep after each message, so the number of frames would double.
//!
//! *Opening.* After [`FRAMES_BEFORE_OFFER`](super::link) frames on an encrypted connection either side offers a
//! bypass there ([`Parcel::Bypass`](regatta_wire::link::Parcel::Bypass)); the other side offers in return if it can.
//! Before the bypass is used, a question in each direction must be answered on it. It requires the right to open such
//! sockets, and an address on the same network segment. If it cannot be opened, nothing is reported. The bypass ends
//! with its connection; frames that have already arrived by it are still taken until there is another connection.
//!
//! *Keys* are derived from the connection's handshake under their own label ([`regatta_secure::Bypass`]). A frame
//! that does not decrypt, or that is a replay, is dropped. Nothing in a frame is trusted until it has been decrypted.
//!
//! Why not below the connection, as another socket: lost frames would have to be repeated here, with timers, which
//! the kernel already does well.
//!
//! Why numbers of bytes and not of records: the link already counts bytes, and acknowledges, resumes and drops by
//! them.

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

/// Maximum number of unanswered frames.
pub(super) const WINDOW_FRAMES: u64 = 16;
/// Maximum number of unanswered words in addition to the frames.
pub(super) const WINDOW_WORDS: u64 = 4;
/// Number of frames taken after which they are confirmed, unless a frame is sent in return before.
const FRAMES_PER_CONFIRMATION: u32 = 8;
/// Number of polls, while frames arrive by the bypass, of which one includes the connection.
const CONNECTION_CHECK_INTERVAL_POLLS: u32 = 64;
/// Time in microseconds after which a poll includes the connection in any case. Programs that poll rarely always
/// include it.
pub(super) const CONNECTION_CHECK_INTERVAL_MICROSECONDS: u64 = 20;
/// Maximum number of reads of the connection between two confirmations of what was read.
const MAX_READS_PER_CONFIRMATION: u32 = 64;
/// Time after which a frame that a tick found unconfirmed is repeated. The receiver confirms at a tick of its own, 10
/// ms later if it sleeps.
pub(super) const REPEAT_AFTER: Duration = Duration::from_millis(15);
/// Maximum number of unanswered questions, which are a tick apart.
const MAX_UNANSWERED_QUESTIONS: u32 = 3;
/// Number of frames that go by the connection after one was repeated although it was not lost: its sender or receiver
/// was away or slept, and for such tasks a bypass saves nothing.
const REST_FRAMES: u32 = 32;
/// Value of `told`: the new key has not been announced yet.
const UNTOLD: u64 = u64::MAX;
/// Minimum number of frames in a run by the bypass. After a shorter run the sender holds back.
const MIN_RUN_FRAMES: u32 = 8;
/// Number of frames that go by the connection, after a short run, before one is sent ahead of it.
const HOLD_BACK_FRAMES: u32 = 128;
/// Size of the buffers in bytes; the longest frame fits.
const BUFFER_BYTES: usize = 2048;
pub(super) const TAG: usize = regatta_secure::TAG;

/// One end of a bypass.
pub(crate) struct Bypass {
    keys: regatta_secure::Bypass,
    sender: Sender,
    /// Address and longest packet of this side's offer.
    mac: Mac,
    mtu: u16,
    /// Index of this bypass in this task.
    pub(super) slot: u8,
    /// Whether the other side has offered as well.
    met: bool,
    /// The other side's tag, and the other side's index of the bypass.
    receiver: (u32, u8),
    /// Maximum length in bytes of a packet that both interfaces take.
    packet: usize,
    pub(super) group: GroupUse,
    plain: Box<[u8; BUFFER_BYTES]>,
    out: Box<[u8; BUFFER_BYTES]>,
    /// Maximum length in bytes of a parcel.
    most: usize,
    /// Number behind the last frame received; `peer_got` is the other side's report of the same for frames of this
    /// side.
    got: u64,
    peer_got: u64,
    /// Value that `peer_got` must have reached for the bypass to be used.
    need: u64,
    /// Number of bytes of the connection that the other side has received. It must reach `told` for the bypass to be
    /// used, because those bytes announce a key.
    heard: u64,
    pub(super) told: u64,
    /// Number of bytes received on the connection, once there is no connection any more.
    came: u64,
    /// Number of bytes that had been received from the peer, by either path, when a frame was last sent by the
    /// connection.
    said_at: u64,
    early: Early,
    /// Number of frames by the bypass since one was sent by the connection; `shy` is the number of frames to send by
    /// the connection before one may go ahead.
    run: u32,
    shy: u32,
    /// Number of frames taken and not confirmed.
    owed: u32,
    /// Number of reads of the connection since the last confirmation; `gap` is the number of reads at which the next
    /// one is sent.
    read: u32,
    gap: u32,
    /// The first byte that a tick found unconfirmed, and the time of that tick.
    stale: Option<(u64, Instant)>,
    questions: u32,
    /// Number of frames to send by the connection before the next one by the bypass.
    rest: u32,
    /// Whether the last frame arrived by the bypass; `looks` counts the polls since then.
    lately: bool,
    looks: u32,
    /// Time, in ticks, at which the connection was last polled.
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
    /// Makes an end of a bypass over an interface with this address and maximum packet length.
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

    /// Applies the other side's offer.
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

    /// Returns the maximum packet length in bytes, or `None` if the other side has not offered.
    pub(super) fn packet(&self) -> Option<usize> {
        self.met.then_some(self.packet)
    }

    #[inline]
    fn unanswered(&self) -> u64 {
        self.keys.next() - self.peer_got
    }

    /// Returns whether a parcel of `size` bytes may be sent by the bypass, where `sent` bytes have been sent on the
    /// connection and parcels of up to `ahead` bytes may go ahead of them.
    #[inline]
    fn is_free(&self, size: usize, sent: u64, ahead: usize) -> bool {
        (self.heard == sent || size <= ahead)
            && self.heard >= self.told
            && self.peer_got >= self.need
            && self.unanswered() < WINDOW_FRAMES
            && size <= self.most
            && !self.keys.is_worn()
    }

    /// Makes the next frame go by the connection.
    #[cfg(test)]
    pub(super) fn rest_once(&mut self) {
        self.rest = 1;
    }

    /// Returns whether frames may have been lost, as far as is known.
    fn is_in_doubt(&self) -> bool {
        self.met && (self.peer_got < self.need || self.unanswered() >= WINDOW_FRAMES)
    }

    /// Returns whether the bypass is in use: both sides have offered, and no frame is in doubt.
    pub(super) fn is_used(&self) -> bool {
        self.met && !self.is_in_doubt()
    }

    /// Seals and sends a frame. Returns whether the interface accepted it.
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
            // The queue is full or the interface is down; it may accept frames later.
            false => self.rest = REST_FRAMES,
        }
        gone
    }

    /// Seals a frame into `room`, which it fills, as an entry of a frame for several tasks. Returns the receiver's
    /// tag. If sealing fails, the entry does not decrypt at the receiver and counts as lost.
    pub(super) fn seal_entry(&mut self, word: &Word, parcel: &[u8], room: &mut [u8]) -> u32 {
        let ((tag, slot), number) = (self.receiver, self.keys.next());
        let (head, sealed) = room.split_at_mut(ENTRY_FRONT_BYTES);
        head.copy_from_slice(&entry(slot, sealed.len() as u16, number));
        seal(&mut self.keys, &mut self.plain, word, parcel, sealed);
        (self.owed, self.run) = (0, self.run.saturating_add(1));
        tag
    }

    /// Returns a word with what this side has received from the other one by either path.
    #[inline]
    fn word(&self, channel: &Channel, inbox: &Inbox) -> Word {
        Word {
            reached: inbox.reached,
            heard: channel.received(),
            got: self.got,
            ..Word::default()
        }
    }

    /// Returns the word of a frame whose parcel begins with byte `position`, to be taken after all bytes sent on the
    /// connection.
    #[inline]
    pub(super) fn word_at(&self, position: u64, channel: &Channel, inbox: &Inbox) -> Word {
        Word {
            position,
            after: channel.sent(),
            ..self.word(channel, inbox)
        }
    }

    /// Records the other side's word, on a connection on which `sent` bytes have been sent. Fails if the word
    /// confirms more than was sent.
    #[inline]
    fn note(&mut self, word: &Word, sent: u64) -> Result<(), &'static str> {
        if word.heard > sent || word.got > self.keys.next() {
            return Err("a bypass acknowledges data that was not sent");
        }
        self.heard = word.heard;
        if word.got > self.peer_got {
            self.peer_got = word.got;
            self.questions = 0;
        }
        Ok(())
    }

    /// Returns whether this poll may skip the connection. While frames arrive by the bypass, the connection is polled
    /// only from time to time.
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

/// Seals a word and a parcel, which are joined in `plain`, into `sealed`, which they fill with the cipher's tag.
/// Returns false if the key has sealed the maximum that it may.
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
