//! Large and synchronous messages: an offer, then a stream.
//!
//! ```text
//! sender                                  receiver
//! open a stream, put data into it
//! Offer(total, token, route) ──────────>  waits until a receive matches, then attaches
//! put more data    ~~~~~~~~ stream ~~~~>  drains
//!                                         (no stream in the offer: opens one)
//!                  <────────────── Clear(token, route)
//!                  <────────────── Begun(token)      if the send is synchronous
//! Withdrawn(token) ────────────────────>  the sender has given up: the offer is void, and the receiver
//!                                         disposes of its stream. The header says whether the reason
//!                                         is a revocation of the group
//! Withdrawn(token, asks) ──────────────>  the sender wants to withdraw: has a receive matched the offer?
//!                  <────────────── Void(token)       no, and none will
//!                  <────────────── Begun(token)      yes, so the transfer continues
//! ```
//!
//! A stream opened by the sender needs no answer, so a receiver that is already waiting gets the first bytes as soon as it would get an eager
//! message. A synchronous message of no bytes has no stream.

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

/// The progress of a large message that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// The amount that was sent.
    Sent(Sent),
    /// All data is in the stream and the message's memory is not used any more, but there was no space for the offer yet.
    Filled,
    /// The receiver is reading the message in place.
    Read,
}

/// Returns the header of a frame that refers to a message but is not a message itself.
fn bare(kind: Kind) -> Frame {
    Frame {
        kind,
        context: 0,
        tag: 0,
    }
}

/// Number of chunks of one stream before the next stream's turn.
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
        // A message of no bytes needs no stream: its offer is all that is sent.
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

    /// Receives an offered message. A failure becomes the result of the receive.
    pub(super) fn take_offer(
        &mut self,
        request: u32,
        from: Peer,
        tag: i32,
        offer: Offer,
    ) -> Result<()> {
        // Record the sender now, in case the message never arrives completely.
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

    /// Drains the stream of an offered message into a receive's memory. If there is no request, the data is dropped.
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

    /// Notifies the sender that its message is being received, if the send is synchronous.
    fn send_begun(&mut self, from: Peer, offer: &Offer) -> Result<()> {
        if !offer.synchronous || self.losses.has(from) {
            return Ok(());
        }
        let body = Token(offer.token).encode();
        self.send_or_queue(from, bare(Kind::Begun), &body)?;
        Ok(())
    }

    /// Returns the stream of an offered message, and sends the sender the answers that it needs.
    fn stream_for(&mut self, from: Peer, offer: &Offer) -> Result<T::Bulk> {
        if self.losses.has(from) {
            // Bytes that the sender put into a stream are available; but it will open no other stream and receive no answer.
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

    /// Puts data into the stream that the receiver has opened for an offered message.
    pub(super) fn clear_arrived(
        &mut self,
        from: Peer,
        clear: Clear,
    ) -> std::result::Result<(), Fault> {
        // If the send was withdrawn meanwhile, do not touch the stream: the receiver owns it once it receives the withdrawal.
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

    /// Records that the receiver of an offered message has begun to receive.
    pub(super) fn begun_arrived(&mut self, from: Peer, Token(token): Token) {
        if let Some(at) = self.bulk.offered(from, token) {
            let out = &mut self.bulk.outgoing[at];
            out.begun = true;
            out.asked = false;
            self.requests.begun(out.request);
            self.settle_outgoing(at);
        }
    }

    /// Makes progress in every stream. Returns whether some bytes were transferred.
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
            // A completed stream is replaced by the last one in the list.
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

    /// Completes a send once its message would arrive without this task. The number of messages in streams is limited, too, by the number of offers
    /// for which a ring has space.
    fn settle_outgoing(&mut self, at: usize) {
        if self.bulk.outgoing[at].is_sent() {
            let out = self.bulk.outgoing.swap_remove(at);
            self.requests.complete(out.request, None);
        }
    }

    /// Records that an offer has left the outbox: it was sent, or it failed for lack of memory.
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

    /// Returns the progress of a large message, or `None` if the request does not send one.
    pub fn going(&self, handle: Handle) -> Option<Going> {
        let id = self.find(handle).ok()?;
        let out = &self.bulk.outgoing[self.bulk.sent_by(id)?];
        Some(out.going(&self.transport))
    }

    /// Sends the rest of a large message from `copy`, into which the whole message was copied. The original memory then belongs to the caller again.
    /// Returns false if that is not possible now because the receiver is reading the original, or if the request does not send a large message.
    pub fn send_from(&mut self, handle: Handle, copy: Views) -> Result<bool> {
        let id = self.find(handle)?;
        let Some(at) = self.bulk.sent_by(id) else {
            return Ok(false);
        };
        let moved = self.bulk.outgoing[at].move_to(&mut self.transport, copy);
        moved.map_err(|fault| self.judge(fault.into()))
    }

    /// Returns the destination of a request that is an incomplete send.
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

    /// Gives up the stream of a request, which completes as cancelled.
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

    /// Drops the data that arrives for this request, since it is not needed any more.
    pub(super) fn let_pass(&mut self, request: u32) {
        if let Some(stream) = self.bulk.received_by(request) {
            stream.request = None;
        }
    }

    /// Ends large messages in revoked groups.
    pub(super) fn end_bulk(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        let ended = |out: &Outgoing<T>| ends(out.frame.context, out.frame.tag);
        while let Some(at) = self.bulk.outgoing.iter().position(ended) {
            let out = self.bulk.outgoing.swap_remove(at);
            let request = out.request;
            // The receiver may learn of the revocation from another member, after this message.
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
            // A message that is being received ahead of its receive has no receive yet.
            let is_ahead =
                |body: &Body| matches!(body, Body::Arriving(arriving, _) if *arriving == request);
            let ahead = self.inbox.all().any(|(_, it)| is_ahead(&it.body));
            if ends(context, stream.tag) && !ahead {
                stream.request = None;
                self.requests.complete(request, Some(Error::Revoked));
            }
        }
    }

    /// Withdraws an offer: if it was not sent yet, it is not sent; otherwise this frame tells its receiver not to wait.
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
        // Ignore the error: if the ring is damaged, other operations will detect it.
        let _ = self.send_or_queue(to, frame, &body);
    }

    /// Asks the receiver for the offer back, so that its message is definitely received or definitely not. The request then completes, as cancelled
    /// in the second case. Returns false if there is nothing to ask for.
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

    /// Ends a send whose receiver has given the offer back. If its stream is not full, this task owns it again.
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

    /// Withdraws an offer on behalf of its sender: no receive may take it any more. If the sender only asks, it gets an answer that says whether a
    /// receive has already taken it.
    pub(super) fn offer_withdrawn(
        &mut self,
        from: Peer,
        frame: Frame,
        withdrawn: Withdrawn,
    ) -> std::result::Result<(), Fault> {
        let Withdrawn { token, whole, asks } = withdrawn;
        let why = match frame.tag {
            // All other operations of the group end when this message is handled.
            numbers::REVOKED_TAG => {
                self.keep_word(from, frame, &[]);
                Error::Revoked
            }
            _ => Error::Cancelled,
        };
        if asks && self.outbox.is_flooded(from) {
            return Err(Fault::Corrupt {
                peer: from,
                what: "it repeats its request and does not read the answers",
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
                // The sender can ask again.
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

    /// Disposes of the stream of an offer that was withdrawn while it waited.
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
        // A filled stream must be emptied by the receiver; any other is disposed of.
        if withdrawn.whole {
            self.drop_offer(from, offer);
        } else if let Ok(bulk) = self.transport.attach(from, &offer.route) {
            self.transport.reclaim(bulk);
        }
        Ok(())
    }

    /// Empties the stream of an offer that no receive will take. The stream is full, since the send is complete or withdrawn.
    pub(super) fn drop_offer(&mut self, from: Peer, offer: Offer) {
        if offer.streaming
            && offer.total > 0
            && let Ok(bulk) = self.transport.attach(from, &offer.route)
        {
            self.take_stream(None, from, 0, offer, bulk);
        }
    }

    /// Ends a receive whose message will not arrive because its sender has withdrawn it.
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

    /// Gives up all large messages because this task leaves. A peer that is still receiving one must not go on reading its memory, which its owner
    /// may now use for something else.
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

    /// Ends the streams of a peer that is gone. Messages that were put into a stream completely can still be drained.
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

    /// Ends a send whose receiver is gone. The receiver may have taken all data before, while this task did not look.
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

    /// Ends a receive whose sender is gone. The data that the sender has put into the stream is available, but no more will arrive.
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

    /// Receives large messages offered to this task, which is blocked in a send, so that it does not block their senders in turn. Only as far as the
    /// buffer has space. Returns whether there were any.
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
        // A synchronous send waits for its receive, so holding its data would not help.
        if offer.synchronous || !self.inbox.has_room_for(total) {
            return None;
        }
        // If the group is revoked, the sender withdraws the message.
        self.contexts.check(context, tag).ok()?;
        let status = Status {
            context,
            ..Status::EMPTY
        };
        // What fails now may succeed when the receive is posted, so the offer stays.
        let held = Scratch::new(total).ok()?.part(0, total);
        let bulk = self.stream_for(source, &offer).ok()?;
        let request = self.requests.add(Stage::Moving, status, held.clone());
        self.inbox.replace(at, Body::Arriving(request, held));
        self.take_stream(Some(request), source, tag, offer, bulk);
        Some(())
    }

    /// Moves a message that is being received ahead, or was, to its receive.
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
        // The rest of the message goes directly to the receive's memory, after the part that was copied.
        if let Some(stream) = self.bulk.received_by(arriving) {
            stream.request = Some(request);
            self.requests.complete(arriving, None);
            self.requests.release(arriving);
        }
    }
}
