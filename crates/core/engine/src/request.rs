//! Requests: operations that were started and may not be complete.
//!
//! A request occupies a slot. Its handle consists of slot number and generation, so a stale handle is detected and never refers to another request.
//! Starting and completing a request allocates no memory once the table has grown to the program's working set.

use regatta_memory::views::Views;

use crate::error::Error;
use crate::matching::Posted;
use crate::transport::Peer;

/// The caller's handle of a request. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

impl Handle {
    /// An operation that was complete when it was started, as most small sends are. It has no slot and is always complete. The generation of a
    /// request never uses this bit.
    pub const COMPLETE: Handle = Handle(1 << 63);
}

/// Source of an operation without a peer.
pub const NOBODY: i32 = -2;

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The sender of the message: its index in the job, or [`NOBODY`].
    pub source: i32,
    /// The message's tag.
    pub tag: i32,
    /// Length of the message in bytes, even if it was truncated.
    pub length: usize,
    /// The context in which it was received.
    pub context: u32,
}

impl Status {
    /// The status of a send, or of an operation without a peer.
    pub const EMPTY: Status = Status {
        source: NOBODY,
        tag: -1,
        length: 0,
        context: 0,
    };
}

/// The meaning of a send's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The buffer may be reused.
    Standard,
    /// The buffer may be reused, and the receiver has begun to receive.
    Synchronous,
}

/// The event that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The slot is free. Contains the next free slot.
    Free(u32),
    /// A receive without a message yet. Contains its number in the table of posted receives.
    Posted(u32),
    /// A send to another task that is not entirely handed to the transport. Synchronous until its receiver has begun.
    Sending(Mode),
    /// A receive whose data is being transferred, or a send that waits here: to this task itself, or because its receiver is gone.
    Moving,
    /// A collective in progress.
    Collective,
    /// Complete.
    Done,
}

impl Stage {
    /// Returns whether it is a send, or a receive whose data is being transferred.
    pub(crate) fn is_moving(self) -> bool {
        matches!(self, Stage::Sending(_) | Stage::Moving)
    }
}

/// Sends to other tasks whose completion calls back. No caller waits for them, but the program relies on their completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallingSends {
    /// Number of sends that are complete once they are handed to the transport.
    pub(crate) standard: usize,
    /// Number of sends that wait for their receivers to begin.
    pub(crate) synchronous: usize,
}

impl CallingSends {
    fn of(&mut self, mode: Mode) -> &mut usize {
        match mode {
            Mode::Standard => &mut self.standard,
            Mode::Synchronous => &mut self.synchronous,
        }
    }
}

/// Its size is a power of two, so that computing its address needs no multiplication.
#[repr(align(64))]
pub(crate) struct Request {
    generation: u32,
    pub(crate) stage: Stage,
    pub(crate) status: Status,
    pub(crate) error: Option<Error>,
    /// Destination of the message, for receives.
    pub(crate) views: Views,
    /// The callback's number, if the completion calls back.
    pub(crate) callback: Option<u64>,
}

const NIL: u32 = u32::MAX;

/// All requests of an engine.
pub(crate) struct Requests {
    slots: Vec<Request>,
    free: u32,
    /// Callbacks of completed requests that were not called yet.
    due_callbacks: Vec<(u64, Status, Option<Error>)>,
    calling_sends: CallingSends,
}

impl Requests {
    pub(crate) fn new() -> Requests {
        Requests {
            slots: Vec::new(),
            free: NIL,
            due_callbacks: Vec::new(),
            calling_sends: CallingSends::default(),
        }
    }

    /// Marks the callback of a request that is already complete as due.
    pub(crate) fn call_at_once(&mut self, number: u64, status: Status, error: Option<Error>) {
        self.due_callbacks.push((number, status, error));
    }

    /// Returns whether callbacks are due.
    #[inline(always)]
    pub(crate) fn has_due_callbacks(&self) -> bool {
        !self.due_callbacks.is_empty()
    }

    /// Removes and returns the callbacks that are due.
    pub(crate) fn take_due_callbacks(&mut self) -> Vec<(u64, Status, Option<Error>)> {
        std::mem::take(&mut self.due_callbacks)
    }

    /// Allocates a slot for a new request.
    #[inline(always)]
    pub(crate) fn add(&mut self, stage: Stage, status: Status, views: Views) -> u32 {
        if self.free == NIL {
            return self.grow(stage, status, views);
        }
        let id = self.free;
        let slot = &mut self.slots[id as usize];
        if let Stage::Free(next) = slot.stage {
            self.free = next;
        }
        slot.stage = stage;
        slot.status = status;
        slot.views = views;
        id
    }

    /// Adds a receive that was complete when it was started. It is written field by field, since copying a status built elsewhere causes a failed
    /// store-to-load forwarding.
    #[inline(always)]
    pub(crate) fn add_received(
        &mut self,
        source: Peer,
        context: u32,
        tag: i32,
        length: usize,
    ) -> Handle {
        if self.free == NIL {
            self.add_free();
        }
        let id = self.free;
        let slot = &mut self.slots[id as usize];
        if let Stage::Free(next) = slot.stage {
            self.free = next;
        }
        slot.stage = Stage::Done;
        slot.status.source = source as i32;
        slot.status.tag = tag;
        slot.status.length = length;
        slot.status.context = context;
        Handle((slot.generation as u64) << 32 | (id as u64 + 1))
    }

    #[cold]
    fn add_free(&mut self) {
        let id = self.add(Stage::Done, Status::EMPTY, Views::none());
        self.release(id);
    }

    /// Releases a request that is complete without error, and returns its status. The status is read field by field, as it was written. Returns
    /// `None` for any other request.
    #[inline(always)]
    pub(crate) fn settle(&mut self, handle: Handle) -> Option<Status> {
        let id = (handle.0 as u32).wrapping_sub(1);
        let slot = self.slots.get_mut(id as usize)?;
        if slot.generation != (handle.0 >> 32) as u32
            || slot.stage != Stage::Done
            || slot.error.is_some()
            || !matches!(slot.views, Views::Block(..))
        {
            return None;
        }
        let status = Status {
            source: slot.status.source,
            tag: slot.status.tag,
            length: slot.status.length,
            context: slot.status.context,
        };
        self.settle_at(id);
        Some(status)
    }

    /// Releases the request in slot `id`, which is complete without error, or whose error is dropped.
    #[inline(always)]
    pub(crate) fn settle_at(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        slot.generation = slot.generation.wrapping_add(1) & 0x7fff_ffff;
        slot.stage = Stage::Free(self.free);
        self.free = id;
    }

    /// Adds a pending receive into one block. Returns `None`, without effect, if there is no free slot, or a receive is posted that selects other
    /// messages. No memory is allocated or freed, so the code on this path contains no calls.
    #[inline(always)]
    pub(crate) fn add_posted(
        &mut self,
        posted: &mut Posted<u32>,
        (source, context, tag): (Peer, u32, i32),
        (at, len): (*mut u8, usize),
    ) -> Option<Handle> {
        // No slot has the number `NIL`.
        let id = self.free;
        let slot = self.slots.get_mut(id as usize)?;
        let (Stage::Free(next), Views::Block(to, room)) = (slot.stage, &mut slot.views) else {
            return None;
        };
        let number = posted.post_alike(context, source, tag, id)?;
        self.free = next;
        slot.stage = Stage::Posted(number);
        slot.status.source = NOBODY;
        slot.status.tag = -1;
        slot.status.length = 0;
        slot.status.context = context;
        (*to, *room) = (at, len);
        Some(Handle((slot.generation as u64) << 32 | (id as u64 + 1)))
    }

    /// Returns the memory of the receive in slot `id` if `handle` is its handle, its memory is one block, and its completion does not call back.
    #[inline(always)]
    pub(crate) fn plain(&self, handle: Handle, id: u32) -> Option<Views> {
        let slot = self.slots.get(id as usize)?;
        match slot.views {
            Views::Block(at, len)
                if handle.0 == (slot.generation as u64) << 32 | (id as u64 + 1)
                    && slot.callback.is_none() =>
            {
                Some(Views::Block(at, len))
            }
            _ => None,
        }
    }

    #[cold]
    fn grow(&mut self, stage: Stage, status: Status, views: Views) -> u32 {
        self.slots.push(Request {
            generation: 0,
            stage,
            status,
            error: None,
            views,
            callback: None,
        });
        self.slots.len() as u32 - 1
    }

    #[inline(always)]
    pub(crate) fn handle(&self, id: u32) -> Handle {
        Handle((self.slots[id as usize].generation as u64) << 32 | (id as u64 + 1))
    }

    /// Returns the slot of a handle, if the handle is valid and the request's completion does not call back.
    #[inline(always)]
    pub(crate) fn find(&self, handle: Handle) -> Option<u32> {
        let id = (handle.0 as u32).wrapping_sub(1);
        let slot = self.slots.get(id as usize)?;
        let live = slot.generation == (handle.0 >> 32) as u32
            && !matches!(slot.stage, Stage::Free(_))
            && slot.callback.is_none();
        live.then_some(id)
    }

    /// Does the same as `find`, also for a request whose completion calls back.
    pub(crate) fn find_any(&self, handle: Handle) -> Option<u32> {
        let id = (handle.0 as u32).wrapping_sub(1);
        let slot = self.slots.get(id as usize)?;
        let live =
            slot.generation == (handle.0 >> 32) as u32 && !matches!(slot.stage, Stage::Free(_));
        live.then_some(id)
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: u32) -> &Request {
        &self.slots[id as usize]
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Request {
        &mut self.slots[id as usize]
    }

    #[inline(always)]
    pub(crate) fn is_done(&self, id: u32) -> bool {
        self.slots[id as usize].stage == Stage::Done
    }

    /// Makes the completion of a request call back with this number.
    pub(crate) fn call_back(&mut self, id: u32, number: u64) {
        let slot = &mut self.slots[id as usize];
        slot.callback = Some(number);
        if let Stage::Sending(mode) = slot.stage {
            *self.calling_sends.of(mode) += 1;
        }
    }

    /// Records that the receiver of a synchronous send has begun: from now on it is a standard send.
    pub(crate) fn begun(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        if let Stage::Sending(mode @ Mode::Synchronous) = slot.stage {
            slot.stage = Stage::Sending(Mode::Standard);
            if slot.callback.is_some() {
                *self.calling_sends.of(mode) -= 1;
                *self.calling_sends.of(Mode::Standard) += 1;
            }
        }
    }

    /// Returns the numbers of sends whose completion calls back.
    pub(crate) fn calling_sends(&self) -> CallingSends {
        self.calling_sends
    }

    /// Completes a request.
    #[inline(always)]
    pub(crate) fn complete(&mut self, id: u32, error: Option<Error>) {
        let slot = &mut self.slots[id as usize];
        let stage = std::mem::replace(&mut slot.stage, Stage::Done);
        slot.error = error;
        if slot.callback.is_some() {
            self.hand_over(id, stage);
        }
    }

    #[cold]
    fn hand_over(&mut self, id: u32, stage: Stage) {
        if let Stage::Sending(mode) = stage {
            *self.calling_sends.of(mode) -= 1;
        }
        let callback = self.slots[id as usize].callback;
        let (status, error) = self.release(id);
        if let Some(number) = callback {
            self.due_callbacks.push((number, status, error));
        }
    }

    /// Frees the slot. Returns the status and error of its request.
    #[inline(always)]
    pub(crate) fn release(&mut self, id: u32) -> (Status, Option<Error>) {
        let slot = &mut self.slots[id as usize];
        slot.generation = slot.generation.wrapping_add(1) & 0x7fff_ffff;
        slot.stage = Stage::Free(self.free);
        slot.callback = None;
        if !matches!(slot.views, Views::Block(..)) {
            slot.views = Views::none();
        }
        self.free = id;
        (slot.status.clone(), slot.error.take())
    }

    /// Completes a receive with a message of `length` bytes from `source`.
    #[inline(always)]
    pub(crate) fn received(&mut self, id: u32, source: Peer, tag: i32, length: usize) {
        let slot = &mut self.slots[id as usize];
        slot.status.source = source as i32;
        slot.status.tag = tag;
        slot.status.length = length;
        let capacity = slot.views.len();
        let error = (length > capacity).then_some(Error::Truncated { length, capacity });
        self.complete(id, error);
    }
}
