//! Requests: operations that have been started and may not be complete.
//!
//! A request lives in a slot; its handle is slot number and generation, so a stale handle is
//! noticed and never reaches somebody else's request. Starting and completing one allocates
//! nothing once the table has grown to the program's working set.

use regatta_memory::views::Views;

use crate::error::Error;
use crate::matching::Posted;
use crate::transport::Peer;

/// A request, as callers hold it. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

impl Handle {
    /// An operation that was complete when it was started, as most small sends are: there is nothing to remember about it,
    /// and it is complete whenever somebody asks. No generation of a request reaches this bit.
    pub const COMPLETE: Handle = Handle(1 << 63);
}

/// Source of an operation with nobody.
pub const NOBODY: i32 = -2;

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The sender of the message: index in the job, or [`NOBODY`].
    pub source: i32,
    /// The message's tag.
    pub tag: i32,
    /// Bytes of the message, also when it was truncated.
    pub length: usize,
    /// The context it was received in.
    pub context: u32,
}

impl Status {
    /// Of a send, or of an operation with nobody.
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
    /// And the receiver has begun to receive.
    Synchronous,
}

/// The event that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The slot is free; next free slot.
    Free(u32),
    /// A receive without a message yet; its number in the table of posted receives.
    Posted(u32),
    /// A send to another task that has not all been handed to the transport; synchronous until its receiver has begun.
    Sending(Mode),
    /// A receive whose bytes flow, or a send that waits here: for this task itself, or because its receiver is gone.
    Moving,
    /// A collective on its way.
    Collective,
    /// Complete.
    Done,
}

impl Stage {
    /// Returns whether it is a send, or a receive whose bytes flow.
    pub(crate) fn is_moving(self) -> bool {
        matches!(self, Stage::Sending(_) | Stage::Moving)
    }
}

/// Sends to other tasks whose completion calls back: no caller waits for them, but the program counts on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallingSends {
    /// How many are complete when they have been handed to the transport.
    pub(crate) standard: usize,
    /// How many wait for their receivers to begin.
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

/// As large as a power of two, so that its place is found without a multiplication.
#[repr(align(64))]
pub(crate) struct Request {
    generation: u32,
    pub(crate) stage: Stage,
    pub(crate) status: Status,
    pub(crate) error: Option<Error>,
    /// Receives: where the message goes.
    pub(crate) views: Views,
    /// Somebody wants to be called: their number for it.
    pub(crate) callback: Option<u64>,
}

const NIL: u32 = u32::MAX;

/// All requests of an engine.
pub(crate) struct Requests {
    slots: Vec<Request>,
    free: u32,
    /// Callbacks of requests that have completed and not been called yet.
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

    /// Hands out a callback number as due, of a request that is complete.
    pub(crate) fn call_at_once(&mut self, number: u64, status: Status, error: Option<Error>) {
        self.due_callbacks.push((number, status, error));
    }

    /// Returns whether callbacks are due.
    #[inline(always)]
    pub(crate) fn has_due_callbacks(&self) -> bool {
        !self.due_callbacks.is_empty()
    }

    /// Takes the callbacks that are due.
    pub(crate) fn take_due_callbacks(&mut self) -> Vec<(u64, Status, Option<Error>)> {
        std::mem::take(&mut self.due_callbacks)
    }

    /// Takes a slot for a new request.
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

    /// Adds a receive that was complete when it was started. Written field by field: a status built
    /// elsewhere and copied here costs a failed store-to-load forwarding.
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

    /// Releases a request that is complete without error. Its status is read field by field, as it was written.
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

    /// Releases the request in slot `id`, which is complete without error, or as good as that.
    #[inline(always)]
    pub(crate) fn settle_at(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        slot.generation = slot.generation.wrapping_add(1) & 0x7fff_ffff;
        slot.stage = Stage::Free(self.free);
        self.free = id;
    }

    /// Adds a receive into one block that waits for its message (of `source`, with `context` and `tag`), if there is a free slot and no other receive is
    /// posted but such of the same messages. Nothing is dropped and nothing grows: all on the way to this is one leaf.
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

    /// Returns the memory of the receive in slot `id`, if this is its handle, it goes to one block, and calls nobody.
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

    /// Returns the slot of a handle, if it is a live one.
    #[inline(always)]
    pub(crate) fn find(&self, handle: Handle) -> Option<u32> {
        let id = (handle.0 as u32).wrapping_sub(1);
        let slot = self.slots.get(id as usize)?;
        let live = slot.generation == (handle.0 >> 32) as u32
            && !matches!(slot.stage, Stage::Free(_))
            && slot.callback.is_none();
        live.then_some(id)
    }

    /// As `find`, also of a request whose completion calls back.
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

    /// Has the completion of a request call back.
    pub(crate) fn call_back(&mut self, id: u32, number: u64) {
        let slot = &mut self.slots[id as usize];
        slot.callback = Some(number);
        if let Stage::Sending(mode) = slot.stage {
            *self.calling_sends.of(mode) += 1;
        }
    }

    /// Notes that the receiver of a send has begun: the rest of it is as that of any other.
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

    /// Returns the sends whose completion calls back.
    pub(crate) fn calling_sends(&self) -> CallingSends {
        self.calling_sends
    }

    /// Completes a request: its operation is over.
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

    /// Frees the slot. Returns what it held.
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

    /// Completes a receive from `source` of `length` bytes.
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
