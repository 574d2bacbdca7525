//! Non-blocking operations that own their memory, and functions that wait for several operations.

use regatta_process::{self as process, Handle, Mode};

use crate::error::{Result, ours};
use crate::memory::Data;
use crate::raw;
use crate::raw::owned::{self, Open};
use crate::select::tag_number;
use crate::{Group, Source, Status, TagMatch, To};

/// A started operation that owns its buffer `B` and returns it at completion: from [`wait`](Request::wait), from
/// `.await`, or to a function given to [`on_complete`](Request::on_complete).
///
/// Dropping a request does not block. A receive that has not matched a message yet is cancelled. Any other operation
/// continues, and its buffer is freed at completion. (All members must complete a collective, so it cannot be cancelled.)
pub struct Request<'g, B: Send + 'static> {
    open: Open<'g, B>,
}

impl<'g, B: Send + 'static> Request<'g, B> {
    pub(crate) fn of(open: Open<'g, B>) -> Request<'g, B> {
        Request { open }
    }

    /// Blocks until the operation is complete. Returns the buffer and the status.
    ///
    /// After an error the buffer is dropped. To keep its contents (the first bytes of a message that was too long), receive
    /// into borrowed memory in a [`scope`](Group::scope).
    pub fn wait(self) -> Result<(B, Status)> {
        self.open.wait()
    }

    /// Makes Regatta call `done` once with the outcome, from inside a later Regatta call of any thread. `done` may call
    /// Regatta. A panic in `done` aborts the process.
    pub fn on_complete<F>(self, done: F) -> Result<()>
    where
        F: FnOnce(Result<(B, Status)>) + Send + 'static,
    {
        self.open.on_complete(done).map(drop)
    }

    /// Cancels a receive that has not matched a message yet. Returns whether it was cancelled. A cancelled request is
    /// complete, with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
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

/// A started operation: a [`Request`], a [`Sending`](crate::Sending) or a [`Receiving`](crate::Receiving).
pub trait Operation: sealed::Operation {
    /// Returns whether the operation is complete, so that waiting for it would not block. Makes progress. Does not block.
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

/// Blocks until all requests are complete. Returns their buffers and statuses, in order. After an error the remaining
/// requests are dropped; see [`Request`].
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

/// Blocks until one of these operations is complete. Returns its index. The operation still has to be waited for, which
/// then does not block. Fails if there are no operations.
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

/// Returns the index of one of these operations that is complete, or `None`. Makes progress. Does not block.
pub fn test_any<'r, O: Operation + 'r>(
    operations: impl IntoIterator<Item = &'r O>,
) -> Result<Option<usize>> {
    raw::outside()?;
    let handles = handles(operations);
    ours(process::test_any(handles.len(), |at| handles[at]))
}

/// Returns whether all of these operations are complete. Makes progress. Does not block.
pub fn test_all<'r, O: Operation + 'r>(
    operations: impl IntoIterator<Item = &'r O>,
) -> Result<bool> {
    raw::outside()?;
    ours(process::all_done(handles(operations).into_iter().flatten()))
}

impl Group<'_> {
    /// Starts a send of a vector; see [`send`](Group::send). Does not block. The request returns the vector at completion,
    /// and drops it after an error.
    pub fn isend<T: Data>(
        &self,
        message: Vec<T>,
        to: impl Into<To>,
        tag: u32,
    ) -> Result<Request<'_, Vec<T>>> {
        let (to, tag) = (to.into().number(), tag_number(tag)?);
        owned::send(message, to, tag, self, Mode::Standard).map(Request::of)
    }

    /// Starts a synchronous send of a vector; see [`ssend`](Group::ssend). Does not block.
    pub fn issend<T: Data>(
        &self,
        message: Vec<T>,
        to: impl Into<To>,
        tag: u32,
    ) -> Result<Request<'_, Vec<T>>> {
        let (to, tag) = (to.into().number(), tag_number(tag)?);
        owned::send(message, to, tag, self, Mode::Synchronous).map(Request::of)
    }

    /// Starts a receive of at most the vector's length into the vector; see [`recv`](Group::recv). Does not block. The
    /// request returns the vector at completion, with its length unchanged; the status has the length of the message.
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
