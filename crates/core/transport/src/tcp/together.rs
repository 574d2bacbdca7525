//! One Ethernet frame for several tasks: their entries are side by side in a frame to the job's group of interfaces.
//!
//! A receiver's entry has the contents of a frame for it alone: it is sealed with the keys of its bypass, and has
//! that bypass's number and [`Word`](regatta_wire::bypass::Word). So a receiver takes it like any other frame, and
//! the bypass handles loss, delay and duplication ([`super::bypass`]). Only sending differs: one system call, and one
//! pass through the kernel for all receivers.
//!
//! A switch or an interface may drop frames to groups. The connection then repeats what was lost. After a few losses
//! in a row a link takes no part in such frames for a while (`bypass/group_use.rs`).
//!
//! Why not one parcel for all under a key of the group: the key would have to be agreed on, and changed whenever a
//! task leaves, and positions and confirmations differ by receiver in any case. The price is one copy of the payload
//! for each receiver, so this is for short messages.

use regatta_engine::Peer;
use regatta_memory::views::Views;
use regatta_wire::Frame;
use regatta_wire::bypass::{
    ENTRY_FRONT_BYTES, ETHERNET_HEAD_BYTES, GROUP_FRONT_BYTES, MAX_RECEIVERS, WORD_BYTES,
    group_front, set_receiver,
};
use regatta_wire::link::{HEAD, Head};

use super::Tcp;
use super::bypass::TAG;
use super::link::Link;

impl Link {
    /// Returns the maximum packet length in bytes of the link's bypass, or `None` if the link cannot take part in
    /// frames for several tasks.
    fn shares_frames(&mut self) -> Option<usize> {
        let is_open = self.is_open();
        let bypass = self.bypass.as_deref_mut().filter(|_| is_open)?;
        bypass.packet().filter(|_| bypass.group.is_free())
    }

    /// Keeps a frame, and seals it into `room` as an entry of a frame for several tasks. Returns the receiver's tag,
    /// or `None` if nothing was kept.
    fn send_as_entry(&mut self, frame: Frame, payload: &Views, room: &mut [u8]) -> Option<u32> {
        let head = Head::frame(frame, payload.len() as u32, self.inbox.taken);
        if !self.outbox.has_room(payload.len()) || !self.is_bypass_free(head.size()) {
            return None;
        }
        let (Some(bypass), Some(channel)) = (&mut self.bypass, self.state.channel()) else {
            return None;
        };
        self.outbox.keep(&head, payload);
        self.receipts.tell(self.inbox.taken);
        let (position, parcel) = self.outbox.just_kept();
        let word = bypass.word_at(position, channel, &self.inbox);
        let tag = bypass.seal_entry(&word, parcel, room);
        bypass.group.went(position);
        self.outbox.went_by_bypass();
        Some(tag)
    }

    /// Sends the kept parcel by the connection, because the frame with its entry could not be sent.
    #[cold]
    fn take_back_entry(&mut self) {
        if let Some(bypass) = &mut self.bypass {
            bypass.group.forget();
        }
        self.repeat_by_connection();
    }
}

/// Returns the indices of the bits that are set.
fn places(bits: u64) -> impl Iterator<Item = usize> {
    (0..MAX_RECEIVERS).filter(move |place| bits & 1 << place != 0)
}

impl Tcp {
    /// Sends a frame to several peers at once; see [`regatta_engine::Frames::send_to_all`]. It is not inlined,
    /// because its callers are in pages that every idle task has in memory.
    #[inline(never)]
    pub(super) fn send_to_all(&mut self, to: &[Peer], frame: Frame, payload: &Views) -> u64 {
        self.look_at_bypasses();
        let (bypasses, links) = (&mut self.bypasses, &mut self.links);
        let Some(socket) = &bypasses.socket else {
            return 0;
        };
        let size = ENTRY_FRONT_BYTES + WORD_BYTES + HEAD + payload.len() + TAG;
        let (mut sharers, mut longest) = (0u64, bypasses.out.len());
        for (place, &peer) in to.iter().take(MAX_RECEIVERS).enumerate() {
            let link = links.get_mut(peer as usize).and_then(Option::as_deref_mut);
            if let Some(packet) = link.and_then(Link::shares_frames) {
                sharers |= 1 << place;
                longest = longest.min(ETHERNET_HEAD_BYTES + packet);
            }
        }
        // For a single receiver there is no gain.
        if sharers.count_ones() < 2 || GROUP_FRONT_BYTES + 2 * size > longest {
            return 0;
        }
        let mut front = group_front(socket.group(), &socket.interface().mac);
        let (mut end, mut receivers, mut gone) = (GROUP_FRONT_BYTES, 0, 0u64);
        for place in places(sharers) {
            let link = links[to[place] as usize].as_deref_mut();
            let room = bypasses.out[..longest].get_mut(end..end + size);
            if let (Some(link), Some(room)) = (link, room)
                && let Some(tag) = link.send_as_entry(frame, payload, room)
            {
                set_receiver(&mut front, receivers, tag);
                (end, receivers) = (end + size, receivers + 1);
                gone |= 1 << place;
            }
        }
        if gone == 0 {
            return 0;
        }
        bypasses.out[..GROUP_FRONT_BYTES].copy_from_slice(&front);
        let sent = socket.send(&bypasses.out[..end]).is_ok();
        self.tick_bypasses();
        for peer in places(gone).map(|place| to[place]) {
            let Some(link) = self.link(peer) else {
                continue;
            };
            if !sent {
                link.take_back_entry();
            }
            let (restless, watched) = (link.is_restless(), link.stall.is_watched());
            self.restless |= restless;
            if !watched {
                self.begin_watch(peer);
            }
        }
        gone
    }
}
