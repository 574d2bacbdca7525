//! Completion of requests by `.await`.

use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

use regatta_process::{self as process, Handle};

use crate::error::{Error, Result, ours};
use crate::raw;
use crate::raw::owned::Open;
use crate::request::Request;
use crate::{Status, Task};

/// A [`Request`] as a future, for any executor.
///
/// When the operation completes, the future is woken from inside the Regatta call that completes the operation. The program
/// must therefore call Regatta while futures wait. [`Task::block_on`] does this. Under another executor, watch
/// [`Task::descriptor`] and call [`Task::progress`].
///
/// Dropping the future drops the request: a receive that has not matched a message yet is cancelled, so that no message is
/// lost in a `select!`.
pub struct Completion<'g, B: Send + 'static> {
    stage: Stage<'g, B>,
}

enum Stage<'g, B: Send + 'static> {
    /// Not polled yet, or (`None`) completed.
    Started(Option<Open<'g, B>>),
    /// Polled: the operation's completion callback is registered.
    Called(Handle, Arc<Shared<B>>),
}

/// State shared by the future and the completion callback.
struct Shared<B>(Mutex<Found<B>>);

struct Found<B> {
    outcome: Option<Result<(B, Status)>>,
    waker: Waker,
}

impl<B> Shared<B> {
    fn found(&self) -> MutexGuard<'_, Found<B>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<'g, B: Send + 'static> IntoFuture for Request<'g, B> {
    type Output = Result<(B, Status)>;
    type IntoFuture = Completion<'g, B>;

    fn into_future(self) -> Completion<'g, B> {
        Completion {
            stage: Stage::Started(Some(self.into_open())),
        }
    }
}

// Sound because a `Completion` never pins its buffer.
impl<B: Send + 'static> Unpin for Completion<'_, B> {}

impl<B: Send + 'static> Future for Completion<'_, B> {
    type Output = Result<(B, Status)>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.stage {
            Stage::Called(_, shared) => {
                let mut found = shared.found();
                if let Some(outcome) = found.outcome.take() {
                    return Poll::Ready(outcome);
                }
                found.waker.clone_from(context.waker());
                Poll::Pending
            }
            Stage::Started(open) => {
                let Some(open) = open.take() else {
                    let again = "a completed future was polled again";
                    return Poll::Ready(Err(Error::argument(again)));
                };
                match open.test() {
                    Ok(true) => return Poll::Ready(open.wait()),
                    Ok(false) => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
                let shared = Arc::new(Shared(Mutex::new(Found {
                    outcome: None,
                    waker: context.waker().clone(),
                })));
                let theirs = shared.clone();
                let handle = open.handle();
                let registered = open.on_complete(move |outcome| {
                    let mut found = theirs.found();
                    found.outcome = Some(outcome);
                    let waker = found.waker.clone();
                    drop(found);
                    waker.wake();
                });
                if let Err(error) = registered {
                    return Poll::Ready(Err(error));
                }
                self.stage = Stage::Called(handle, shared);
                Poll::Pending
            }
        }
    }
}

impl<B: Send + 'static> Drop for Completion<'_, B> {
    fn drop(&mut self) {
        if let Stage::Called(handle, _) = self.stage
            && raw::outside().is_ok()
        {
            // Fails if the handle is stale, which means that the operation is complete.
            let _ = process::cancel_receive(handle);
        }
    }
}

impl<B: Send + 'static> std::fmt::Debug for Completion<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Completion")
    }
}

/// The waker of [`Task::block_on`], which ends the wait in it.
#[derive(Debug)]
struct Alarm(AtomicBool);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
        // The waiting thread may be asleep inside Regatta.
        if raw::outside().is_ok() {
            let _ = process::wake();
        }
    }
}

impl Task {
    /// Runs a future to completion on this thread, and makes progress on all operations meanwhile. Blocks, and sleeps while
    /// there is nothing to do.
    ///
    /// ```
    /// let task = regatta::init()?;
    /// let world = task.world();
    /// let (message, _) = task.block_on(async {
    ///     let request = world.irecv(vec![0u8; 5], 0, 1)?;
    ///     world.send(b"hello", 0, 1)?;
    ///     request.await
    /// })?;
    /// assert_eq!(message, b"hello");
    /// # Ok::<(), regatta::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if called inside an operator of a reduction, or if waiting fails.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let alarm = Arc::new(Alarm(AtomicBool::new(false)));
        let waker = Waker::from(alarm.clone());
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            let waited = raw::outside().and_then(|()| ours(process::wait_until(&alarm.0)));
            assert!(waited.is_ok(), "{waited:?}");
            alarm.0.store(false, Ordering::Release);
        }
    }
}
