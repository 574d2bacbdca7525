//! Non-blocking operations on borrowed memory.

use regatta_process::{Handle, Mode};

use crate::error::Result;
use crate::memory::{Gather, Scatter};
use crate::raw::scoped::{self, Entry, Lent, Registry};
use crate::request::{Operation, sealed};
use crate::select::tag_number;
use crate::{Group, Source, Status, TagMatch, To};

/// A scope that starts non-blocking operations on borrowed memory; see [`Group::scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    group: &'env Group<'env>,
    registry: &'scope Registry<'scope, 'env>,
}

impl Group<'_> {
    /// Calls `body`, which can start sends and receives on borrowed memory and then do other work. Blocks until all these
    /// operations are complete, as [`std::thread::scope`] does for threads.
    ///
    /// `body` can wait for an operation, after which it can use the memory again. The scope waits at its end for all
    /// operations that `body` has not waited for, and returns the first error among these.
    ///
    /// If `body` returns an error, receives that have not matched a message yet are cancelled, and the scope waits for all
    /// other operations. If `body` panics, all operations are abandoned without waiting. A peer that is in the middle of
    /// such a message gets an error when this task ends.
    ///
    /// ```
    /// let task = regatta::init()?;
    /// let world = task.world();
    /// let (mine, mut theirs) = ([1, 2, 3], [0; 3]);
    /// world.scope(|s| {
    ///     s.recv(&mut theirs, 0, 1)?;
    ///     s.send(&mine, 0, 1)?;
    ///     Ok(()) // compute here; `theirs` is borrowed until the scope ends
    /// })?;
    /// assert_eq!(theirs, mine);
    /// # Ok::<(), regatta::Error>(())
    /// ```
    ///
    /// The compiler rejects memory that does not outlive the scope:
    ///
    /// ```compile_fail,E0597
    /// let task = regatta::init().unwrap();
    /// let world = task.world();
    /// let _ = world.scope(|s| {
    ///     let mut inside = [0; 3];
    ///     s.recv(&mut inside, 0, 1)?;
    ///     Ok(())
    /// });
    /// ```
    ///
    /// and uses of memory while an operation uses it:
    ///
    /// ```compile_fail,E0502
    /// let task = regatta::init().unwrap();
    /// let world = task.world();
    /// let mut theirs = [0; 3];
    /// let _ = world.scope(|s| {
    ///     let request = s.recv(&mut theirs, 0, 1)?;
    ///     println!("{theirs:?}");
    ///     request.wait()?;
    ///     Ok(())
    /// });
    /// ```
    pub fn scope<'env, R, F>(&'env self, body: F) -> Result<R>
    where
        F: for<'scope> FnOnce(&Scope<'scope, 'env>) -> Result<R>,
    {
        let group: &'env Group<'env> = self;
        scoped::scope(|registry| body(&Scope { group, registry }))
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a send; see [`Group::send`]. Does not block.
    pub fn send<M>(
        &self,
        message: &'scope M,
        to: impl Into<To>,
        tag: u32,
    ) -> Result<Sending<'scope>>
    where
        M: Gather + ?Sized,
    {
        self.start_send(message, to.into(), tag, Mode::Standard)
    }

    /// Starts a synchronous send; see [`Group::ssend`]. Does not block.
    pub fn ssend<M>(
        &self,
        message: &'scope M,
        to: impl Into<To>,
        tag: u32,
    ) -> Result<Sending<'scope>>
    where
        M: Gather + ?Sized,
    {
        self.start_send(message, to.into(), tag, Mode::Synchronous)
    }

    fn start_send<M>(
        &self,
        message: &'scope M,
        to: To,
        tag: u32,
        mode: Mode,
    ) -> Result<Sending<'scope>>
    where
        M: Gather + ?Sized,
    {
        let (from, tag) = (message.gives()?, tag_number(tag)?);
        let entry = self
            .registry
            .send(from, to.number(), tag, self.group.id(), mode)?;
        Ok(Sending { entry })
    }

    /// Starts a receive; see [`Group::recv`]. Does not block.
    pub fn recv<M>(
        &self,
        into: &'scope mut M,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
    ) -> Result<Receiving<'scope, M>>
    where
        M: Scatter + ?Sized,
    {
        let (from, tag) = (from.into().number(), tag.into().select()?);
        let lent = self.registry.receive(into, from, tag, self.group.id())?;
        Ok(Receiving { lent })
    }
}

/// A started send in a [`Scope`].
#[derive(Debug)]
pub struct Sending<'scope> {
    entry: Entry<'scope>,
}

impl Sending<'_> {
    /// Blocks until the send is complete.
    pub fn wait(self) -> Result<()> {
        self.entry.wait().map(drop)
    }
}

impl sealed::Operation for Sending<'_> {
    fn handle(&self) -> Handle {
        self.entry.handle()
    }
}

impl Operation for Sending<'_> {}

/// A started receive in a [`Scope`].
pub struct Receiving<'scope, M: ?Sized> {
    lent: Lent<'scope, M>,
}

impl<'scope, M: ?Sized> Receiving<'scope, M> {
    /// Blocks until the message has been received. Returns its memory and its status.
    pub fn wait(self) -> Result<(&'scope mut M, Status)> {
        self.lent.wait()
    }

    /// Cancels the receive if it has not matched a message yet. Returns whether it was cancelled.
    ///
    /// A cancelled receive is complete, with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled). Call
    /// [`wait`](Receiving::wait) on it; otherwise the scope returns this error.
    pub fn cancel(&self) -> Result<bool> {
        self.lent.cancel()
    }
}

impl<M: ?Sized> sealed::Operation for Receiving<'_, M> {
    fn handle(&self) -> Handle {
        self.lent.handle()
    }
}

impl<M: ?Sized> Operation for Receiving<'_, M> {}

impl<M: ?Sized> std::fmt::Debug for Receiving<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Receiving")
    }
}
