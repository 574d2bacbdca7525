//! Sends that their receiver will not take, in contexts that tolerate departures. They make no progress, and wait until they are cancelled or given
//! up.
//!
//! [`departures`](crate::departures) explains why they exist.

use regatta_memory::views::Views;

use crate::error::{Error, Result};
use crate::point_to_point::PointToPoint;
use crate::point_to_point::contexts::Stranded;
use crate::request::{Handle, Stage, Status};
use crate::transport::Transport;

impl<T: Transport> PointToPoint<T> {
    /// Lets requests in this context stay pending when their peer leaves. `threads` says whether other threads of this task may send to the task
    /// itself.
    pub(crate) fn tolerate_departures(&mut self, context: u32, threads: bool) {
        self.contexts.tolerate_departures(context, threads);
    }

    /// Returns whether requests in this context stay pending when their peer is gone for this reason.
    pub(crate) fn outlasts(&self, context: u32, loss: &Error) -> bool {
        matches!(loss, Error::Left(_)) && self.contexts.is_tolerant(context)
    }

    /// Ends a send whose receiver is gone: it completes with this error, or becomes stranded. If it would become stranded but is being withdrawn, it
    /// completes as cancelled.
    pub(super) fn end_send(
        &mut self,
        request: u32,
        context: u32,
        is_asked_back: bool,
        error: Error,
    ) {
        let failed = self.requests.get(request);
        // A send whose completion calls back cannot be cancelled, so it ends now.
        let is_stranded = failed.callback.is_none() && self.outlasts(context, &error);
        match is_stranded {
            true if is_asked_back => self.requests.complete(request, Some(Error::Cancelled)),
            true => self.strand(request, context, error),
            false => self.requests.complete(request, Some(error)),
        }
    }

    /// Returns the request of a send that cannot be started for this reason, if the send may become stranded. Otherwise returns the error.
    pub fn start_stranded(&mut self, context: u32, error: Error) -> Result<Handle> {
        if !self.outlasts(context, &error) {
            return Err(error);
        }
        let id = self
            .requests
            .add(Stage::Moving, Status::EMPTY, Views::none());
        self.strand(id, context, error);
        Ok(self.requests.handle(id))
    }

    fn strand(&mut self, request: u32, context: u32, error: Error) {
        self.stranded.push(Stranded {
            request,
            context,
            error,
        });
    }

    /// Returns the error of a stranded send, or `None` if the request is not one.
    pub(crate) fn stranded(&self, request: u32) -> Option<&Error> {
        let mut stranded = self.stranded.iter();
        let send = stranded.find(|send| send.request == request)?;
        Some(&send.error)
    }

    /// Ends stranded sends in revoked groups.
    pub(super) fn end_stranded(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        let is_over = |send: &mut Stranded| ends(send.context, 0);
        let over: Vec<Stranded> = self.stranded.extract_if(.., is_over).collect();
        for send in over {
            self.requests.complete(send.request, Some(Error::Revoked));
        }
    }

    /// Removes a send from the stranded ones and returns its error. Returns `None` if it is not stranded.
    pub(crate) fn take_stranded(&mut self, request: u32) -> Option<Error> {
        let mut stranded = self.stranded.iter();
        let at = stranded.position(|send| send.request == request)?;
        Some(self.stranded.swap_remove(at).error)
    }
}
