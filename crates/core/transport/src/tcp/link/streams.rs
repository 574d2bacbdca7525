//! The streams of a link: each is opened, attached to, noticed and released by its number.

use regatta_memory::views::Views;

use crate::tcp::stream::{self, InStream, MAX_OUT_STREAMS, OutStream};
use crate::tcp::stream_limit::{Noticed, Opened};

/// The ends of streams that a link has.
#[derive(Debug)]
pub(crate) struct Streams {
    outs: Vec<OutStream>,
    ins: Vec<InStream>,
    /// Count of the streams that this side has opened to send, and that the peer has not released.
    opened: Opened,
    /// Count of the streams that the peer has opened to send, or `None` if it is unknown because an earlier link to
    /// the peer was freed.
    noticed: Option<Noticed>,
    next_out: u32,
    next_in: u32,
    /// Number of the newest stream that the peer has opened.
    newest: u32,
}

impl Streams {
    pub(super) fn new() -> Streams {
        Streams {
            outs: Vec::new(),
            ins: Vec::new(),
            opened: Opened::default(),
            noticed: Some(Noticed::default()),
            next_out: 2,
            next_in: 1,
            newest: 0,
        }
    }

    /// Returns the streams of a link to a peer whose earlier link was freed.
    pub(super) fn forgotten() -> Streams {
        Streams {
            noticed: None,
            ..Streams::new()
        }
    }

    /// Returns the sender's end of a stream, if it exists.
    pub(in crate::tcp) fn out(&mut self, id: u32) -> Option<&mut OutStream> {
        self.outs.iter_mut().find(|stream| stream.id == id)
    }

    /// Returns all streams that this side sends.
    #[inline]
    pub(in crate::tcp) fn outs(&self) -> &[OutStream] {
        &self.outs
    }

    #[inline]
    pub(super) fn outs_mut(&mut self) -> &mut [OutStream] {
        &mut self.outs
    }

    /// Returns the receiver's end of a stream, if it exists.
    pub(in crate::tcp) fn in_stream(&mut self, id: u32) -> Option<&mut InStream> {
        self.ins.iter_mut().find(|stream| stream.id == id)
    }

    /// Returns whether any stream may still be received.
    pub(in crate::tcp) fn are_wanted(&self) -> bool {
        self.ins.iter().any(|stream| !stream.discarded)
    }

    /// Opens a stream for a message to the peer. Returns `None` if too many are open.
    pub(in crate::tcp) fn open_out(&mut self, message: &Views) -> Option<u32> {
        let open = self.outs.iter().filter(|stream| stream.is_counted());
        if open.count() >= MAX_OUT_STREAMS || !self.opened.may_open() {
            return None;
        }
        self.opened.open();
        let id = self.next_out;
        self.next_out = self.next_out.wrapping_add(2);
        self.outs.push(OutStream::new(id, Some(message.clone())));
        Some(id)
    }

    /// Opens a stream for a message from the peer, and returns its number.
    pub(in crate::tcp) fn open_in(&mut self) -> u32 {
        let id = self.next_in;
        self.next_in = self.next_in.wrapping_add(2);
        let mut stream = InStream::new(id);
        stream.attached = true;
        self.ins.push(stream);
        id
    }

    /// Attaches to a stream that the peer has opened in order to receive.
    pub(in crate::tcp) fn attach_out(&mut self, id: u32) -> Result<(), &'static str> {
        if id.is_multiple_of(2) {
            return Err("the receiver of a message names a stream of a sender");
        }
        if self.outs.iter().any(|stream| stream.id == id) {
            return Err("a stream is named twice");
        }
        self.outs.push(OutStream::new(id, None));
        Ok(())
    }

    /// Attaches to a stream that the peer has opened in order to send.
    pub(in crate::tcp) fn attach_in(&mut self, id: u32) -> Result<(), &'static str> {
        if !id.is_multiple_of(2) {
            return Err("the sender of a message names a stream of a receiver");
        }
        match self.noticed {
            None => self.ins.push(InStream::new(id)),
            Some(_) => self.notice(id)?,
        }
        let stream = self.in_stream(id).filter(|stream| !stream.attached);
        let stream = stream.ok_or("a stream is named that does not exist")?;
        stream.attached = true;
        Ok(())
    }

    /// Records the number of a stream that the peer has opened. Numbers ascend, so skipped ones have been opened as
    /// well. Fails if there are too many streams.
    pub(super) fn notice(&mut self, id: u32) -> Result<(), &'static str> {
        if id % 2 == 1 {
            return Ok(());
        }
        let noticed = self.noticed.as_mut();
        let noticed = noticed.ok_or("a peer opens a stream after its end")?;
        while (id.wrapping_sub(self.newest) as i32) > 0 {
            noticed.notice()?;
            self.newest = self.newest.wrapping_add(2);
            self.ins.push(InStream::new(self.newest));
        }
        Ok(())
    }

    /// Removes the sender's end of a stream. Returns whether it existed.
    pub(super) fn remove_out(&mut self, id: u32) -> bool {
        let at = self.outs.iter().position(|stream| stream.id == id);
        at.inspect(|&at| _ = self.outs.remove(at)).is_some()
    }

    /// Releases a stream of the peer that is not needed here any more.
    pub(in crate::tcp) fn release_in(&mut self, id: u32) {
        let Some(at) = self.ins.iter().position(|stream| stream.id == id) else {
            return;
        };
        self.ins.swap_remove(at);
        if let Some(noticed) = self.noticed.as_mut().filter(|_| id.is_multiple_of(2)) {
            noticed.release();
        }
    }

    /// Returns whether a release must be sent to the peer.
    #[inline]
    pub(in crate::tcp) fn owe_release(&self) -> bool {
        self.noticed.as_ref().is_some_and(Noticed::is_due)
    }

    /// Takes the count of released streams, to be sent to the peer.
    pub(super) fn take_release(&mut self) -> u64 {
        self.noticed.as_mut().map_or(0, Noticed::take_count)
    }

    /// Records how many streams the peer has released so far.
    pub(super) fn released(&mut self, count: u64) -> Result<(), &'static str> {
        self.opened.told(count)
    }

    /// Returns the streams whose senders must receive a new limit.
    pub(super) fn announcing(&mut self) -> impl Iterator<Item = &mut InStream> {
        self.ins.iter_mut().filter(|stream| stream.announce)
    }

    /// Records how much the receiver of a stream has taken, and up to which byte it accepts more.
    pub(super) fn credit(&mut self, id: u32, body: &[u8], limit: u64) -> Result<(), &'static str> {
        stream::credit(&mut self.outs, id, body, limit)
    }

    /// Records that the receiver of a stream has received everything.
    pub(super) fn complete(&mut self, id: u32) {
        if let Some(stream) = self.out(id) {
            stream.complete = true;
        }
    }

    /// Records that the sender of a stream has abandoned it.
    pub(super) fn cancelled(&mut self, id: u32) -> Result<(), &'static str> {
        self.notice(id)?;
        // The frame that names the stream may still wait, and will be taken later.
        match self.in_stream(id) {
            Some(stream) if !stream.discarded => stream.cancel(),
            _ => self.release_in(id),
        }
        Ok(())
    }

    /// Records that the sender of a stream has abandoned it, and that no frame names it.
    pub(super) fn retracted(&mut self, id: u32) -> Result<(), &'static str> {
        self.notice(id)?;
        match self.in_stream(id) {
            Some(stream) if stream.attached && !stream.discarded => stream.cancel(),
            _ => self.release_in(id),
        }
        Ok(())
    }

    /// Discards a stream that will not be drained, and releases it as soon as it has ended. Returns whether it
    /// existed.
    pub(super) fn discard(&mut self, id: u32) -> bool {
        let Some(stream) = self.in_stream(id) else {
            return false;
        };
        stream.discard();
        if stream.total.is_some() {
            self.release_in(id);
        }
        true
    }

    /// Resets the streams for a new connection: senders go back to the last position that their receivers have
    /// acknowledged, and receivers announce their positions.
    pub(super) fn resume(&mut self) {
        self.outs.iter_mut().for_each(OutStream::rewind);
        for stream in &mut self.ins {
            stream.announce = stream.total.is_none();
        }
        if let Some(noticed) = &mut self.noticed {
            noticed.reconnected();
        }
    }

    /// Returns all streams that this side receives.
    #[cfg(test)]
    pub(in crate::tcp) fn ins_mut(&mut self) -> &mut [InStream] {
        &mut self.ins
    }
}
