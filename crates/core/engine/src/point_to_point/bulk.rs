//! Large and synchronous messages: an offer, then a stream.
//!
//! ```text
//! sender                                  receiver
//! open a stream, fill its front
//! Offer(total, token, route) ──────────>  waits until a receive matches, then attaches
//! go on filling    ~~~~~~~~ stream ~~~~>  drains
//!                                         (no stream in the offer: opens one)
//!                  <────────────── Clear(token, route)
//!                  <────────────── Begun(token)      if the send is synchronous
//! Withdrawn(token) ────────────────────>  the sender has given up: the offer is void, and its
//!                                         stream is the receiver's to dispose of. The head says
//!                                         whether that is because the group is revoked
//! Withdrawn(token, asks) ──────────────>  the sender would rather not: has a receive matched it?
//!                  <────────────── Void(token)       no, and now none will
//!                  <────────────── Begun(token)      yes, so it goes on
//! ```
//!
//! A stream begun by the sender needs no answer, so a receiver that waits already gets its first
//! bytes as soon as an eager message would come. A synchronous message of no bytes has no stream.

use regatta_memory::views::{Scratch, Views};
use regatta_wire::{Clear, Frame, Kind, Offer, Route, Token, Withdrawn};

use crate::error::{Error, Result};
use crate::matching::Waiting;
use crate::numbers;
use crate::point_to_point::PointToPoint;
use crate::point_to_point::body::Body;
use crate::point_to_point::inbox::Location;
use crate::point_to_point::outbox::Content;
use crate::request::{Handle, Mode, Stage, Status};
use crate::transport::{Fault, Peer, Sent, Transport};

mod incoming;
pub(super) mod outgoing;
pub(super) mod transfers;

use incoming::Incoming;
use outgoing::{OutStream, Outgoing};

/// The progress of a large message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// So much has gone.
    Sent(Sent),
    /// All bytes are in the stream, and its memory is not used any more; the offer has found no room yet.
    Filled,
    /// Its receiver is just reading it where it lies.
    Read,
}

/// Returns the head of a frame that is about a message, and not one.
fn bare(kind: Kind) -> Frame {
    Frame {
        kind,
        context: 0,
        tag: 0,
    }
}

/// Number of chunks of one stream before the next one's turn.
const CHUNKS_PER_TURN: usize = 8;

impl<T: Transport> PointToPoint<T> {
    /// Offers a message.
    pub(super) fn offer(
        &mut self,
        to: Peer,
        context: u32,
        tag: i32,
        message: Views,
        request: u32,
        mode: Mode,
    ) -> Result<()> {
        let token = self.bulk.next_token();
        // Nothing flows for a message of no bytes: its offer is all there is to it.
        let opened = match message.is_empty() {
            true => None,
            false => self.transport.open(to, &message)?,
        };
        let (stream, route) = match opened {
            Some((bulk, route)) => (OutStream::Open(bulk), route),
            None if message.is_empty() => (OutStream::Filled, Route::default()),
            None => (OutStream::Awaited, Route::default()),
        };
        let offer = Offer {
            total: message.len() as u64,
            token,
            route,
            synchronous: mode == Mode::Synchronous,
            streaming: matches!(stream, OutStream::Open(_)),
        };
        let frame = Frame {
            kind: Kind::Offer,
            context,
            tag,
        };
        let offered = match self.send_or_queue(to, frame, &offer.encode()) {
            Ok(sent) => sent,
            Err(error) => {
                if let Some(bulk) = stream.open() {
                    self.transport.reclaim(bulk);
                }
                return Err(error);
            }
        };
        self.bulk.outgoing.push(Outgoing {
            to,
            frame,
            token,
            request,
            message,
            stream,
            offered,
            begun: mode == Mode::Standard,
            asked: false,
        });
        let last = self.bulk.outgoing.len() - 1;
        match self.fill(last) {
            Ok(_) => self.settle_outgoing(last),
            Err(fault) => self.condemn(fault),
        }
        Ok(())
    }

    /// Receives an offered message. A failure becomes the outcome of the receive.
    pub(super) fn take_offer(
        &mut self,
        request: u32,
        from: Peer,
        tag: i32,
        offer: Offer,
    ) -> Result<()> {
        // Whose message it was is known from now on, also if it never comes whole.
        let receive = self.requests.get_mut(request);
        receive.stage = Stage::Moving;
        (receive.status.source, receive.status.tag) = (from as i32, tag);
        if offer.total == 0 {
            self.send_begun(from, &offer)?;
            self.requests.received(request, from, tag, 0);
            return Ok(());
        }
        match self.stream_for(from, &offer) {
            Ok(bulk) => self.take_stream(Some(request), from, tag, offer, bulk),
            Err(error) => {
                let error = self.judge(error);
                self.requests.complete(request, Some(error));
            }
        }
        Ok(())
    }

    /// Drains an offered message: into a receive's memory, or (for its stream's sake) nowhere.
    fn take_stream(
        &mut self,
        request: Option<u32>,
        from: Peer,
        tag: i32,
        offer: Offer,
        bulk: T::Bulk,
    ) {
        self.bulk.incoming.push(Incoming {
            from,
            request,
            bulk: Some(bulk),
            token: offer.token,
            total: offer.total,
            tag,
        });
        let last = self.bulk.incoming.len() - 1;
        if self.losses.has(from) {
            let error = self.loss(from);
            return self.end_incoming(last, error);
        }
        match self.drain(last) {
            Ok(_) => self.settle_incoming(last),
            Err(fault) => self.condemn(fault),
        }
    }

    /// Tells a sender that waits for it that its message is being received.
    fn send_begun(&mut self, from: Peer, offer: &Offer) -> Result<()> {
        if !offer.synchronous || self.losses.has(from) {
            return Ok(());
        }
        let body = Token(offer.token).encode();
        self.send_or_queue(from, bare(Kind::Begun), &body)?;
        Ok(())
    }

    /// Returns the stream through which an offered message will come; its sender is told what it must know.
    fn stream_for(&mut self, from: Peer, offer: &Offer) -> Result<T::Bulk> {
        if self.losses.has(from) {
            // Bytes that it put into a stream are there; but it will open no other one, nor get word of this.
            if !offer.streaming {
                return Err(self.loss(from));
            }
            return Ok(self.transport.attach(from, &offer.route)?);
        }
        let bulk = if offer.streaming {
            self.transport.attach(from, &offer.route)?
        } else {
            let (bulk, route) = self.transport.open_for(from)?;
            let clear = Clear {
                token: offer.token,
                route,
            };
            if let Err(error) = self.send_or_queue(from, bare(Kind::Clear), &clear.encode()) {
                self.transport.reclaim(bulk);
                return Err(error);
            }
            bulk
        };
        if let Err(error) = self.send_begun(from, offer) {
            self.transport.abandon(bulk);
            return Err(error);
        }
        Ok(bulk)
    }

    /// Fills the stream that the receiver has opened for an offered message.
    pub(super) fn clear_arrived(
        &mut self,
        from: Peer,
        clear: Clear,
    ) -> std::result::Result<(), Fault> {
        // A send that was withdrawn meanwhile does not touch the stream: when the receiver hears
        // of that, the stream is its own.
        if let Some(at) = self.bulk.offered(from, clear.token)
            && matches!(self.bulk.outgoing[at].stream, OutStream::Awaited)
        {
            let bulk = self.transport.attach_to_fill(from, &clear.route)?;
            self.bulk.outgoing[at].stream = OutStream::Open(bulk);
            self.fill(at)?;
            self.settle_outgoing(at);
        }
        Ok(())
    }

    /// Notes that the receiver of an offered message has begun.
    pub(super) fn begun_arrived(&mut self, from: Peer, Token(token): Token) {
        if let Some(at) = self.bulk.offered(from, token) {
            let out = &mut self.bulk.outgoing[at];
            out.begun = true;
            out.asked = false;
            self.requests.begun(out.request);
            self.settle_outgoing(at);
        }
    }

    /// Moves every stream along. Returns whether some bytes moved.
    pub(super) fn move_streams(&mut self) -> bool {
        let mut moved = false;
        let mut at = 0;
        while at < self.bulk.outgoing.len() {
            let before = self.bulk.outgoing.len();
            match self.fill(at) {
                Ok(some) => {
                    moved |= some;
                    self.settle_outgoing(at);
                }
                Err(fault) => self.condemn(fault),
            }
            // A settled stream's place is taken by the last one.
            at += (self.bulk.outgoing.len() == before) as usize;
        }
        at = 0;
        while at < self.bulk.incoming.len() {
            let before = self.bulk.incoming.len();
            match self.drain(at) {
                Ok(some) => {
                    moved |= some;
                    self.settle_incoming(at);
                }
                Err(fault) => self.condemn(fault),
            }
            at += (self.bulk.incoming.len() == before) as usize;
        }
        moved
    }

    fn fill(&mut self, at: usize) -> std::result::Result<bool, Fault> {
        self.bulk.outgoing[at].fill(&mut self.transport)
    }

    /// Completes a send when its message would arrive without this task. So the number of messages that wait in streams
    /// is bounded as well: as many offers as a ring has room for.
    fn settle_outgoing(&mut self, at: usize) {
        if self.bulk.outgoing[at].is_sent() {
            let out = self.bulk.outgoing.swap_remove(at);
            self.requests.complete(out.request, None);
        }
    }

    /// Notes that an offer has left the outbox: it is with the receiver, or there was no memory for that.
    pub(super) fn offer_left(&mut self, to: Peer, offer: Offer, error: Option<Error>) {
        let Some(at) = self.bulk.offered(to, offer.token) else {
            return;
        };
        if let Some(error) = error {
            let out = self.bulk.outgoing.swap_remove(at);
            let request = out.request;
            out.reclaim(&mut self.transport, &offer);
            return self.requests.complete(request, Some(error));
        }
        self.bulk.outgoing[at].offered = true;
        self.settle_outgoing(at);
    }

    fn drain(&mut self, at: usize) -> std::result::Result<bool, Fault> {
        let stream = &mut self.bulk.incoming[at];
        let nowhere = Views::none();
        let into = match stream.request {
            Some(request) => &self.requests.get(request).views,
            None => &nowhere,
        };
        stream.drain(&mut self.transport, into)
    }

    fn settle_incoming(&mut self, at: usize) {
        if self.bulk.incoming[at].bulk.is_none() {
            let stream = self.bulk.incoming.swap_remove(at);
            if let Some(request) = stream.request {
                let (from, tag) = (stream.from, stream.tag);
                self.requests
                    .received(request, from, tag, stream.total as usize);
            }
        }
    }

    /// Returns how a large message is getting on; `None` if the request is no send of one.
    pub fn going(&self, handle: Handle) -> Option<Going> {
        let id = self.find(handle).ok()?;
        let out = &self.bulk.outgoing[self.bulk.sent_by(id)?];
        Some(out.going(&self.transport))
    }

    /// Sends the rest of a large message from `copy`, where the whole of it has been copied: the memory it came from is its owner's again.
    /// Returns false if that cannot be now: the receiver is just reading it there, or the request is no send of a large message.
    pub fn send_from(&mut self, handle: Handle, copy: Views) -> Result<bool> {
        let id = self.find(handle)?;
        let Some(at) = self.bulk.sent_by(id) else {
            return Ok(false);
        };
        let moved = self.bulk.outgoing[at].move_to(&mut self.transport, copy);
        moved.map_err(|fault| self.judge(fault.into()))
    }

    /// Returns to whom a request that is not complete sends, if it does.
    pub fn destination(&self, handle: Handle) -> Option<Peer> {
        let id = self.find(handle).ok()?;
        if !self.requests.get(id).stage.is_moving() {
            return None;
        }
        if let Some(at) = self.bulk.sent_by(id) {
            return Some(self.bulk.outgoing[at].to);
        }
        if self.bulk.incoming.iter().any(|one| one.request == Some(id)) {
            return None;
        }
        let sends =
            |content: &Content| matches!(content, Content::Message(_, sender) if *sender == id);
        let queued = self.outbox.destinations(|one| sends(&one.content)).next();
        let own = |body: &Body| matches!(body, Body::Own(_, sender) if *sender == id);
        let is_own = || self.inbox.all().any(|(_, message)| own(&message.body));
        queued.or_else(|| is_own().then_some(self.me))
    }

    /// Gives up the stream of a request, which becomes complete as cancelled.
    pub(super) fn withdraw_bulk(&mut self, request: u32) {
        if let Some(at) = self.bulk.sent_by(request) {
            let out = self.bulk.outgoing.swap_remove(at);
            self.take_back_offer(out, bare(Kind::Withdrawn));
            self.requests.complete(request, Some(Error::Cancelled));
        } else if let Some(stream) = self.bulk.received_by(request) {
            stream.request = None;
            self.requests.complete(request, Some(Error::Cancelled));
        }
    }

    /// Drops the bytes that arrive for this request: nobody wants them any more.
    pub(super) fn let_pass(&mut self, request: u32) {
        if let Some(stream) = self.bulk.received_by(request) {
            stream.request = None;
        }
    }

    /// Ends large messages of a group that is revoked.
    pub(super) fn end_bulk(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        let ended = |out: &Outgoing<T>| ends(out.frame.context, out.frame.tag);
        while let Some(at) = self.bulk.outgoing.iter().position(ended) {
            let out = self.bulk.outgoing.swap_remove(at);
            let request = out.request;
            // The receiver may hear of the revocation from somebody else, later than of this.
            let frame = Frame {
                kind: Kind::Withdrawn,
                context: out.frame.context | 1,
                tag: numbers::REVOKED_TAG,
            };
            self.take_back_offer(out, frame);
            self.requests.complete(request, Some(Error::Revoked));
        }
        for at in 0..self.bulk.incoming.len() {
            let stream = &mut self.bulk.incoming[at];
            let Some(request) = stream.request else {
                continue;
            };
            let context = self.requests.get(request).status.context;
            // One that is taken in ahead of its receive is nobody's yet.
            let is_ahead =
                |body: &Body| matches!(body, Body::Arriving(arriving, _) if *arriving == request);
            let ahead = self.inbox.all().any(|(_, it)| is_ahead(&it.body));
            if ends(context, stream.tag) && !ahead {
                stream.request = None;
                self.requests.complete(request, Some(Error::Revoked));
            }
        }
    }

    /// Takes an offer back: one that has not gone yet does not go; otherwise its receiver is told not to wait, by this frame.
    fn take_back_offer(&mut self, out: Outgoing<T>, frame: Frame) {
        let Outgoing { to, token, .. } = out;
        let whole = out.is_filled();
        if let Some(offer) = self.outbox.remove_offer(to, token) {
            return out.reclaim(&mut self.transport, &offer);
        }
        self.drop_stream(out.stream.open());
        let body = Withdrawn {
            token,
            whole,
            asks: false,
        };
        let body = body.encode();
        // A ring that carried the offer and is damaged now will be found out by others.
        let _ = self.send_or_queue(to, frame, &body);
    }

    /// Asks for an offer back, so that its message surely is received or surely is not: the request
    /// becomes complete, as cancelled in the second case. Returns false if there is nothing to ask for.
    pub(super) fn ask_back(&mut self, request: u32) -> Result<bool> {
        let Some(at) = self.bulk.sent_by(request) else {
            return Ok(false);
        };
        let (to, token) = (self.bulk.outgoing[at].to, self.bulk.outgoing[at].token);
        if self.outbox.has_offer(to, token) {
            self.withdraw_bulk(request);
            return Ok(true);
        }
        if !std::mem::replace(&mut self.bulk.outgoing[at].asked, true) {
            let body = Withdrawn {
                token,
                whole: self.bulk.outgoing[at].is_filled(),
                asks: true,
            };
            self.send_or_queue(to, bare(Kind::Withdrawn), &body.encode())?;
        }
        Ok(true)
    }

    /// Ends a send whose receiver has given the offer back; its stream, if not full, is ours again.
    pub(super) fn void_arrived(&mut self, from: Peer, Token(token): Token) {
        let asked = |out: &Outgoing<T>| out.to == from && out.token == token && out.asked;
        if let Some(at) = self.bulk.outgoing.iter().position(asked) {
            let out = self.bulk.outgoing.swap_remove(at);
            if let Some(bulk) = out.stream.open() {
                self.transport.reclaim(bulk);
            }
            self.requests.complete(out.request, Some(Error::Cancelled));
        }
    }

    /// Takes an offer back for its sender: nothing may wait for it any more. If the sender only asks,
    /// it hears whether a receive has been faster.
    pub(super) fn offer_withdrawn(
        &mut self,
        from: Peer,
        frame: Frame,
        withdrawn: Withdrawn,
    ) -> std::result::Result<(), Fault> {
        let Withdrawn { token, whole, asks } = withdrawn;
        let why = match frame.tag {
            // All else that ends with the group ends when this word is taken.
            numbers::REVOKED_TAG => {
                self.keep_word(from, frame, &[]);
                Error::Revoked
            }
            _ => Error::Cancelled,
        };
        if asks && self.outbox.is_flooded(from) {
            return Err(Fault::Corrupt {
                peer: from,
                what: "it asks again and again, and reads no answer",
            });
        }
        let is_it = |message: &Waiting<Body>| {
            let offered = matches!(&message.body, Body::Offer(offer) if offer.token == token);
            offered && message.source == from
        };
        let found = self.inbox.waiting().iter().find(|(_, it)| is_it(it));
        let waiting = found.map(|(id, _)| id);
        if asks {
            let answer = match waiting {
                Some(_) => Kind::Void,
                None => Kind::Begun,
            };
            self.inbox.end_let_in(from);
            match self.send_ahead(from, bare(answer), &Token(token).encode()) {
                Ok(()) => {}
                Err(Error::Corrupt { peer, what }) => return Err(Fault::Corrupt { peer, what }),
                // It can be asked again.
                Err(_) => return Ok(()),
            }
        }
        if let Some(id) = waiting {
            let message = self.inbox.remove(id);
            return self.void_offer(message.map(|message| message.body), from, withdrawn);
        }
        if asks {
            return Ok(());
        }
        if let Some(body) = self.inbox.withdraw_matched(is_it, &why) {
            return self.void_offer(Some(body), from, withdrawn);
        }
        let begun = |one: &Incoming<T>| one.from == from && one.token == token;
        if let Some(at) = self.bulk.incoming.iter().position(begun)
            && !whole
        {
            let stream = self.bulk.incoming.swap_remove(at);
            if let Some(bulk) = stream.bulk {
                self.transport.reclaim(bulk);
            }
            if let Some(request) = stream.request {
                self.receive_withdrawn(request, from, stream.tag, why);
            }
        }
        Ok(())
    }

    /// Disposes of the stream of an offer that was taken back while it waited.
    fn void_offer(
        &mut self,
        body: Option<Body>,
        from: Peer,
        withdrawn: Withdrawn,
    ) -> std::result::Result<(), Fault> {
        let Some(Body::Offer(offer)) = body else {
            return Ok(());
        };
        if !offer.streaming || offer.total == 0 {
            return Ok(());
        }
        if withdrawn.asks && !withdrawn.whole {
            return self.transport.decline(from, &offer.route);
        }
        // A stream that has been filled is the receiver's to empty, any other to dispose of.
        if withdrawn.whole {
            self.drop_offer(from, offer);
        } else if let Ok(bulk) = self.transport.attach(from, &offer.route) {
            self.transport.reclaim(bulk);
        }
        Ok(())
    }

    /// Empties the stream of an offer that no receive will take; it is full, for its send is complete or taken back.
    pub(super) fn drop_offer(&mut self, from: Peer, offer: Offer) {
        if offer.streaming
            && offer.total > 0
            && let Ok(bulk) = self.transport.attach(from, &offer.route)
        {
            self.take_stream(None, from, 0, offer, bulk);
        }
    }

    /// Ends a receive whose message will not come: its sender has taken it back.
    fn receive_withdrawn(&mut self, request: u32, from: Peer, tag: i32, why: Error) {
        let is_it = |message: &Waiting<Body>| matches!(message.body, Body::Arriving(arriving, _) if arriving == request);
        if self.inbox.withdraw(is_it, &why).is_some() {
            self.requests.complete(request, None);
            self.requests.release(request);
            return;
        }
        let status = &mut self.requests.get_mut(request).status;
        (status.source, status.tag) = (from as i32, tag);
        self.requests.complete(request, Some(why));
    }

    /// Gives up all large messages, as this task leaves: whoever is still receiving one must not go on reading its
    /// memory, which its owner may now use for something else.
    pub fn leave(&mut self) {
        for out in std::mem::take(&mut self.bulk.outgoing) {
            self.drop_stream(out.stream.open());
        }
    }

    fn drop_stream(&mut self, bulk: Option<T::Bulk>) {
        if let Some(bulk) = bulk {
            self.transport.abandon(bulk);
        }
    }

    /// Ends the streams of a peer that is gone. Messages that were put in whole can still be drained.
    pub(super) fn end_streams(&mut self, peer: Peer) {
        let error = self.loss(peer);
        let mut at = 0;
        while at < self.bulk.outgoing.len() {
            if self.bulk.outgoing[at].to == peer {
                self.end_outgoing(at, error.clone());
            } else {
                at += 1;
            }
        }
        at = 0;
        while at < self.bulk.incoming.len() {
            if self.bulk.incoming[at].from == peer {
                self.end_incoming(at, error.clone());
            } else {
                at += 1;
            }
        }
    }

    /// Ends a send whose receiver is gone; that may have taken all before, by itself, while this task was away.
    fn end_outgoing(&mut self, at: usize, error: Error) {
        if self.losses.crime(self.bulk.outgoing[at].to).is_none() {
            while let Ok(true) = self.fill(at) {}
        }
        let out = self.bulk.outgoing.swap_remove(at);
        let taken = out.is_sent();
        self.drop_stream(out.stream.open());
        match taken {
            true => self.requests.complete(out.request, None),
            false => self.end_send(out.request, out.frame.context, out.asked, error),
        }
    }

    /// Ends a receive whose sender is gone: whatever that managed to put in is there, and no more will come.
    fn end_incoming(&mut self, at: usize, error: Error) {
        if self.losses.crime(self.bulk.incoming[at].from).is_none() {
            while let Ok(true) = self.drain(at) {}
        }
        if self.bulk.incoming[at].bulk.is_none() {
            return self.settle_incoming(at);
        }
        let stream = self.bulk.incoming.swap_remove(at);
        self.drop_stream(stream.bulk);
        if let Some(request) = stream.request {
            self.requests.complete(request, Some(error));
        }
    }

    /// Takes in large messages offered to this task, which is blocked in a send, so that their
    /// senders are not blocked by it in turn. As far as the buffer has room.
    pub fn take_in_offers(&mut self) -> bool {
        let messages = self.inbox.all();
        let offers = messages.filter(|(_, message)| message.body.offer().is_some());
        let offers: Vec<Location> = offers.map(|(at, _)| at).collect();
        let mut taken = false;
        for at in offers {
            taken |= self.take_in(at).is_some();
        }
        taken
    }

    fn take_in(&mut self, at: Location) -> Option<()> {
        let message = self.inbox.at(at)?;
        let (source, tag, context) = (message.source, message.tag, message.context);
        let offer = message.body.offer()?;
        let total = offer.total as usize;
        // A synchronous send waits for its receive; holding its bytes would not help it.
        if offer.synchronous || !self.inbox.has_room_for(total) {
            return None;
        }
        // Its sender takes it back.
        self.contexts.check(context, tag).ok()?;
        let status = Status {
            context,
            ..Status::EMPTY
        };
        // An obstacle now need not be one when the receive is made: the offer stays.
        let held = Scratch::new(total).ok()?.part(0, total);
        let bulk = self.stream_for(source, &offer).ok()?;
        let request = self.requests.add(Stage::Moving, status, held.clone());
        self.inbox.replace(at, Body::Arriving(request, held));
        self.take_stream(Some(request), source, tag, offer, bulk);
        Some(())
    }

    /// Gives a receive the message that is being taken in for it, or has been.
    pub(super) fn receive_arriving(&mut self, request: u32, arriving: u32, held: &Views) {
        let source = self.requests.get(request).status.source as Peer;
        let tag = self.requests.get(request).status.tag;
        held.copy_to(&self.requests.get(request).views);
        if self.requests.is_done(arriving) {
            match self.requests.release(arriving).1 {
                None => self.requests.received(request, source, tag, held.len()),
                error => self.requests.complete(request, error),
            }
            return;
        }
        // The rest of the message goes to the receive's own memory, behind the part that has been copied.
        if let Some(stream) = self.bulk.received_by(arriving) {
            stream.request = Some(request);
            self.requests.complete(arriving, None);
            self.requests.release(arriving);
        }
    }
}
