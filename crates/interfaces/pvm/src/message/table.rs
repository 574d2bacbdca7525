//! All buffers of a task, by number.
//!
//! A buffer's number consists of the index of its slot and, in the higher bits, a count of the slot's uses. So the
//! number of a freed buffer is invalid and does not name the next buffer in the slot. Slots and their memory are
//! reused. A slot that has used all its numbers rests, so that they are not repeated soon.

use std::collections::VecDeque;
use std::ptr::copy_nonoverlapping;

use super::buffer::{Buffer, Form, Info};
use super::codes::{self, BAD_PARAM, NO_BUF, NO_MEM, NO_SUCH_BUF, encoding};
use super::in_place::Piece;
use super::storage::{HEAD, Shelf, Storage};

const INDEX_BITS: u32 = 20;
const INDEX_MASK: i32 = (1 << INDEX_BITS) - 1;
/// Number of uses after which the count wraps.
const USES: i32 = 1 << (31 - INDEX_BITS);
/// Minimum number of resting slots. Before a number is repeated, at least this many times [`USES`] other buffers are
/// made.
const MIN_RESTING: usize = 4096;
/// Index that means no slot.
const NOWHERE: usize = usize::MAX;

/// In-place messages of up to this many bytes are sent from one block: a copy costs less than sending pieces.
const GATHER: usize = 2048;
/// In-place messages of at least this many bytes are copied to memory that others can read. Shorter ones are sent
/// faster directly from the program's memory, because both sides copy at the same time: 64 KiB takes 5.2 us instead of
/// 6.7 us.
const IN_PLACE_SHARED_FROM: usize = 512 << 10;

struct Slot {
    /// Number of the buffer or, in a free slot, of its next buffer.
    id: i32,
    used: bool,
    buffer: Buffer,
}

/// All buffers of a task.
pub struct Buffers {
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Slots that have used all their numbers; the one that has rested longest is in front.
    resting: VecDeque<usize>,
    pub(super) shelf: Shelf,
    send: usize,
    receive: usize,
    /// This task's tid; -1 before it joins PVM.
    pub me: i32,
}

/// A message to be sent.
pub struct Outgoing {
    /// [`HEAD`] bytes for the sender's header.
    pub head: *mut u8,
    /// Size of the block at `head` in bytes, if the message is one block.
    pub len: usize,
    /// NULL, or the header and the pieces in the program's memory.
    pub pieces: *const Piece,
    /// Number of pieces.
    pub count: usize,
    /// The block that receivers can read in place, or NULL.
    pub block: *mut u8,
    /// The encoding that the receiver has to decode.
    pub encoding: i32,
    /// Wait id, from `pvm_setminfo`.
    pub wid: i32,
    /// Size of the message without the header, in bytes.
    pub total: usize,
}

/// Returns the slot's next number after `id`.
fn next_use(id: i32) -> i32 {
    let uses = ((id >> INDEX_BITS) + 1) % USES;
    uses << INDEX_BITS | id & INDEX_MASK
}

/// Returns whether a slot has used all its numbers, if this is its next one.
#[inline(always)]
fn is_first_use(id: i32) -> bool {
    id <= INDEX_MASK
}

fn info_of(me: i32, code: i32) -> Result<Info, i32> {
    let encoding = match code {
        encoding::DEFAULT => codes::XDR,
        encoding::RAW => codes::RAW,
        encoding::IN_PLACE => codes::IN_PLACE,
        encoding::TRACE => codes::TRACE,
        _ => return Err(BAD_PARAM),
    };
    let src = me;
    Ok(Info {
        src,
        encoding,
        ..Info::default()
    })
}

impl Buffers {
    /// Returns an empty table.
    pub const fn new() -> Buffers {
        Buffers {
            slots: Vec::new(),
            free: Vec::new(),
            resting: VecDeque::new(),
            shelf: Shelf::new(),
            send: NOWHERE,
            receive: NOWHERE,
            me: -1,
        }
    }

    #[inline(always)]
    fn index(&self, id: i32) -> Option<usize> {
        let index = ((id & INDEX_MASK) as usize).wrapping_sub(1);
        let slot = self.slots.get(index)?;
        (slot.id == id && slot.used).then_some(index)
    }

    /// Returns the slot index of a buffer number that a program passes.
    #[inline(always)]
    fn named(&self, id: i32) -> Result<usize, i32> {
        if id <= 0 {
            return Err(BAD_PARAM);
        }
        self.index(id).ok_or(NO_SUCH_BUF)
    }

    #[inline(always)]
    fn id_at(&self, index: usize) -> i32 {
        self.slots.get(index).map_or(0, |slot| slot.id)
    }

    /// Returns a slot for a new buffer.
    #[inline(always)]
    fn claim(&mut self) -> Result<usize, i32> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.further_slot()?,
        };
        self.slots[index].used = true;
        Ok(index)
    }

    #[cold]
    fn further_slot(&mut self) -> Result<usize, i32> {
        let index = self.slots.len();
        let is_full = index >= INDEX_MASK as usize;
        if is_full || self.resting.len() > MIN_RESTING {
            match self.resting.pop_front() {
                Some(rested) => return Ok(rested),
                None if is_full => return Err(NO_MEM),
                None => {}
            }
        }
        self.slots.push(Slot {
            id: index as i32 + 1,
            used: false,
            buffer: Buffer::empty(),
        });
        // Reserve, so that freeing a buffer never allocates.
        self.free.reserve(self.slots.len());
        self.resting.reserve(self.slots.len());
        Ok(index)
    }

    #[inline(always)]
    fn release(&mut self, index: usize) {
        if self.send == index {
            self.send = NOWHERE;
        }
        if self.receive == index {
            self.receive = NOWHERE;
        }
        let slot = &mut self.slots[index];
        slot.id = next_use(slot.id);
        slot.used = false;
        let storage = std::mem::replace(&mut slot.buffer.storage, Storage::none());
        slot.buffer.left.clear();
        self.shelf.put(storage);
        match is_first_use(slot.id) {
            true => self.resting.push_back(index),
            false => self.free.push(index),
        }
    }

    /// Returns all existing buffers with their numbers.
    pub(super) fn in_use(&self) -> impl Iterator<Item = (i32, &Buffer)> {
        let used = self.slots.iter().filter(|slot| slot.used);
        used.map(|slot| (slot.id, &slot.buffer))
    }

    #[cfg(test)]
    pub fn slots_in_use(&self) -> usize {
        self.slots.len() - self.free.len() - self.resting.len()
    }

    /// Makes a buffer (`pvm_mkbuf`), and returns its number.
    pub fn make(&mut self, code: i32) -> Result<i32, i32> {
        let info = info_of(self.me, code)?;
        let index = self.claim()?;
        self.slots[index].buffer.restart(info);
        self.begin_trace(index)?;
        Ok(self.slots[index].id)
    }

    fn begin_trace(&mut self, index: usize) -> Result<(), i32> {
        let buffer = &mut self.slots[index].buffer;
        match buffer.form {
            Form::Trace => buffer.pack_trace_head(&mut self.shelf),
            _ => Ok(()),
        }
    }

    /// Makes a new send buffer that reuses the previous one's memory (`pvm_initsend`), and returns its number.
    #[inline(always)]
    pub fn init_send(&mut self, code: i32) -> Result<i32, i32> {
        let info = info_of(self.me, code)?;
        if self.send == NOWHERE {
            self.send = self.claim()?;
        } else if is_first_use(next_use(self.id_at(self.send))) {
            self.release(self.send);
            self.send = self.claim()?;
        } else {
            let slot = &mut self.slots[self.send];
            slot.id = next_use(slot.id);
            if slot.buffer.storage.is_read_from(0) {
                slot.buffer.storage = Storage::none();
            }
        }
        let slot = &mut self.slots[self.send];
        slot.buffer.restart(info);
        slot.buffer.open_to_pack();
        let id = slot.id;
        if info.encoding == codes::TRACE {
            self.begin_trace(self.send)?;
        }
        Ok(id)
    }

    /// Frees a buffer (`pvm_freebuf`). Buffer 0 means none and may be freed.
    pub fn free(&mut self, id: i32) -> Result<(), i32> {
        if id == 0 {
            return Ok(());
        }
        let index = self.named(id)?;
        self.release(index);
        Ok(())
    }

    /// Returns the numbers of the current send and receive buffers; 0 means none.
    pub fn current(&self) -> (i32, i32) {
        (self.id_at(self.send), self.id_at(self.receive))
    }

    /// Sets the send buffer (`pvm_setsbuf`), and returns the previous number.
    pub fn set_send(&mut self, id: i32) -> Result<i32, i32> {
        let index = if id == 0 { NOWHERE } else { self.named(id)? };
        let before = self.id_at(self.send);
        self.send = index;
        if let Some(slot) = self.slots.get_mut(index) {
            if self.receive == index {
                self.receive = NOWHERE;
            }
            slot.buffer.open_to_pack();
        }
        // A buffer that was both current ones has been reported as the previous send buffer.
        Ok(before)
    }

    /// Sets the receive buffer (`pvm_setrbuf`), and returns the previous number.
    pub fn set_receive(&mut self, id: i32) -> Result<i32, i32> {
        let index = if id == 0 { NOWHERE } else { self.named(id)? };
        let before = self.id_at(self.receive);
        self.receive = index;
        if let Some(slot) = self.slots.get_mut(index) {
            if self.send == index {
                self.send = NOWHERE;
            }
            slot.buffer.open_to_unpack();
        }
        Ok(before)
    }

    /// Returns the current send buffer, and the shelf with which it grows.
    #[inline(always)]
    pub fn sending(&mut self) -> Result<(&mut Buffer, &mut Shelf), i32> {
        match self.slots.get_mut(self.send) {
            Some(slot) => Ok((&mut slot.buffer, &mut self.shelf)),
            None => Err(NO_BUF),
        }
    }

    /// Returns the current receive buffer.
    #[inline(always)]
    pub fn receiving(&mut self) -> Result<&mut Buffer, i32> {
        match self.slots.get_mut(self.receive) {
            Some(slot) => Ok(&mut slot.buffer),
            None => Err(NO_BUF),
        }
    }

    /// Returns a buffer by its number.
    pub fn buffer(&mut self, id: i32) -> Result<&mut Buffer, i32> {
        let index = self.named(id)?;
        Ok(&mut self.slots[index].buffer)
    }

    /// Returns the current send buffer and another one, which a program names.
    pub(super) fn sending_and(
        &mut self,
        id: i32,
    ) -> Result<(&mut Buffer, &mut Buffer, &mut Shelf), i32> {
        let other = self.named(id)?;
        if self.send == NOWHERE {
            return Err(NO_BUF);
        }
        let both = self.slots.get_disjoint_mut([self.send, other]);
        let [sending, other] = both.map_err(|_| BAD_PARAM)?;
        Ok((&mut sending.buffer, &mut other.buffer, &mut self.shelf))
    }

    /// Makes a buffer of a received message, and returns its number.
    #[inline(always)]
    pub fn accept(&mut self, storage: Storage, len: usize, info: Info) -> Result<i32, i32> {
        let index = self.claim()?;
        let slot = &mut self.slots[index];
        slot.buffer.storage = storage;
        slot.buffer.set_message(len, info);
        Ok(slot.id)
    }

    /// Makes a received buffer the current receive buffer. The previous one is freed.
    #[inline(always)]
    pub fn set_received(&mut self, id: i32) {
        let index = self.index(id).unwrap_or(NOWHERE);
        if self.receive != NOWHERE && self.receive != index {
            self.release(self.receive);
        }
        self.receive = index;
        if let Some(slot) = self.slots.get_mut(index) {
            if self.send == index {
                self.send = NOWHERE;
            }
            slot.buffer.open_to_unpack();
        }
    }

    /// Returns a buffer (0: the current send buffer) for sending.
    #[inline(always)]
    pub fn outgoing(&mut self, id: i32) -> Result<Outgoing, i32> {
        let index = match id {
            0 if self.send == NOWHERE => return Err(NO_BUF),
            0 => self.send,
            id => self.named(id)?,
        };
        let buffer = &mut self.slots[index].buffer;
        if buffer.form == Form::InPlace {
            return outgoing_in_place(buffer, &mut self.shelf);
        }
        if buffer.storage.capacity() == 0 || buffer.storage.is_foreign() {
            let len = buffer.len;
            self.shelf.exchange(&mut buffer.storage, len, len)?;
        }
        Ok(one_block(buffer, buffer.len))
    }

    /// Records in a buffer (0: the current send buffer) where it has been sent. Its source does not change.
    #[inline(always)]
    pub fn sent(&mut self, id: i32, dst: i32, tag: i32, ctx: i32) {
        let index = match id {
            0 => self.send,
            id => self.index(id).unwrap_or(NOWHERE),
        };
        if let Some(slot) = self.slots.get_mut(index) {
            let info = slot.buffer.info;
            slot.buffer.info = Info {
                dst,
                tag,
                ctx,
                ..info
            };
        }
    }

    /// Returns whether the memory of the current receive buffer belongs to another task.
    #[inline(always)]
    pub fn received_is_foreign(&self) -> bool {
        let received = self.slots.get(self.receive);
        received.is_some_and(|slot| slot.buffer.storage.is_foreign())
    }

    /// Copies all messages in shared memory into private memory: the shared memory is about to be unmapped.
    pub fn keep_to_oneself(&mut self) {
        for slot in &mut self.slots {
            let buffer = &mut slot.buffer;
            if buffer.storage.is_own() {
                continue;
            }
            match Storage::new(buffer.len) {
                // SAFETY: both bodies are at least `len` bytes long, in different blocks.
                Ok(own) => unsafe {
                    copy_nonoverlapping(buffer.storage.body(), own.body(), buffer.len);
                    buffer.storage = own;
                },
                // There is no memory for a copy.
                Err(_) => {
                    buffer.storage = Storage::none();
                    buffer.set_message(0, buffer.info);
                }
            }
        }
    }
}

#[inline(always)]
fn one_block(buffer: &mut Buffer, total: usize) -> Outgoing {
    Outgoing {
        block: buffer.storage.publish(total),
        head: buffer.storage.as_mut_ptr(),
        len: HEAD + total,
        pieces: std::ptr::null(),
        count: 0,
        encoding: buffer.info.encoding,
        wid: buffer.info.wid,
        total,
    }
}

/// Returns an in-place message for sending. Its receiver gets a raw message.
fn outgoing_in_place(buffer: &mut Buffer, shelf: &mut Shelf) -> Result<Outgoing, i32> {
    let total = buffer.left.total();
    if buffer.storage.is_read_from(0) {
        // It contains an earlier message, or this one, which was sent before.
        buffer.storage = Storage::none();
    }
    let room = if total <= GATHER { total } else { 0 };
    if total >= IN_PLACE_SHARED_FROM && buffer.storage.capacity() < total {
        buffer.storage = Storage::none();
        shelf.exchange(&mut buffer.storage, total, 0)?;
    } else if buffer.storage.capacity() == 0 {
        shelf.exchange(&mut buffer.storage, room, 0)?;
    }
    let mut outgoing = one_block(buffer, total);
    outgoing.encoding = codes::RAW;
    if total <= GATHER || !outgoing.block.is_null() {
        // SAFETY: a program keeps the memory of an in-place message until it has been sent. Any block has room for
        // `GATHER` bytes, and a shareable block was allocated for `total`.
        unsafe { buffer.left.gather(buffer.storage.body()) };
    } else {
        let pieces = buffer.left.with_head(outgoing.head, HEAD);
        (outgoing.pieces, outgoing.count) = (pieces.as_ptr(), pieces.len());
    }
    Ok(outgoing)
}
