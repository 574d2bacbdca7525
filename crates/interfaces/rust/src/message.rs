//! Blocking sends, receives and probes.

use regatta_process::{self as process, Mode};

use crate::error::{Result, ours};
use crate::memory::{Data, Gather, Scatter};
use crate::raw::{self, blocking};
use crate::select::tag_number;
use crate::{Group, Source, Status, TagMatch, To};

impl Group<'_> {
    /// Sends a message. Blocks until the memory may be reused: not at all while Regatta has room to hold the message,
    /// otherwise until the receiver takes it.
    ///
    /// Fails with [`ErrorKind::Dead`](crate::ErrorKind::Dead) or [`Left`](crate::ErrorKind::Left) if the receiver has
    /// died or left, and with [`Cycle`](crate::ErrorKind::Cycle) if blocked senders wait for each other.
    ///
    /// ```
    /// let task = regatta::init()?;
    /// let world = task.world();
    /// world.send(&[1.0, 2.0], 0, 5)?;
    /// let mut numbers = [0.0; 2];
    /// let status = world.recv(&mut numbers, 0, 5)?;
    /// assert_eq!((numbers, status.source), ([1.0, 2.0], Some(0)));
    /// # Ok::<(), regatta::Error>(())
    /// ```
    #[inline(always)]
    pub fn send<M>(&self, message: &M, to: impl Into<To>, tag: u32) -> Result<()>
    where
        M: Gather + ?Sized,
    {
        let (to, tag) = (to.into().number(), tag_number(tag)?);
        blocking::send(message.gives()?, to, tag, self.id(), Mode::Standard)
    }

    /// Like [`send`](Group::send), but blocks until the receiver has begun to receive the message.
    pub fn ssend<M>(&self, message: &M, to: impl Into<To>, tag: u32) -> Result<()>
    where
        M: Gather + ?Sized,
    {
        let (to, tag) = (to.into().number(), tag_number(tag)?);
        blocking::send(message.gives()?, to, tag, self.id(), Mode::Synchronous)
    }

    /// Receives a message. Blocks until one arrives.
    ///
    /// A message that is shorter than the memory fills the beginning of it; [`Status::length`] is its length. A longer
    /// message fails with [`ErrorKind::Truncated`](crate::ErrorKind::Truncated), and the memory then holds its first bytes.
    #[inline(always)]
    pub fn recv<M>(
        &self,
        into: &mut M,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
    ) -> Result<Status>
    where
        M: Scatter + ?Sized,
    {
        let (from, tag) = (from.into().number(), tag.into().select()?);
        blocking::receive(into.takes()?, from, tag, self.id())
    }

    /// Receives a message of any length as a vector. Blocks until one arrives.
    ///
    /// Fails if the length of the message is not a multiple of the element size. The message is then left in the queue.
    ///
    /// ```
    /// use regatta::{Source, TagMatch};
    /// let task = regatta::init()?;
    /// task.world().send(&[1u16, 2, 3], 0, 9)?;
    /// let (numbers, status) = task.world().recv_vec::<u16>(Source::Any, TagMatch::Any)?;
    /// assert_eq!((numbers, status.tag), (vec![1, 2, 3], 9));
    /// # Ok::<(), regatta::Error>(())
    /// ```
    pub fn recv_vec<T: Data>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
    ) -> Result<(Vec<T>, Status)> {
        let (from, tag) = (from.into().number(), tag.into().select()?);
        let (mut elements, status) = blocking::receive_vec(from, tag, self.id())?;
        elements.truncate(status.count::<T>());
        Ok((elements, status))
    }

    /// Sends one message and receives another. Blocks until both are complete. Never deadlocks with a partner that also
    /// calls `sendrecv`.
    pub fn sendrecv<M, N>(
        &self,
        message: &M,
        to: impl Into<To>,
        stag: u32,
        into: &mut N,
        from: impl Into<Source>,
        rtag: impl Into<TagMatch>,
    ) -> Result<Status>
    where
        M: Gather + ?Sized,
        N: Scatter + ?Sized,
    {
        let (to, from, rtag) = (to.into(), from.into(), rtag.into());
        self.scope(|s| {
            let received = s.recv(into, from, rtag)?;
            s.send(message, to, stag)?;
            let (_, status) = received.wait()?;
            Ok(status)
        })
    }

    /// Returns the status of the next message that a receive would take, and leaves the message in the queue. Blocks until
    /// there is one.
    pub fn probe(&self, from: impl Into<Source>, tag: impl Into<TagMatch>) -> Result<Status> {
        raw::outside()?;
        let (from, tag) = (from.into().number(), tag.into().select()?);
        let status = ours(process::probe(from, tag, self.id()))?;
        Ok(Status::of(&status))
    }

    /// Returns the status of the next message that a receive would take, or `None` if there is none. Does not block.
    pub fn iprobe(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
    ) -> Result<Option<Status>> {
        raw::outside()?;
        let (from, tag) = (from.into().number(), tag.into().select()?);
        let found = ours(process::probe_now(from, tag, self.id()))?;
        Ok(found.as_ref().map(Status::of))
    }
}
