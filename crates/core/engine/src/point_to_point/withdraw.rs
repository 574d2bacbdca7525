//! Taking operations back.
//!
//! Once a request has been forgotten the engine does not touch its memory again, whatever stage
//! it was in: callers free that memory next.

use crate::error::{Error, Result};
use crate::matching::Waiting;
use crate::point_to_point::PointToPoint;
use crate::point_to_point::body::Body;
use crate::request::{Handle, Stage};
use crate::transport::Transport;

impl<T: Transport> PointToPoint<T> {
    /// Cancels a receive that has no message yet: it completes with [`Error::Cancelled`]. A send is asked back ([`PointToPoint::recall`]), and may complete
    /// so. Returns whether it is cancelled by now. Also takes handles whose completion calls back.
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

    /// Cancels a receive that has not matched yet. Returns whether it was one. Sends go on.
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

    /// Forgets a request, of which nobody will ask any more, and whose memory goes. A message that has not been sent is
    /// not sent; a receive is withdrawn. Returns the request of a collective, which whoever runs it must give up before it is [released](Self::release).
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

    /// Releases a request, as cancelled if it is not complete.
    pub(crate) fn release(&mut self, id: u32) {
        if !self.requests.is_done(id) {
            self.requests.complete(id, Some(Error::Cancelled));
        }
        self.requests.release(id);
    }

    /// Takes a send back unless its message is being received. The request is or becomes complete: as
    /// cancelled if nobody has had the message or ever will. Without waiting for the receiver's
    /// word, as [`Engine::forget`](crate::Engine::forget) does, that could not be known.
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

    /// Withdraws a message that moves: it is in a stream, in the outbox, or here for this task itself.
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
