//! One frame of Ethernet for several tasks: what goes to each of them by its bypass, side by side in a frame to the job's group of interfaces.
//!
//! A receiver's entry is what a frame for it alone would carry: sealed under the keys of its bypass, with a number and a [`Word`] of that. So a
//! receiver takes it as it takes any frame, and loss, delay and doubling are the bypass's business ([`super::bypass`]). Only sending is
//! different: one system call and one way through the kernel for all.
//!
//! A switch, or an interface, may pass no frames to groups. The connection then repeats what was lost, after [`MAX_LOSSES`] losses in a row a link takes
//! no part in such frames for [`FIRST_REST`], and after each further one twice as long as before.
//!
//! Why not one parcel for all under a key of the group: the key would have to be agreed on, and changed whenever a task goes; positions and confirmations
//! differ by receiver in any case. The price is the payload once for each receiver, so that this is for short messages.

use std::time::{Duration, Instant};

use regatta_engine::Peer;
use regatta_memory::views::Views;
use regatta_wire::Frame;
use regatta_wire::bypass::{ENTRY, ETHERNET, GROUP_FRONT, WORD, Word, entry, group_front};
use regatta_wire::link::Head;

use super::Tcp;
use super::bypass::{Bypass, TAG};
use super::link::Link;
use super::phase::Phase;

/// Maximum number of receivers of a frame: there is a bit for each.
const MAX_RECEIVERS: usize = u64::BITS as usize;
/// Maximum number of losses in a row before a link rests.
const MAX_LOSSES: u32 = 3;
/// Time for which a link takes no part after that.
const FIRST_REST: Duration = Duration::from_secs(1);
/// How often that time doubles.
const MAX_DOUBLINGS: u32 = 10;

/// How the frames for several tasks, of which a link had a part, have fared.
#[derive(Debug, Default)]
pub(super) struct GroupUse {
    /// Number of the first byte of the last parcel that went so, if it is not known to have come.
    last: Option<u64>,
    /// Losses in a row.
    losses: u32,
    rests_until: Option<Instant>,
}

impl GroupUse {
    /// May the link take part?
    fn is_free(&mut self) -> bool {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        self.rests_until = None;
        true
    }

    /// All before byte `position` has come by the bypass.
    #[inline]
    pub(super) fn reached(&mut self, position: u64) {
        if self.last.is_some_and(|last| last < position) {
            (self.last, self.losses) = (None, 0);
        }
    }

    /// The connection is used: what it repeats says nothing about the frame.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// What went by the bypass from byte `position` on has not come in time.
    #[cold]
    pub(super) fn lost(&mut self, position: u64) {
        if self.last.take().is_none_or(|last| last < position) {
            return;
        }
        self.losses = self.losses.saturating_add(1);
        if let Some(more) = self.losses.checked_sub(MAX_LOSSES) {
            let rest = FIRST_REST * (1 << more.min(MAX_DOUBLINGS));
            self.rests_until = Some(Instant::now() + rest);
        }
    }
}

impl Bypass {
    /// Seals a frame into `room` as an entry, which fills it; whether it was sealed.
    fn seal_entry(&mut self, word: &Word, parcel: &[u8], room: &mut [u8]) -> bool {
        let content = WORD + parcel.len();
        let number = self.keys.next();
        self.plain[..WORD].copy_from_slice(&word.encode());
        self.plain[WORD..content].copy_from_slice(parcel);
        let (head, sealed) = room.split_at_mut(ENTRY);
        let (tag, slot) = self.receiver;
        head.copy_from_slice(&entry(tag, slot, sealed.len() as u16, number));
        self.owed = 0;
        self.keys.seal(&self.plain[..content], sealed)
    }
}

impl Link {
    /// Keeps a frame and seals it into `room` as an entry of a frame for several tasks. Returns its length in bytes; `None`: nothing has happened.
    fn send_as_entry(&mut self, frame: Frame, payload: &Views, room: &mut [u8]) -> Option<usize> {
        let head = Head::frame(frame, payload.len() as u32, self.inbox.taken);
        let size = ENTRY + WORD + head.size() + TAG;
        let is_free = |bypass: &mut Box<Bypass>| bypass.group.is_free();
        if size > room.len()
            || !self.is_open()
            || !self.outbox.has_room(payload.len())
            || !self.bypass.as_mut().is_some_and(is_free)
            || !self.is_bypass_free(head.size())
        {
            return None;
        }
        let (Some(bypass), Phase::Open(channel)) = (&mut self.bypass, &self.phase) else {
            return None;
        };
        self.outbox.keep(&head, payload);
        self.told = self.inbox.taken;
        let (position, parcel) = self.outbox.just_kept();
        let word = Word {
            position,
            after: channel.sent(),
            reached: self.inbox.reached,
            heard: channel.received(),
            got: bypass.got(),
            asks: false,
        };
        // One that cannot be sealed is lost, and repeated as that.
        bypass.seal_entry(&word, parcel, &mut room[..size]);
        bypass.group.last = Some(position);
        bypass.count_frame();
        self.outbox.went_by_bypass();
        Some(size)
    }
}

impl Tcp {
    /// Sends a frame to several peers at once; a bit for each to whom it has gone, by its place in `to`. Of the others nothing has happened.
    pub(super) fn send_to_all(&mut self, to: &[Peer], frame: Frame, payload: &Views) -> u64 {
        self.look_at_bypasses();
        let (bypasses, links) = (&mut self.bypasses, &mut self.links);
        let Some(socket) = &bypasses.socket else {
            return 0;
        };
        let to = &to[..to.len().min(MAX_RECEIVERS)];
        let packets = to.iter().filter_map(|&peer| {
            let link = links.get(peer as usize)?.as_deref()?;
            link.bypass.as_deref()?.packet()
        });
        let Some(packet) = packets.min() else {
            return 0;
        };
        let longest = (ETHERNET + packet).min(bypasses.out.len());
        let (mut end, mut gone) = (GROUP_FRONT, 0u64);
        for (place, &peer) in to.iter().enumerate() {
            let link = links.get_mut(peer as usize).and_then(Option::as_deref_mut);
            let room = bypasses.out.get_mut(end..longest);
            if let (Some(link), Some(room)) = (link, room)
                && let Some(length) = link.send_as_entry(frame, payload, room)
            {
                end += length;
                gone |= 1 << place;
            }
        }
        if gone == 0 {
            return 0;
        }
        let front = group_front(socket.group(), &socket.interface().mac);
        bypasses.out[..GROUP_FRONT].copy_from_slice(&front);
        // What is not sent is lost, and repeated as that.
        let _ = socket.send(&bypasses.out[..end]);
        self.tick_bypasses();
        for (place, &peer) in to.iter().enumerate() {
            let is_watched = |link: &mut Link| link.stall.watched;
            if gone & 1 << place != 0 && !self.link(peer).is_some_and(is_watched) {
                self.begin_watch(peer);
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_rests_after_losses_in_a_row_alone() {
        let mut group = GroupUse::default();
        for _ in 0..2 * MAX_LOSSES {
            group.last = Some(10);
            group.lost(10);
            group.last = Some(20);
            group.reached(21);
        }
        assert!(group.is_free());
        for _ in 0..MAX_LOSSES {
            assert!(group.is_free());
            group.last = Some(30);
            group.lost(31);
            assert!(
                group.last.is_none(),
                "the frame is not the one that was lost"
            );
            group.last = Some(30);
            group.lost(30);
        }
        assert!(!group.is_free());
        let rest = group.rests_until.map(|until| until - Instant::now());
        assert!(rest.is_some_and(|rest| rest <= FIRST_REST));
        for _ in 0..100 {
            group.last = Some(40);
            group.lost(40);
        }
        let rest = group.rests_until.map(|until| until - Instant::now());
        assert!(rest.is_some_and(|rest| rest <= FIRST_REST * (1 << MAX_DOUBLINGS)));
        group.last = Some(50);
        group.reached(50);
        assert_eq!(group.last, Some(50), "it has not come");
    }
}
