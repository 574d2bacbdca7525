//! Cancelling and withdrawing operations.
//!
//! Once a request was forgotten, the engine does not access its memory again, whatever its stage: callers free that memory next.

use crate::error::{Error, Result};
use crate::matching::Waiting;
use crate::point_to_point::PointToPoint;
use crate::point_to_point::body::Body;
use crate::request::{Handle, Stage};
use crate::transport::Transport;

impl<T: Transport> PointToPoint<T> {
    /// Cancels a receive that has no message yet: it completes with [`Error::Cancelled`]. For a send, requests its withdrawal
    /// ([`PointToPoint::recall`]), after which it may complete as cancelled. Returns whether the request is complete. Also accepts handles whose
    /// completion calls back.
    pub fn cancel(&mut self, handle: Handle) -> Result<bool> {
        if handle == Handle::COMPLETE {
            return Ok(false);
        }
        let found = self.requests.find_any(handle);
        let id = found.ok_or(Error::Handle("request"))?;
        match self.requests.get(id).stage {
            Stage::Posted(_) => self.cancel_receive(handle),
            stage
                if stage.is_moving()
                    && (self.destination(handle).is_some() || self.stranded(id).is_some()) =>
            {
                self.recall(handle)?;
                Ok(self.requests.is_done(id))
            }
            _ => Ok(false),
        }
    }

    /// Cancels a receive that has no message yet. Returns whether the request was one. Sends are not affected.
    pub fn cancel_receive(&mut self, handle: Handle) -> Result<bool> {
        if handle == Handle::COMPLETE {
            return Ok(false);
        }
        let found = self.requests.find_any(handle);
        let id = found.ok_or(Error::Handle("request"))?;
        let Stage::Posted(number) = self.requests.get(id).stage else {
            return Ok(false);
        };
        self.inbox.posted.remove(number);
        self.requests.complete(id, Some(Error::Cancelled));
        Ok(true)
    }

    /// Forgets a request that the caller has given up and whose memory becomes invalid. A message that has not been sent is not sent; a receive is
    /// withdrawn. Returns the request of a collective: the layer that runs it must give it up and then [release](Self::release) it.
    pub(crate) fn withdraw(&mut self, handle: Handle) -> Option<u32> {
        if handle == Handle::COMPLETE {
            return None;
        }
        let id = self.find(handle).ok()?;
        match self.requests.get(id).stage {
            Stage::Done => {}
            Stage::Posted(number) => {
                self.inbox.posted.remove(number);
            }
            Stage::Collective => return Some(id),
            Stage::Sending(_) | Stage::Moving => self.withdraw_moving(id),
            Stage::Free(_) => return None,
        }
        self.release(id);
        None
    }

    /// Releases a request. If it is not complete, it is cancelled first.
    pub(crate) fn release(&mut self, id: u32) {
        if !self.requests.is_done(id) {
            self.requests.complete(id, Some(Error::Cancelled));
        }
        self.requests.release(id);
    }

    /// Withdraws a send unless its message is being received. The request completes: as cancelled if no task has received the message or ever will.
    /// To know that, this waits for the receiver's answer, unlike [`Engine::forget`](crate::Engine::forget).
    pub fn recall(&mut self, handle: Handle) -> Result<()> {
        let id = self.find(handle)?;
        if self.requests.get(id).stage.is_moving() && !self.ask_back(id)? {
            self.withdraw_moving(id);
            if !self.requests.is_done(id) {
                self.requests.complete(id, Some(Error::Cancelled));
            }
        }
        Ok(())
    }

    /// Withdraws a message in transfer: it is in a stream, in the outbox, or here for this task itself.
    fn withdraw_moving(&mut self, id: u32) {
        if self.take_stranded(id).is_some() {
            return;
        }
        self.withdraw_bulk(id);
        self.outbox.remove_messages(|_, request| request == id);
        let is_own = |message: &Waiting<Body>| matches!(message.body, Body::Own(_, request) if request == id);
        self.inbox.withdraw(is_own, &Error::Cancelled);
    }
}
