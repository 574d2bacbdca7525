//! Ends the operations in a context: that of a revoked group, or of a freed group whose context is reused.

use crate::error::Error;
use crate::matching::Waiting;
use crate::numbers;
use crate::point_to_point::PointToPoint;
use crate::point_to_point::body::Body;
use crate::point_to_point::contexts::Contexts;
use crate::transport::{Peer, Transport};

impl<T: Transport> PointToPoint<T> {
    /// Returns the contexts with special rules.
    pub(crate) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Closes the contexts of a revoked group: all operations in it end, except agreements.
    pub(crate) fn close_context(&mut self, context: u32) {
        self.contexts.close(context);
        let ends = |other: u32, tag: i32| other & !1 == context && !numbers::is_kept(other, tag);
        self.end_posted(&ends);
        self.end_bulk(&ends);
        self.end_stranded(&ends);
        let ended = self
            .outbox
            .remove_messages(|frame, _| ends(frame.context, frame.tag));
        for request in ended {
            self.requests.complete(request, Some(Error::Revoked));
        }
        self.drop_waiting(&ends);
    }

    /// Reopens contexts for which `is` returns true, since they will be reused.
    pub(crate) fn reopen_contexts(&mut self, is: impl Fn(u32) -> bool) {
        self.contexts.reopen(is);
    }

    fn end_posted(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        // Receives of agreements are never posted.
        let posted = self.posted();
        let posted = posted.filter(|(_, select)| ends(select.context, 0));
        let ended: Vec<u32> = posted.map(|(number, _)| number).collect();
        for number in ended {
            self.fail_receive(number, Error::Revoked);
        }
    }

    /// Drops messages that no receive will take. Offers stay: their senders withdraw them.
    fn drop_waiting(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        let dropped = |message: &Waiting<Body>| {
            ends(message.context, message.tag)
                && matches!(
                    message.body,
                    Body::Bytes(_) | Body::Own(..) | Body::Loan { .. }
                )
        };
        self.drop_messages(&Error::Revoked, |message, _| dropped(message));
        while let Some(body) = self.inbox.withdraw_matched(dropped, &Error::Revoked) {
            self.drop_body(body, Error::Revoked);
        }
    }

    /// Drops a message that no receive will take, for this reason. Does nothing for messages that are or were offers.
    fn drop_body(&mut self, body: Body, why: Error) {
        match body {
            Body::Told(_, credit) => self.credits.pay(credit),
            Body::Own(_, sender) => self.requests.complete(sender, Some(why)),
            Body::Loan { place, .. } => self.transport.give_back(place),
            Body::Bytes(_) | Body::Offer(_) | Body::Arriving(..) | Body::Withdrawn(..) => {}
        }
    }

    /// Forgets the contexts of a freed group: no receive will take its messages. Its collectives may still be in progress.
    pub(crate) fn free_context(&mut self, context: u32) {
        self.contexts.forget(context);
        if !self.inbox.waiting().is_empty() {
            self.drop_messages(&Error::Cancelled, |message, _| {
                let is_held = matches!(message.body, Body::Bytes(_) | Body::Loan { .. });
                message.context == context && is_held
            });
        }
    }

    /// Drops messages that wait in one of these contexts, are from this source (`None` for any), and arrived before the arrival with this number.
    pub(crate) fn drop_old_messages(
        &mut self,
        source: Option<Peer>,
        arrivals: u64,
        is_of: impl Fn(u32) -> bool,
    ) {
        self.drop_messages(&Error::Cancelled, |message, is_older_than| {
            source.is_none_or(|source| message.source == source)
                && is_of(message.context & !1)
                && is_older_than(arrivals)
        });
    }

    /// Drops short messages that wait in this context and for which `is` returns true.
    pub(crate) fn drop_held(&mut self, context: u32, is: impl Fn(i32, &[u8]) -> bool) {
        self.drop_messages(&Error::Cancelled, |message, _| {
            let is_it = matches!(&message.body, Body::Bytes(bytes) if is(message.tag, bytes));
            message.context == context && is_it
        });
    }

    /// Drops waiting messages for which `is` returns true, for this reason. The second argument of `is` returns whether the message is older than an
    /// arrival.
    fn drop_messages(
        &mut self,
        why: &Error,
        is: impl Fn(&Waiting<Body>, &dyn Fn(u64) -> bool) -> bool,
    ) {
        let waiting = self.inbox.waiting().iter();
        let dropped = waiting.filter(|&(id, message)| {
            let is_older_than = |arrivals| self.inbox.waiting().age(id) < arrivals;
            is(message, &is_older_than)
        });
        let dropped: Vec<u32> = dropped.map(|(id, _)| id).collect();
        for id in dropped {
            let Some(message) = self.inbox.remove(id) else {
                continue;
            };
            match message.body {
                Body::Arriving(request, _) => {
                    self.let_pass(request);
                    self.release(request);
                }
                Body::Offer(offer) => self.drop_offer(message.source, offer),
                body => self.drop_body(body, why.clone()),
            }
        }
    }

    /// Returns the contexts in which this task may still send or receive, each with the peer to which it may send.
    pub(crate) fn contexts_in_use(&self) -> impl Iterator<Item = (u32, Option<Peer>)> {
        let posted = self.posted().map(|(_, select)| (select.context, None));
        let matched = self.inbox.set_aside_ones();
        let matched = matched.map(|(_, message)| (message.context, None));
        let outgoing = self.bulk.outgoing();
        let outgoing = outgoing.map(|out| (out.context(), Some(out.to)));
        let queued = self.outbox.iter();
        let queued = queued.map(|(to, queued)| (queued.frame.context, Some(to)));
        posted.chain(matched).chain(outgoing).chain(queued)
    }
}
