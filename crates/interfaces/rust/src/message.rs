//! Blocking sends, receives and probes.

use regatta_process::{self as process, Mode};

use crate::error::{Result, ours};
use crate::memory::{Data, Gather, Scatter};
use crate::raw::{self, blocking};
use crate::select::tag_number;
use crate::{Group, Source, Status, TagMatch, To};

impl Group<'_> {
    /// Send a message. Blocks until the memory may be used again: not at all while Regatta has
    /// room to hold the message, else until the receiver takes it.
    ///
    /// Fails with [`ErrorKind::Dead`](crate::ErrorKind::Dead) or
    /// [`Left`](crate::ErrorKind::Left) when the receiver is gone, and with
    /// [`Cycle`](crate::ErrorKind::Cycle) when blocked senders wait for each other.
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

    /// As [`send`](Group::send), but blocks until the receiver has begun to receive the message.
    pub fn ssend<M>(&self, message: &M, to: impl Into<To>, tag: u32) -> Result<()>
    where
        M: Gather + ?Sized,
    {
        let (to, tag) = (to.into().number(), tag_number(tag)?);
        blocking::send(message.gives()?, to, tag, self.id(), Mode::Synchronous)
    }

    /// Receive a message. Blocks until one comes.
    ///
    /// A message shorter than the memory fills its front; the status tells how far. One that is
    /// longer is [`ErrorKind::Truncated`](crate::ErrorKind::Truncated): the front was kept.
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

    /// Receive a message of whatever length as a vector. Blocks until one comes.
    ///
    /// A message that is no whole number of elements is an error, and stays where it is.
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

    /// Send one message and receive another; blocks until both are complete. Never deadlocks with
    /// a partner that does the same.
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

    /// The next message that could be received; it stays where it is. Blocks until there is one.
    pub fn probe(&self, from: impl Into<Source>, tag: impl Into<TagMatch>) -> Result<Status> {
        raw::outside()?;
        let (from, tag) = (from.into().number(), tag.into().select()?);
        let status = ours(process::probe(from, tag, self.id()))?;
        Ok(Status::of(&status))
    }

    /// The next message that could be received now, if there is one. Does not block.
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
