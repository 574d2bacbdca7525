//! Non-blocking operations that own their memory; waiting for one of many.

use regatta_process::{self as process, Handle, Mode};

use crate::error::{Result, ours};
use crate::memory::Data;
use crate::raw;
use crate::raw::owned::{self, Open};
use crate::select::tag_number;
use crate::{Group, Source, Status, TagMatch, To};

/// An operation on its way that owns its buffer `B`, and gives it back when it is complete: by
/// [`wait`](Request::wait), by `.await`, or to a function by
/// [`on_complete`](Request::on_complete).
///
/// Dropping a request does not wait. A receive that has no message yet is cancelled; anything else
/// goes on and its buffer is freed at completion. (A collective must be completed by all members,
/// so it cannot be taken back.)
pub struct Request<'g, B: Send + 'static> {
    open: Open<'g, B>,
}

impl<'g, B: Send + 'static> Request<'g, B> {
    pub(crate) fn of(open: Open<'g, B>) -> Request<'g, B> {
        Request { open }
    }

    /// Blocks until the operation is complete. After an error the buffer is gone with it; where
    /// that matters (the front of a message that was too long), receive into borrowed memory.
    pub fn wait(self) -> Result<(B, Status)> {
        self.open.wait()
    }

    /// Have `done` called once with the outcome, from inside a later call of Regatta of some
    /// thread. `done` may call Regatta; a panic in it ends the process.
    pub fn on_complete<F>(self, done: F) -> Result<()>
    where
        F: FnOnce(Result<(B, Status)>) + Send + 'static,
    {
        self.open.on_complete(done).map(drop)
    }

    /// Cancel a receive that has no message yet; says whether that was so. It is then complete,
    /// with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub fn cancel(&mut self) -> Result<bool> {
        raw::outside()?;
        ours(process::cancel(self.open.handle()))
    }

    pub(crate) fn into_open(self) -> Open<'g, B> {
        self.open
    }
}

impl<B: Send + 'static> std::fmt::Debug for Request<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Request")
    }
}

pub(crate) mod sealed {
    use regatta_process::Handle;

    pub trait Operation {
        fn handle(&self) -> Handle;
    }
}

/// Operations on their way: [`Request`], [`Sending`](crate::Sending),
/// [`Receiving`](crate::Receiving).
pub trait Operation: sealed::Operation {
    /// Is it complete, so that waiting for it would not block? Makes progress. Does not block.
    fn test(&self) -> Result<bool> {
        raw::outside()?;
        ours(process::all_done(std::iter::once(self.handle())))
    }
}

impl<B: Send + 'static> sealed::Operation for Request<'_, B> {
    fn handle(&self) -> Handle {
        self.open.handle()
    }
}

impl<B: Send + 'static> Operation for Request<'_, B> {}

/// Blocks until all are complete; their outcomes, in order. After an error the others are
/// dropped; see [`Request`].
pub fn wait_all<'g, B, R>(requests: R) -> Result<Vec<(B, Status)>>
where
    B: Send + 'static,
    R: IntoIterator<Item = Request<'g, B>>,
{
    requests.into_iter().map(Request::wait).collect()
}

fn handles<'r, O: Operation + 'r>(
    operations: impl IntoIterator<Item = &'r O>,
) -> Vec<Option<Handle>> {
    let handles = operations.into_iter().map(|operation| operation.handle());
    handles.map(Some).collect()
}

/// Blocks until one of these operations is complete; which one. It still has to be waited for,
/// which then does not block. An error if there are none.
///
/// ```
/// use regatta::wait_any;
/// let task = regatta::init()?;
/// let world = task.world();
/// let mut requests = vec![world.irecv(vec![0u8; 8], 0, 1)?, world.irecv(vec![0u8; 8], 0, 2)?];
/// world.send(&[7u8], 0, 2)?;
/// let (message, status) = requests.swap_remove(wait_any(&requests)?).wait()?;
/// assert_eq!((message[0], status.tag), (7, 2));
/// # Ok::<(), regatta::Error>(())
/// ```
pub fn wait_any<'r, O: Operation + 'r>(
    operations: impl IntoIterator<Item = &'r O>,
) -> Result<usize> {
    raw::outside()?;
    let handles = handles(operations);
    if handles.is_empty() {
        return Err(crate::Error::argument("there is no operation to wait for"));
    }
    ours(process::wait_any(handles.len(), |at| handles[at]))
}

/// Which of these operations is complete, if one is. Makes progress. Does not block.
pub fn test_any<'r, O: Operation + 'r>(
    operations: impl IntoIterator<Item = &'r O>,
) -> Result<Option<usize>> {
    raw::outside()?;
    let handles = handles(operations);
    ours(process::test_any(handles.len(), |at| handles[at]))
}

/// Are all of these operations complete? Makes progress. Does not block.
pub fn test_all<'r, O: Operation + 'r>(
    operations: impl IntoIterator<Item = &'r O>,
) -> Result<bool> {
    raw::outside()?;
    ours(process::all_done(handles(operations).into_iter().flatten()))
}

impl Group<'_> {
    /// Start a send of a vector; as [`send`](Group::send). Does not block. The vector comes back
    /// at completion. After an error it is dropped.
    pub fn isend<T: Data>(
        &self,
        message: Vec<T>,
        to: impl Into<To>,
        tag: u32,
    ) -> Result<Request<'_, Vec<T>>> {
        let (to, tag) = (to.into().number(), tag_number(tag)?);
        owned::send(message, to, tag, self, Mode::Standard).map(Request::of)
    }

    /// Start a synchronous send of a vector; as [`ssend`](Group::ssend). Does not block.
    pub fn issend<T: Data>(
        &self,
        message: Vec<T>,
        to: impl Into<To>,
        tag: u32,
    ) -> Result<Request<'_, Vec<T>>> {
        let (to, tag) = (to.into().number(), tag_number(tag)?);
        owned::send(message, to, tag, self, Mode::Synchronous).map(Request::of)
    }

    /// Start a receive into a vector, of at most its length; as [`recv`](Group::recv). Does not
    /// block. The vector comes back at completion, as long as it was; the status tells how much of
    /// it is the message.
    pub fn irecv<T: Data>(
        &self,
        into: Vec<T>,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
    ) -> Result<Request<'_, Vec<T>>> {
        let (from, tag) = (from.into().number(), tag.into().select()?);
        owned::receive(into, from, tag, self).map(Request::of)
    }
}
