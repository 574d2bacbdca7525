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

use crate::arrival::{Body, charge};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::matched::Message;
use crate::matching::Waiting;
use crate::queue::{Content, Queue, Queued};
use crate::request::{Handle, Stage, Status};
use crate::revoke;
use crate::send::Mode;
use crate::transport::{Fault, Peer, Sent, Transport};

mod incoming;
mod outgoing;

pub(crate) use incoming::Incoming;
pub(crate) use outgoing::Outgoing;

/// How a large message is getting on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// So much has gone.
    Sent(Sent),
    /// All bytes are in the stream, and its memory is not used any more; the offer has found no room yet.
    Filled,
    /// Its receiver is just reading it where it lies.
    Read,
}

/// The head of a frame that is about a message, and not one.
fn bare(kind: Kind) -> Frame {
    Frame {
        kind,
        context: 0,
        tag: 0,
    }
}

/// Where a message is that no receive has taken yet.
#[derive(Clone, Copy)]
enum Lying {
    Waiting(u32),
    Matched(Message),
}

/// So many chunks of one stream before the next one's turn.
const TURN: usize = 8;

impl<T: Transport> Engine<T> {
    /// Offer a message.
    pub(crate) fn offer(
        &mut self,
        to: Peer,
        context: u32,
        tag: i32,
        message: Views,
        request: u32,
        mode: Mode,
    ) -> Result<()> {
        let token = self.next_token;
        self.next_token += 1;
        // Nothing flows for a message of no bytes: its offer is all there is to it.
        let filled = message.is_empty();
        let stream = match filled {
            true => None,
            false => self.transport.open(to, &message)?,
        };
        let (bulk, route) = stream.map_or((None, Route::default()), |(bulk, route)| {
            (Some(bulk), route)
        });
        let offer = Offer {
            total: message.len() as u64,
            token,
            route,
            synchronous: mode == Mode::Synchronous,
            streaming: bulk.is_some(),
        };
        let frame = Frame {
            kind: Kind::Offer,
            context,
            tag,
        };
        let offered = match self.send_or_queue(to, frame, &offer.encode()) {
            Ok(sent) => sent,
            Err(error) => {
                if let Some(bulk) = bulk {
                    self.transport.reclaim(bulk);
                }
                return Err(error);
            }
        };
        self.outgoing.push(Outgoing {
            to,
            frame,
            token,
            request,
            message,
            bulk,
            filled,
            offered,
            begun: mode == Mode::Standard,
            asked: false,
        });
        let last = self.outgoing.len() - 1;
        match self.fill(last) {
            Ok(_) => self.settle_outgoing(last),
            Err(fault) => self.condemn(fault),
        }
        Ok(())
    }

    /// A receive has matched an offer. A failure becomes the outcome of the receive.
    pub(crate) fn take_offer(
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

    /// Drain an offered message: into a receive's memory, or (for its stream's sake) nowhere.
    fn take_stream(
        &mut self,
        request: Option<u32>,
        from: Peer,
        tag: i32,
        offer: Offer,
        bulk: T::Bulk,
    ) {
        self.incoming.push(Incoming {
            from,
            request,
            bulk: Some(bulk),
            token: offer.token,
            total: offer.total,
            tag,
        });
        let last = self.incoming.len() - 1;
        if self.gone.contains(&from) {
            let error = self.loss(from);
            return self.end_incoming(last, error);
        }
        match self.drain(last) {
            Ok(_) => self.settle_incoming(last),
            Err(fault) => self.condemn(fault),
        }
    }

    /// Tell a sender that waits for it that its message is being received.
    fn send_begun(&mut self, from: Peer, offer: &Offer) -> Result<()> {
        if !offer.synchronous || self.gone.contains(&from) {
            return Ok(());
        }
        let body = Token(offer.token).encode();
        self.send_or_queue(from, bare(Kind::Begun), &body)?;
        Ok(())
    }

    /// The stream an offered message will come through; its sender is told what it must know.
    fn stream_for(&mut self, from: Peer, offer: &Offer) -> Result<T::Bulk> {
        if self.gone.contains(&from) {
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

    pub(crate) fn clear_arrived(
        &mut self,
        from: Peer,
        clear: Clear,
    ) -> std::result::Result<(), Fault> {
        let found = self
            .outgoing
            .iter()
            .position(|out| out.to == from && out.token == clear.token && out.bulk.is_none());
        // A send that was withdrawn meanwhile does not touch the stream: when the receiver hears
        // of that, the stream is its own.
        if let Some(at) = found
            && !self.outgoing[at].filled
        {
            self.outgoing[at].bulk = Some(self.transport.attach_to_fill(from, &clear.route)?);
            self.fill(at)?;
            self.settle_outgoing(at);
        }
        Ok(())
    }

    pub(crate) fn begun_arrived(&mut self, from: Peer, Token(token): Token) {
        let found = self
            .outgoing
            .iter()
            .position(|out| out.to == from && out.token == token);
        if let Some(at) = found {
            self.outgoing[at].begun = true;
            self.outgoing[at].asked = false;
            self.requests.begun(self.outgoing[at].request);
            self.settle_outgoing(at);
        }
    }

    /// Move every stream along.
    pub(crate) fn streams(&mut self) -> bool {
        // A revocation that has been heard of ends messages which would be complete now.
        let mut moved = self.stirred && self.run_stirred();
        let mut at = 0;
        while at < self.outgoing.len() {
            let before = self.outgoing.len();
            match self.fill(at) {
                Ok(some) => {
                    moved |= some;
                    self.settle_outgoing(at);
                }
                Err(fault) => self.condemn(fault),
            }
            // A settled stream's place is taken by the last one.
            at += (self.outgoing.len() == before) as usize;
        }
        at = 0;
        while at < self.incoming.len() {
            let before = self.incoming.len();
            match self.drain(at) {
                Ok(some) => {
                    moved |= some;
                    self.settle_incoming(at);
                }
                Err(fault) => self.condemn(fault),
            }
            at += (self.incoming.len() == before) as usize;
        }
        moved
    }

    fn fill(&mut self, at: usize) -> std::result::Result<bool, Fault> {
        self.outgoing[at].fill(&mut self.transport)
    }

    /// A send is complete when its message would arrive without this task. So the number of messages that wait in streams
    /// is bounded as well: as many offers as a ring has room for.
    fn settle_outgoing(&mut self, at: usize) {
        if self.outgoing[at].is_sent() {
            let out = self.outgoing.swap_remove(at);
            self.requests.complete(out.request, None);
        }
    }

    /// An offer has left the queue: it is with the receiver, or there was no memory for that.
    pub(crate) fn offer_left(&mut self, to: Peer, offer: Offer, error: Option<Error>) {
        let found = self
            .outgoing
            .iter()
            .position(|out| out.to == to && out.token == offer.token);
        let Some(at) = found else { return };
        if let Some(error) = error {
            let out = self.outgoing.swap_remove(at);
            let request = out.request;
            out.reclaim(&mut self.transport, &offer);
            return self.requests.complete(request, Some(error));
        }
        self.outgoing[at].offered = true;
        self.settle_outgoing(at);
    }

    fn drain(&mut self, at: usize) -> std::result::Result<bool, Fault> {
        let stream = &mut self.incoming[at];
        let nowhere = Views::none();
        let into = match stream.request {
            Some(request) => &self.requests.get(request).views,
            None => &nowhere,
        };
        stream.drain(&mut self.transport, into)
    }

    fn settle_incoming(&mut self, at: usize) {
        if self.incoming[at].bulk.is_none() {
            let stream = self.incoming.swap_remove(at);
            if let Some(request) = stream.request {
                let (from, tag) = (stream.from, stream.tag);
                self.requests
                    .received(request, from, tag, stream.total as usize);
            }
        }
    }

    /// How a large message is getting on; `None`: the request is not such a send.
    pub fn going(&self, handle: Handle) -> Option<Going> {
        let id = self.find(handle).ok()?;
        let out = self.outgoing.iter().find(|out| out.request == id)?;
        Some(out.going(&self.transport))
    }

    /// A large message has been copied to `copy`, from where its rest is sent: the memory it came from is its owner's again.
    /// False: not now, for the receiver is just reading it there, or the request is no send of a large message.
    pub fn send_from(&mut self, handle: Handle, copy: Views) -> Result<bool> {
        let id = self.find(handle)?;
        let Some(at) = self.outgoing.iter().position(|out| out.request == id) else {
            return Ok(false);
        };
        let moved = self.outgoing[at].move_to(&mut self.transport, copy);
        moved.map_err(|fault| self.judge(fault.into()))
    }

    /// To whom a request that is not complete sends, if it does.
    pub fn destination(&self, handle: Handle) -> Option<Peer> {
        let id = self.find(handle).ok()?;
        if !self.requests.get(id).stage.is_moving() {
            return None;
        }
        let out = self.outgoing.iter().find(|out| out.request == id);
        if let Some(out) = out {
            return Some(out.to);
        }
        if self.incoming.iter().any(|one| one.request == Some(id)) {
            return None;
        }
        let queued =
            |content: &Content| matches!(content, Content::Message(_, sender) if *sender == id);
        let mut queues = self.queued.iter();
        let found = queues.find(|(_, queue)| queue.iter().any(|one| queued(&one.content)));
        if let Some((&peer, _)) = found {
            return Some(peer);
        }
        let own =
            |message: &Waiting<Body>| matches!(message.body, Body::Own(_, sender) if sender == id);
        let lies_here = self.unexpected.iter().any(|(_, message)| own(message))
            || self.matched.iter().any(|(_, message)| own(message));
        lies_here.then_some(self.me)
    }

    /// Forget the streams of a request.
    pub(crate) fn withdraw_bulk(&mut self, request: u32) {
        if let Some(at) = self.outgoing.iter().position(|out| out.request == request) {
            let out = self.outgoing.swap_remove(at);
            self.take_back_offer(out, bare(Kind::Withdrawn));
            self.requests.complete(request, Some(Error::Cancelled));
        } else if let Some(stream) = self
            .incoming
            .iter_mut()
            .find(|one| one.request == Some(request))
        {
            stream.request = None;
            self.requests.complete(request, Some(Error::Cancelled));
        }
    }

    /// Bytes that arrive for this request are wanted by nobody any more.
    pub(crate) fn let_pass(&mut self, request: u32) {
        let mut streams = self.incoming.iter_mut();
        if let Some(stream) = streams.find(|one| one.request == Some(request)) {
            stream.request = None;
        }
    }

    /// The group of these messages is revoked.
    pub(crate) fn end_bulk(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        let ended = |out: &Outgoing<T>| ends(out.frame.context, out.frame.tag);
        while let Some(at) = self.outgoing.iter().position(ended) {
            let out = self.outgoing.swap_remove(at);
            let request = out.request;
            // The receiver may hear of the revocation from somebody else, later than of this.
            let frame = Frame {
                kind: Kind::Withdrawn,
                context: out.frame.context | 1,
                tag: revoke::TAG,
            };
            self.take_back_offer(out, frame);
            self.requests.complete(request, Some(Error::Revoked));
        }
        for at in 0..self.incoming.len() {
            let stream = &mut self.incoming[at];
            let Some(request) = stream.request else {
                continue;
            };
            let context = self.requests.get(request).status.context;
            // One that is taken in ahead of its receive is nobody's yet.
            let is_ahead = |message: &Waiting<Body>| matches!(message.body, Body::Arriving(arriving, _) if arriving == request);
            let mut waiting = self.unexpected.iter().map(|(_, message)| message);
            let mut matched = self.matched.iter().map(|(_, message)| message);
            let ahead = waiting.any(is_ahead) || matched.any(is_ahead);
            if ends(context, stream.tag) && !ahead {
                stream.request = None;
                self.requests.complete(request, Some(Error::Revoked));
            }
        }
    }

    /// An offer that has not gone yet does not go; otherwise its receiver is told not to wait, by this frame.
    fn take_back_offer(&mut self, out: Outgoing<T>, frame: Frame) {
        let Outgoing { to, token, .. } = out;
        let whole = out.filled;
        if let Some(offer) = self.unqueue_offer(to, token) {
            return out.reclaim(&mut self.transport, &offer);
        }
        self.drop_stream(out.bulk);
        let body = Withdrawn {
            token,
            whole,
            asks: false,
        };
        let body = body.encode();
        // A ring that carried the offer and is damaged now will be found out by others.
        let _ = self.send_or_queue(to, frame, &body);
    }

    /// Take an offer out of the queue, if it is still there.
    fn unqueue_offer(&mut self, to: Peer, token: u64) -> Option<Offer> {
        let queue = self.queued.get_mut(&to)?;
        let offered = |queued: &Queued| queued.offer().filter(|offer| offer.token == token);
        let (at, offer) = (0..)
            .zip(queue.iter())
            .find_map(|(at, one)| Some((at, offered(one)?)))?;
        queue.remove(at);
        if queue.is_empty() {
            self.queued.remove(&to);
        }
        Some(offer)
    }

    /// Ask for an offer back, so that its message surely is received or surely is not: the request
    /// becomes complete, as cancelled in the second case. False: there is nothing to ask for.
    pub(crate) fn ask_back(&mut self, request: u32) -> Result<bool> {
        let found = self.outgoing.iter().position(|out| out.request == request);
        let Some(at) = found else {
            return Ok(false);
        };
        let (to, token) = (self.outgoing[at].to, self.outgoing[at].token);
        let unsent = self.queued.get(&to).is_some_and(|queue| {
            let mut offers = queue.iter().filter_map(Queued::offer);
            offers.any(|offer| offer.token == token)
        });
        if unsent {
            self.withdraw_bulk(request);
            return Ok(true);
        }
        if !std::mem::replace(&mut self.outgoing[at].asked, true) {
            let body = Withdrawn {
                token,
                whole: self.outgoing[at].filled,
                asks: true,
            };
            self.send_or_queue(to, bare(Kind::Withdrawn), &body.encode())?;
        }
        Ok(true)
    }

    /// The receiver has given an offer back; its stream, if not full, is ours again.
    pub(crate) fn void_arrived(&mut self, from: Peer, Token(token): Token) {
        let asked = |out: &Outgoing<T>| out.to == from && out.token == token && out.asked;
        if let Some(at) = self.outgoing.iter().position(asked) {
            let out = self.outgoing.swap_remove(at);
            if let Some(bulk) = out.bulk {
                self.transport.reclaim(bulk);
            }
            self.requests.complete(out.request, Some(Error::Cancelled));
        }
    }

    /// The reason for which an offer is taken back. If its group is revoked, all that ends with that says so first, and the rest is
    /// the offer's stream.
    fn reason(&mut self, from: Peer, frame: Frame) -> Error {
        if frame.tag != revoke::TAG {
            return Error::Cancelled;
        }
        self.revocations.hear(frame.context, from);
        self.run_revocations();
        Error::Revoked
    }

    /// The sender of an offer has taken it back: nothing may wait for it any more. If it only asks,
    /// it hears whether a receive has been faster.
    pub(crate) fn offer_withdrawn(
        &mut self,
        from: Peer,
        frame: Frame,
        withdrawn: Withdrawn,
    ) -> std::result::Result<(), Fault> {
        let Withdrawn { token, whole, asks } = withdrawn;
        let why = self.reason(from, frame);
        if asks && self.queued.get(&from).is_some_and(Queue::is_flooded) {
            return Err(Fault::Corrupt {
                peer: from,
                what: "it asks again and again, and reads no answer",
            });
        }
        let is_it = |message: &Waiting<Body>| {
            let offered = matches!(&message.body, Body::Offer(offer) if offer.token == token);
            offered && message.source == from
        };
        let waiting = self
            .unexpected
            .iter()
            .find_map(|(id, message)| is_it(message).then_some(id));
        if asks {
            let answer = match waiting {
                Some(_) => Kind::Void,
                None => Kind::Begun,
            };
            self.let_in.retain(|&peer| peer != from);
            match self.send_ahead(from, bare(answer), &Token(token).encode()) {
                Ok(()) => {}
                Err(Error::Corrupt { peer, what }) => return Err(Fault::Corrupt { peer, what }),
                // It can be asked again.
                Err(_) => return Ok(()),
            }
        }
        if let Some(id) = waiting {
            let message = self.unexpected.remove(id);
            return self.void_offer(message.map(|message| message.body), from, withdrawn);
        }
        if asks {
            return Ok(());
        }
        if let Some(body) = self.matched.withdraw(is_it, &why) {
            return self.void_offer(Some(body), from, withdrawn);
        }
        let begun = |one: &Incoming<T>| one.from == from && one.token == token;
        if let Some(at) = self.incoming.iter().position(begun)
            && !whole
        {
            let stream = self.incoming.swap_remove(at);
            if let Some(bulk) = stream.bulk {
                self.transport.reclaim(bulk);
            }
            if let Some(request) = stream.request {
                self.receive_withdrawn(request, from, stream.tag, why);
            }
        }
        Ok(())
    }

    /// An offer that waited was taken back, and no receive finds it any more: its stream is disposed of.
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

    /// No receive will take this offer, whose send is complete or taken back: its stream is full, and is emptied.
    pub(crate) fn drop_offer(&mut self, from: Peer, offer: Offer) {
        if offer.streaming
            && offer.total > 0
            && let Ok(bulk) = self.transport.attach(from, &offer.route)
        {
            self.take_stream(None, from, 0, offer, bulk);
        }
    }

    /// The message of a receive will not come: its sender has taken it back.
    fn receive_withdrawn(&mut self, request: u32, from: Peer, tag: i32, why: Error) {
        let is_it = |message: &Waiting<Body>| matches!(message.body, Body::Arriving(arriving, _) if arriving == request);
        let held = self
            .unexpected
            .iter()
            .find_map(|(id, message)| is_it(message).then_some(id));
        let body = match held {
            Some(id) => self.unexpected.remove(id).map(|message| message.body),
            None => self.matched.withdraw(is_it, &why),
        };
        if let Some(body) = body {
            self.buffered -= charge(body.length());
            self.requests.complete(request, None);
            self.requests.release(request);
            return;
        }
        let status = &mut self.requests.get_mut(request).status;
        (status.source, status.tag) = (from as i32, tag);
        self.requests.complete(request, Some(why));
    }

    /// This task leaves: whoever is still receiving a message from it must not go on reading the
    /// memory of that, which its owner may now use for something else.
    pub fn leave(&mut self) {
        for out in std::mem::take(&mut self.outgoing) {
            self.drop_stream(out.bulk);
        }
    }

    fn drop_stream(&mut self, bulk: Option<T::Bulk>) {
        if let Some(bulk) = bulk {
            self.transport.abandon(bulk);
        }
    }

    /// A peer is gone: its streams end. Messages that were put in whole can still be drained.
    pub(crate) fn end_streams(&mut self, peer: Peer) {
        let error = self.loss(peer);
        let mut at = 0;
        while at < self.outgoing.len() {
            if self.outgoing[at].to == peer {
                self.end_outgoing(at, error.clone());
            } else {
                at += 1;
            }
        }
        at = 0;
        while at < self.incoming.len() {
            if self.incoming[at].from == peer {
                self.end_incoming(at, error.clone());
            } else {
                at += 1;
            }
        }
    }

    /// The receiver is gone: it may have taken all before, by itself, while this task was away.
    fn end_outgoing(&mut self, at: usize, error: Error) {
        if !self.condemned.contains_key(&self.outgoing[at].to) {
            while let Ok(true) = self.fill(at) {}
        }
        let out = self.outgoing.swap_remove(at);
        let taken = out.is_sent();
        self.drop_stream(out.bulk);
        match taken {
            true => self.requests.complete(out.request, None),
            false => self.end_send(out.request, out.frame.context, out.asked, error),
        }
    }

    /// The sender is gone: whatever it managed to put in is there, and no more will come.
    fn end_incoming(&mut self, at: usize, error: Error) {
        if !self.condemned.contains_key(&self.incoming[at].from) {
            while let Ok(true) = self.drain(at) {}
        }
        if self.incoming[at].bulk.is_none() {
            return self.settle_incoming(at);
        }
        let stream = self.incoming.swap_remove(at);
        self.drop_stream(stream.bulk);
        if let Some(request) = stream.request {
            self.requests.complete(request, Some(error));
        }
    }
}

impl<T: Transport> Engine<T> {
    /// This task is blocked in a send: take in large messages offered to it, so that their
    /// senders are not blocked by it in turn. As far as the buffer has room.
    pub fn take_in_offers(&mut self) -> bool {
        let offered = |message: &Waiting<Body>| match &message.body {
            Body::Offer(offer) => Some(*offer),
            _ => None,
        };
        let waiting = self.unexpected.iter();
        let waiting = waiting.filter_map(|(id, one)| Some((Lying::Waiting(id), offered(one)?)));
        let matched = self.matched.iter();
        let matched = matched.filter_map(|(id, one)| Some((Lying::Matched(id), offered(one)?)));
        let offers: Vec<(Lying, Offer)> = waiting.chain(matched).collect();
        let mut taken = false;
        for (at, offer) in offers {
            taken |= self.take_in(at, offer).is_some();
        }
        taken
    }

    fn lying(&mut self, at: Lying) -> Option<&mut Waiting<Body>> {
        match at {
            Lying::Waiting(id) => self.unexpected.get_mut(id),
            Lying::Matched(id) => self.matched.get_mut(id),
        }
    }

    fn take_in(&mut self, at: Lying, offer: Offer) -> Option<()> {
        let total = offer.total as usize;
        // A synchronous send waits for its receive; holding its bytes would not help it.
        if offer.synchronous || self.buffered.saturating_add(charge(total)) > self.settings.buffer {
            return None;
        }
        let message = self.lying(at)?;
        let (source, tag, context) = (message.source, message.tag, message.context);
        // Its sender takes it back.
        self.check_open(context, tag).ok()?;
        let status = Status {
            context,
            ..Status::EMPTY
        };
        // An obstacle now need not be one when the receive is made: the offer stays.
        let held = Scratch::new(total).ok()?.part(0, total);
        let bulk = self.stream_for(source, &offer).ok()?;
        let request = self.requests.add(Stage::Moving, status, held.clone());
        self.buffered += charge(total);
        if let Some(message) = self.lying(at) {
            message.body = Body::Arriving(request, held);
        }
        self.take_stream(Some(request), source, tag, offer, bulk);
        Some(())
    }

    /// A receive meets a message that is being taken in (or has been).
    pub(crate) fn receive_arriving(&mut self, request: u32, arriving: u32, held: &Views) {
        self.buffered -= charge(held.len());
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
        if let Some(stream) = self
            .incoming
            .iter_mut()
            .find(|one| one.request == Some(arriving))
        {
            stream.request = Some(request);
            self.requests.complete(arriving, None);
            self.requests.release(arriving);
        }
    }
}
