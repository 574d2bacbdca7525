//! The use of a bypass by its link (see [`super`]): which frames are sent by it, how frames that arrive by it are
//! taken, and the words on it.

use std::time::Instant;

use regatta_connection::packet_socket::Sender;
use regatta_wire::bypass::{Offer, WORD_BYTES, Word};
use regatta_wire::link::{HEAD, Head, Parcel};

use super::{
    BUFFER_BYTES, Bypass, FRAMES_PER_CONFIRMATION, HOLD_BACK_FRAMES, MAX_READS_PER_CONFIRMATION,
    MAX_UNANSWERED_QUESTIONS, MIN_RUN_FRAMES, REPEAT_AFTER, REST_FRAMES, TAG, UNTOLD,
    WINDOW_FRAMES, WINDOW_WORDS,
};
use crate::tcp::early::MAX_AHEAD_BYTES;
use crate::tcp::link::{Link, MAX_PAYLOAD_BYTES, Trouble};

/// The part of a link that uses its bypass.
impl Link {
    /// Returns whether a parcel of `size` bytes, which is about to be kept in the outbox, may be sent by the bypass.
    #[inline]
    pub(in crate::tcp) fn is_bypass_free(&mut self, size: usize) -> bool {
        let (Some(bypass), Some(channel)) = (&mut self.bypass, self.state.channel()) else {
            return false;
        };
        if bypass.rest > 0 {
            bypass.rest -= 1;
            return false;
        }
        let ahead = match bypass.shy > 0 || bypass.said_at == self.receipts.heard_bytes() {
            true => 0,
            false => MAX_AHEAD_BYTES.saturating_sub(self.outbox.unsure()),
        };
        let is_written = channel.is_flushed() && self.outbox.is_written();
        if bypass.told == UNTOLD && is_written {
            bypass.told = channel.sent();
        }
        bypass.is_free(size, channel.sent(), ahead)
            && is_written
            && self.streams.outs().is_empty()
            && !self.outbox.has_late()
            && !self.state.is_mute()
    }

    /// Records that a frame is sent by the connection although there is a bypass.
    pub(in crate::tcp) fn passes_by_bypass(&mut self) {
        if let Some(bypass) = &mut self.bypass {
            bypass.said_at = self.receipts.heard_bytes();
            bypass.group.forget();
            bypass.shy = match std::mem::take(&mut bypass.run) {
                1..MIN_RUN_FRAMES => HOLD_BACK_FRAMES,
                _ => bypass.shy.saturating_sub(1),
            };
            self.change_bypass_key();
        }
    }

    /// Records, at the end of the connection, how many of its bytes have been received.
    pub(in crate::tcp) fn note_end_for_bypass(&mut self) {
        if let (Some(bypass), Some(channel)) = (&mut self.bypass, self.state.channel()) {
            bypass.came = channel.received();
        }
    }

    /// Sends the parcel that was just kept by the bypass. Returns whether it was sent.
    #[inline]
    pub(in crate::tcp) fn send_by_bypass(&mut self) -> bool {
        let (Some(bypass), Some(channel)) = (&mut self.bypass, self.state.channel()) else {
            return false;
        };
        let (position, parcel) = self.outbox.just_kept();
        let word = bypass.word_at(position, channel, &self.inbox);
        let gone = bypass.send(&word, parcel);
        if gone {
            bypass.run = bypass.run.saturating_add(1);
            self.outbox.went_by_bypass();
        }
        gone
    }

    /// Sends a word without a parcel on the bypass: how much this side has received, and a question if `asks`.
    fn say_by_bypass(&mut self, asks: bool) {
        if self
            .bypass
            .as_ref()
            .is_some_and(|bypass| bypass.keys.is_worn())
        {
            self.change_bypass_key();
            self.pump(0);
        }
        let (Some(bypass), Some(channel)) = (&mut self.bypass, self.state.channel()) else {
            return;
        };
        let word = Word {
            asks,
            ..bypass.word(channel, &self.inbox)
        };
        bypass.send(&word, &[]);
    }

    /// Sends a confirmation on the bypass, unless too many frames and words are unanswered.
    fn confirm_by_bypass(&mut self) {
        let few = |bypass: &Bypass| bypass.unanswered() < WINDOW_FRAMES + WINDOW_WORDS;
        if self.bypass.as_deref().is_some_and(few) {
            self.say_by_bypass(false);
        }
    }

    /// Sends a question on the bypass. The bypass is used again once this frame, or one after it, has arrived and is
    /// answered.
    pub(in crate::tcp) fn ask_by_bypass(&mut self) {
        if let Some(bypass) = &mut self.bypass {
            bypass.need = bypass.keys.next() + 1;
            self.say_by_bypass(true);
        }
    }

    /// Offers a bypass whose frames are sent by `sender`. Returns `None` if the connection has no keys for one.
    pub(in crate::tcp) fn set_up_bypass(&mut self, sender: Sender, offer: &Offer) -> Option<()> {
        let channel = self.state.channel_mut()?;
        let keys = channel.take_bypass()?;
        let bypass = Bypass::new(keys, sender, (offer.mac, offer.mtu), offer.slot);
        self.bypass = Some(Box::new(bypass));
        let mut head = Head::bare(Parcel::Bypass, 0, 0);
        let body = offer.encode();
        head.length = body.len() as u32;
        self.outbox.urge(&head, &body);
        self.pump(0);
        Some(())
    }

    /// Completes the bypass with the other side's offer, and asks a question on it.
    pub(in crate::tcp) fn meet_bypass(&mut self, offer: &Offer) {
        if let Some(bypass) = &mut self.bypass
            && !bypass.met
        {
            bypass.meet(offer);
            self.ask_by_bypass();
        }
    }

    /// Changes the key of the bypass if it has sealed the intended maximum, and announces the change on the
    /// connection.
    #[cold]
    pub(in crate::tcp) fn change_bypass_key(&mut self) {
        if let Some(bypass) = self.bypass.as_mut().filter(|bypass| bypass.keys.is_worn())
            && self.outbox.has_room_to_urge()
        {
            let number = bypass.keys.change_sends();
            bypass.told = UNTOLD;
            let head = Head::bare(Parcel::BypassKey, 0, number);
            self.outbox.urge(&head, &[]);
        }
    }

    /// Applies the other side's key change. Fails if there is no bypass, or if the key may not change now.
    #[cold]
    pub(in crate::tcp) fn bypass_key_changed(&mut self, number: u64) -> Result<(), Trouble> {
        let bypass = self.bypass.as_mut();
        let bypass = bypass.ok_or("a bypass that does not exist has another key")?;
        bypass
            .keys
            .change_receives(number)
            .map_err(|_| "a bypass changes its key at the wrong time".into())
    }

    /// Takes a frame that names the bypass in `slot`.
    #[inline]
    pub(in crate::tcp) fn take_frame(&mut self, slot: u8, number: u64, sealed: &[u8]) {
        if let Err(trouble) = self.try_frame(slot, number, sealed) {
            self.trouble(trouble);
        }
    }

    fn try_frame(&mut self, slot: u8, number: u64, sealed: &[u8]) -> Result<(), Trouble> {
        let bypass = self
            .bypass
            .as_deref_mut()
            .filter(|bypass| bypass.slot == slot);
        let length = sealed.len().checked_sub(TAG);
        let (Some(bypass), Some(length)) =
            (bypass, length.filter(|&length| length <= BUFFER_BYTES))
        else {
            return Ok(());
        };
        if !bypass
            .keys
            .open(number, sealed, &mut bypass.plain[..length])
        {
            return Ok(());
        }
        let first = bypass.got == 0;
        bypass.got = number + 1;
        let (word, _) =
            Word::decode(&bypass.plain[..length]).map_err(|_| "a bypass carries invalid data")?;
        if let Some(channel) = self.state.channel() {
            bypass.note(&word, channel.sent())?;
            bypass.group.reached(word.reached);
            self.outbox.reached(word.reached)?;
        }
        if length > WORD_BYTES {
            let head = sound_frame(&bypass.plain[WORD_BYTES..length])?;
            if self.has_early() {
                self.take_early()?;
            }
            if !self.take_from_bypass(&word, &head, false)? {
                self.keep_early(&word, length);
            }
        }
        if word.asks || first {
            self.say_by_bypass(false);
        } else {
            self.confirm_many();
        }
        Ok(())
    }

    /// Takes a frame that has just arrived, or the first of the early frames. Returns false if its turn has not come.
    #[inline]
    fn take_from_bypass(&mut self, word: &Word, head: &Head, early: bool) -> Result<bool, Trouble> {
        let is_next =
            self.reception.chunk_is_over() && self.inbox.is_scanned() && !self.state.is_gone();
        let Some(bypass) = &mut self.bypass else {
            return Ok(false);
        };
        let came = match self.state.channel() {
            Some(channel) => channel.received(),
            None => bypass.came,
        };
        if !is_next || word.position != self.inbox.reached || word.after > came {
            return Ok(false);
        }
        let Some(room) = self.inbox.room() else {
            return Ok(false);
        };
        let parcel = match early {
            true => bypass.early.front().map_or(&[][..], |(.., parcel)| parcel),
            false => &bypass.plain[WORD_BYTES..WORD_BYTES + head.size()],
        };
        room[..parcel.len()].copy_from_slice(parcel);
        (bypass.lately, bypass.looks, bypass.gap) = (true, 0, 1);
        bypass.owed += 1;
        self.inbox.end += head.size();
        self.receipts.hear(head.size());
        self.inbox.hold(head);
        self.acknowledge_by_bypass(head.word)?;
        Ok(true)
    }

    /// Keeps the frame of `length` bytes that has just arrived until the connection has delivered what precedes it.
    /// Drops the frame if the connection has already delivered its parcel.
    #[cold]
    fn keep_early(&mut self, word: &Word, length: usize) {
        let reached = self.inbox.reached;
        if let Some(bypass) = self.bypass.as_mut().filter(|_| word.position >= reached) {
            bypass.early.keep(&bypass.plain[..length]);
            // From now on every poll includes the connection.
            bypass.lately = false;
        }
    }

    /// Returns whether frames wait for the connection.
    #[inline]
    pub(in crate::tcp) fn has_early(&self) -> bool {
        let bypass = self.bypass.as_deref();
        bypass.is_some_and(|bypass| !bypass.early.is_empty())
    }

    /// Takes the early frames whose turn has come, after something was received on the connection.
    #[cold]
    pub(in crate::tcp) fn go_on_with_early(&mut self) -> Result<(), Trouble> {
        self.take_early()?;
        self.confirm_many();
        Ok(())
    }

    /// Takes the early frames whose turn has come, and drops those whose parcels the connection has delivered. Sends
    /// nothing, because the buffer in which words are made may hold a frame that has just been opened.
    #[cold]
    fn take_early(&mut self) -> Result<(), Trouble> {
        while let Some((word, head, _)) = self.bypass.as_ref().and_then(|one| one.early.front()) {
            let known = word.position < self.inbox.reached;
            if !known && !self.take_from_bypass(&word, &head, true)? {
                break;
            }
            if let Some(bypass) = &mut self.bypass {
                bypass.early.pass(head.size());
            }
        }
        if self.has_early()
            && let Some(bypass) = &mut self.bypass
        {
            bypass.lately = false;
        }
        Ok(())
    }

    /// Confirms the frames that were taken, if there are many and no other frame has confirmed them.
    #[inline]
    fn confirm_many(&mut self) {
        let owes = |bypass: &Bypass| bypass.owed >= FRAMES_PER_CONFIRMATION;
        if self.bypass.as_deref().is_some_and(owes) {
            self.confirm_by_bypass();
        }
    }

    /// Records that something was read from the connection and nothing more is available there. Confirms it from time
    /// to time.
    #[inline]
    pub(in crate::tcp) fn has_read(&mut self) {
        let Some(bypass) = &mut self.bypass else {
            return;
        };
        bypass.lately = false;
        bypass.read += 1;
        if bypass.read >= bypass.gap && bypass.met {
            (bypass.read, bypass.gap) = (0, (bypass.gap * 2).min(MAX_READS_PER_CONFIRMATION));
            self.confirm_by_bypass();
        }
    }

    /// Confirms the frames that were taken and have not been confirmed.
    pub(in crate::tcp) fn confirm_taken(&mut self) {
        if self.bypass.as_ref().is_some_and(|bypass| bypass.owed > 0) {
            self.confirm_by_bypass();
        }
    }

    /// Sends the frames that are not known to have arrived by the bypass again, by the connection.
    pub(in crate::tcp) fn repeat_by_connection(&mut self) {
        if self.outbox.is_unsure() && self.is_open() {
            if let Some(bypass) = &mut self.bypass {
                (bypass.rest, bypass.run) = (REST_FRAMES, 0);
                bypass.group.forget();
            }
            self.outbox.repeat_unsure();
            self.pump(0);
        }
    }

    /// Handles a tick, some milliseconds after the last one. Returns whether another tick is needed.
    pub(in crate::tcp) fn tick_bypass(&mut self, now: Instant) -> bool {
        let unsure = self.outbox.first_unsure().filter(|_| self.is_open());
        let Some(bypass) = self.bypass.as_deref_mut() else {
            return false;
        };
        // Frames behind a lost one may arrive and be confirmed, so the first unconfirmed byte counts.
        let before = bypass.stale.take();
        if let Some(first) = unsure {
            let since = match before {
                Some((byte, since)) if byte == first => since,
                _ => now,
            };
            if now < since + REPEAT_AFTER {
                bypass.stale = Some((first, since));
                return true;
            }
            bypass.group.lost(first);
            bypass.questions = 1;
            self.repeat_by_connection();
            self.ask_by_bypass();
            return true;
        }
        let asks = bypass.is_in_doubt() && bypass.questions < MAX_UNANSWERED_QUESTIONS;
        if asks {
            bypass.questions += 1;
            self.say_by_bypass(true);
        }
        asks
    }

    /// Asks a question on a bypass that did not answer: it may answer again.
    pub(in crate::tcp) fn try_bypass_again(&mut self) {
        if self
            .bypass
            .as_ref()
            .is_some_and(|bypass| bypass.is_in_doubt())
        {
            self.ask_by_bypass();
        }
    }
}

/// Decodes the header of a parcel on the bypass. Fails unless the parcel is a complete frame.
#[inline]
fn sound_frame(parcel: &[u8]) -> Result<Head, Trouble> {
    let head = parcel.first_chunk::<HEAD>().map(Head::decode);
    match head {
        Some(Ok(head))
            if matches!(head.parcel, Parcel::Frame(_))
                && head.size() == parcel.len()
                && head.length as usize <= MAX_PAYLOAD_BYTES =>
        {
            Ok(head)
        }
        _ => Err("a bypass carries data that is not a frame".into()),
    }
}
