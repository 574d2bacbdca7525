//! Taking operations back.
//!
//! Once a request has been forgotten the engine does not touch its memory again, whatever stage
//! it was in: callers free that memory next.

use crate::arrival::Body;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::matching::Waiting;
use crate::queue::Content;
use crate::request::{Handle, Stage};
use crate::transport::Transport;

impl<T: Transport> Engine<T> {
    /// Cancel a receive that has no message yet: it completes with [`Error::Cancelled`]. A send is asked back ([`Engine::recall`]), and may complete so.
    /// Says whether it is cancelled by now. Also takes handles whose completion calls back.
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
                    && (self.destination(handle).is_some() || self.is_stranded(id)) =>
            {
                self.recall(handle)?;
                Ok(self.requests.is_done(id))
            }
            _ => Ok(false),
        }
    }

    /// Cancels a receive that has not matched yet, and says whether it was one. Sends go on.
    pub fn cancel_receive(&mut self, handle: Handle) -> Result<bool> {
        if handle == Handle::COMPLETE {
            return Ok(false);
        }
        let found = self.requests.find_any(handle);
        let id = found.ok_or(Error::Handle("request"))?;
        let Stage::Posted(number) = self.requests.get(id).stage else {
            return Ok(false);
        };
        self.posted.remove(number);
        self.requests.complete(id, Some(Error::Cancelled));
        Ok(true)
    }

    /// Nobody will ask for this request any more, and its memory goes. A message that has not been sent is
    /// not sent; a receive is withdrawn; the other members of a collective wait in vain.
    pub fn forget(&mut self, handle: Handle) {
        if handle == Handle::COMPLETE {
            return;
        }
        let Ok(id) = self.find(handle) else { return };
        match self.requests.get(id).stage {
            Stage::Done => {
                self.requests.release(id);
                return;
            }
            Stage::Posted(number) => {
                self.posted.remove(number);
            }
            Stage::Collective => {
                self.drop_schedule(id);
                self.drop_making(id);
                self.drop_vote(id);
            }
            Stage::Sending(_) | Stage::Moving => self.withdraw_moving(id),
            Stage::Free(_) => return,
        }
        if !self.requests.is_done(id) {
            self.requests.complete(id, Some(Error::Cancelled));
        }
        self.requests.release(id);
    }

    /// Take a send back unless its message is being received. The request is or becomes complete: as
    /// cancelled if nobody has had the message or ever will. Without waiting for the receiver's
    /// word, as `forget` does, that could not be known.
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

    /// A message that moves is in a stream, in the queue, or lies here for ourselves.
    fn withdraw_moving(&mut self, id: u32) {
        if self.take_stranded(id).is_some() {
            return;
        }
        self.withdraw_bulk(id);
        let is_ours =
            |content: &Content| matches!(content, Content::Message(_, request) if *request == id);
        self.queued.retain(|_, queue| {
            queue.retain(|queued| !is_ours(&queued.content));
            !queue.is_empty()
        });
        let is_own = |message: &Waiting<Body>| matches!(message.body, Body::Own(_, request) if request == id);
        let own = self.unexpected.iter().find(|(_, message)| is_own(message));
        if let Some((at, _)) = own {
            self.unexpected.remove(at);
        }
        self.matched.withdraw(is_own, &Error::Cancelled);
    }
}
