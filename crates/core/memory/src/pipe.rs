//! A pipe: the stream buffer a large message flows through while both sides copy at once.
//!
//! The sender copies the message into the pipe a chunk at a time; the receiver copies chunks out as they become
//! available. Two cores copy side by side through memory that stays in their caches, which moves a message at the speed
//! of one `memcpy`, while a single copy by the kernel moves it at a third of that
//! (docs/decisions/2026-11-21-pipe-for-large-messages.md).
//!
//! *Turns.* `turn` says who may touch the sender's part. `FREE` -> `FILLING` while the sender copies; then back to
//! `FREE`, or to `COMPLETE` after the end of the message. A receiver that has nothing to read while the sender is away
//! may take the message over (`FREE` -> `PULLED`) and read the rest directly from the sender's memory; it then stores
//! `DONE`, or `FREE` again if the memory could not be read. The pipe holds the address of the message in the sender's
//! memory; the sender may move the message in a turn of its own. After `COMPLETE` the receiver gives the pipe back,
//! after `DONE` the sender. A sender that gives up leaves `FILLING` for good and reports that in another way; then the
//! receiver gives the pipe back as well, and what it was just reading from the sender's memory is invalid.
//!
//! *Window.* A message cycles through the first `window` bytes of the data, from the front or from where the previous
//! message ended. The side that takes the pipe for a message chooses the window, and stores it before the other side
//! knows of the pipe. A small window stays in the caches of both cores; a window larger than a core's own cache is
//! written back to the shared cache before it is written again, which is faster if the two cores are far apart.
//!
//! *Tasks that die.* A task that no longer uses a pipe, and does not give it back, says so ([`Pipe::let_go`]). A pipe
//! whose ends have both finished or are gone is reused ([`Pool::take`], [`Pool::adopt`]).
//!
//! *Rules of [`Pipe::fill`] and [`Pipe::drain`]:* no lock, no allocation, no system call. Only [`Pipe::pull`] makes
//! system calls. (docs/hot-paths.md names the test.)

use std::ptr::NonNull;

use crate::ends::{End, Ends, Made, Use};
use crate::list::List;
use crate::making::Maker;
use crate::remote::{self, Remote};
use crate::stack::{self, Stack};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::ticks::{cost_of_kib, ticks};
use crate::views::Views;
use crate::{Corrupt, segment::Segment};

/// The sender may fill; the receiver may take over.
pub const FREE: u32 = 0;
/// The sender is filling.
pub const FILLING: u32 = 1;
/// The receiver is reading the rest from the sender's memory.
pub const PULLED: u32 = 2;
/// The receiver has read the rest from the sender's memory.
pub const DONE: u32 = 3;
/// The whole message has been put in: the sender will not touch the pipe again.
pub const COMPLETE: u32 = 4;

/// Offset of the data in a pipe, in bytes.
pub const CONTROL: usize = 512;
/// Alignment of the beginning of a message, in bytes: a cache line.
const LINE: u64 = 64;
/// Minimum window in bytes, unless the pipe itself is smaller.
const MIN_WINDOW_BYTES: u64 = 4096;

/// A message that needs a pipe.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The source and the destination.
    pub tasks: [u32; 2],
    /// Number of bytes of the pipe's data through which the message cycles; rounded down to a power of two.
    pub window: u32,
    /// Length of the message, in bytes.
    pub length: u64,
    /// Whether the message begins where the previous one ended, instead of at the front. Short messages then cycle
    /// through the whole window, too.
    pub goes_on: bool,
}

#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Apart<T>(T);

/// Words written by the receiver.
#[repr(C)]
#[derive(Debug, Default)]
struct Drained {
    bytes: AtomicU64,
    /// Ticks per KiB that the receiver needed to copy out, in the last chunk; 0 if not known yet.
    cost: AtomicU64,
}

/// The shared words of a pipe, and the protocol of its turns: everything that sender and receiver tell each other. The
/// model checker runs this very code; see `tests/models_loom.rs`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Control {
    /// Bytes the sender has put in.
    filled: Apart<AtomicU64>,
    /// Bytes the receiver has taken out.
    drained: Apart<Drained>,
    /// Whose turn it is; see the module.
    turn: Apart<AtomicU32>,
    /// Address of the message in the sender's memory; 0 if it is not contiguous there.
    address: AtomicU64,
    /// The window, in bytes, and the offset in it at which the message begins.
    window: AtomicU32,
    base: AtomicU32,
    /// Where the next message begins, before rounding and reduction to its window.
    end: AtomicU64,
    /// Link of the pool's stack while the pipe is on it; and 1 from before the pipe is pushed until after it is popped.
    pub(crate) next_free: stack::Link,
    pub(crate) stacked: AtomicU32,
    /// The sender and the receiver that use the pipe.
    pub(crate) ends: Ends,
}

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("pipe", Control { filled, drained, turn, address, window, base, end, next_free, stacked, ends } CONTROL FREE FILLING PULLED DONE COMPLETE);

/// The result of a sender's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// This many bytes were put in; the message has more.
    Some(usize),
    /// The last byte was put in.
    All,
    /// The receiver has taken over and is still reading.
    TakenOver,
    /// The receiver has taken over and has read everything.
    Pulled,
}

/// Which side has to give back a pipe that its sender has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The receiver, as soon as it has been notified.
    Receivers,
    /// The sender: the receiver had taken over and has finished.
    Senders,
}

impl Control {
    /// Sender: resets the words. No other task may hold the pipe.
    pub fn reset(&self) {
        self.filled.0.store(0, Ordering::Relaxed);
        self.drained.0.bytes.store(0, Ordering::Relaxed);
        self.drained.0.cost.store(0, Ordering::Relaxed);
        self.address.store(0, Ordering::Relaxed);
        self.turn.0.store(FREE, Ordering::Release);
    }

    /// Sender: begins to fill and returns `None`. If it is not the sender's turn, returns why.
    #[inline]
    pub fn enter(&self) -> Result<Option<Filled>, Corrupt> {
        let turn = &self.turn.0;
        match turn.compare_exchange(FREE, FILLING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(None),
            Err(DONE) => Ok(Some(Filled::Pulled)),
            Err(PULLED) => Ok(Some(Filled::TakenOver)),
            Err(_) => Err(Corrupt {
                what: "a pipe's turn belongs to neither task",
            }),
        }
    }

    /// Sender: ends a turn, after which `at` bytes are in. `all` says whether this is the whole message.
    #[inline]
    pub fn leave(&self, at: u64, all: bool) {
        let done = if all { COMPLETE } else { FREE };
        // When everything is in, the receiver may give the pipe to another task as soon as it sees `filled`, so that
        // store must be the last.
        self.turn.0.store(done, Ordering::Release);
        self.filled.0.store(at, Ordering::Release);
    }

    /// Receiver: returns the number of bytes that are in.
    #[inline]
    pub fn filled(&self) -> u64 {
        self.filled.0.load(Ordering::Acquire)
    }

    /// Sender: returns the number of bytes that have been taken out.
    #[inline]
    pub fn drained(&self) -> u64 {
        self.drained.0.bytes.load(Ordering::Acquire)
    }

    /// Receiver: publishes that `at` bytes have been taken out, so that the sender may reuse their space.
    #[inline]
    pub fn publish_drained(&self, at: u64) {
        self.drained.0.bytes.store(at, Ordering::Release);
    }

    /// Sender: returns the ticks per KiB of the receiver's last copy; 0 if not known yet.
    #[inline]
    pub fn drain_cost(&self) -> u64 {
        self.drained.0.cost.load(Ordering::Relaxed)
    }

    /// Returns the address of the message. Reliable only in a turn of the caller's own; otherwise a hint.
    pub fn address(&self) -> u64 {
        self.address.load(Ordering::Relaxed)
    }

    /// Sender: sets the address of the message. Only in a turn of its own, or before others know of the pipe.
    pub fn set_address(&self, address: u64) {
        self.address.store(address, Ordering::Relaxed);
    }

    /// Sender: does what [`Pipe::give_up`] says.
    pub fn give_up(&self) -> GivenUp {
        match self.turn.0.swap(FILLING, Ordering::AcqRel) {
            DONE => GivenUp::Senders,
            _ => GivenUp::Receivers,
        }
    }

    /// Receiver: does what [`Pipe::take_over`] says.
    pub fn take_over(&self) -> bool {
        self.turn
            .0
            .compare_exchange(FREE, PULLED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Returns whether the receiver is reading from the sender's memory.
    pub fn is_taken_over(&self) -> bool {
        self.turn.0.load(Ordering::Relaxed) == PULLED
    }

    /// Receiver: ends the reading from the sender's memory (see [`Pipe::pull`]). Returns `false` if the sender has
    /// given up meanwhile.
    pub fn end_take_over(&self, all: bool) -> bool {
        let turn = if all { DONE } else { FREE };
        self.turn
            .0
            .compare_exchange(PULLED, turn, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// A process's handle on a pipe.
#[derive(Debug)]
pub struct Pipe {
    control: NonNull<Control>,
    data: NonNull<u8>,
    size: u64,
    offset: u64,
    /// Number of bytes that this side has moved.
    at: u64,
    /// Number of bytes that the other side has moved, as last read.
    other: u64,
    /// Number of bytes of the data that are in use (a power of two), and the offset in them at which the message
    /// begins.
    window: u64,
    base: u64,
    /// The use for which this handle was made; `None` if the pipe was not in use.
    of: Option<Use>,
}

// SAFETY: a pipe is a pair of pointers into a segment that outlives it; by the protocol each side writes its own words
// only.
unsafe impl Send for Pipe {}

impl Pipe {
    /// Returns how many bytes of the segment a pipe with `size` bytes of data needs.
    pub fn footprint(size: usize) -> usize {
        CONTROL + size
    }

    /// Returns the pipe at `offset` with `size` data bytes (a power of two). The segment must outlive it.
    pub fn at(segment: &Segment, offset: u64, size: usize) -> Result<Pipe, Corrupt> {
        if !offset.is_multiple_of(128) {
            return Err(Corrupt {
                what: "a pipe's offset is misaligned",
            });
        }
        let start = segment.at(offset, Pipe::footprint(size))?;
        Ok(Pipe {
            control: start.cast(),
            // SAFETY: the footprint checked above includes the control block.
            data: unsafe { start.add(CONTROL) },
            size: size as u64,
            offset,
            at: 0,
            other: 0,
            window: size as u64,
            base: 0,
            // SAFETY: the control block lies inside the segment and consists of atomics.
            of: unsafe { start.cast::<Control>().as_ref() }.ends.present(),
        })
    }

    /// Returns the pipe at `offset`, as [`Pipe::at`] does. Fails unless these two tasks use it.
    pub fn between(
        segment: &Segment,
        offset: u64,
        size: usize,
        tasks: [u32; 2],
    ) -> Result<Pipe, Corrupt> {
        let mut pipe = Pipe::at(segment, offset, size)?;
        pipe.look_at_window()?;
        let used = pipe.of.is_some_and(|of| {
            let ends = [of.source(), of.destination()];
            ends == tasks || ends == [tasks[1], tasks[0]]
        });
        used.then_some(pipe).ok_or(Corrupt {
            what: "a pipe belongs to other tasks",
        })
    }

    /// Returns the size of the data, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the offset of the pipe in the segment.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Declares that this side no longer touches the pipe. The other side may.
    pub fn let_go(&self, me: u32) {
        if let Some(of) = self.of {
            let side = match of.source() == me {
                true => End::Source,
                false => End::Destination,
            };
            self.control().ends.finish(of, side);
        }
    }

    fn control(&self) -> &Control {
        // SAFETY: the control block lies inside the segment (checked in `at`) and consists of atomics.
        unsafe { self.control.as_ref() }
    }

    /// Resets the pipe for a message. No other task may hold it.
    fn reset(&mut self, message: Message) {
        let control = self.control();
        control.reset();
        let window = (message.window as u64).clamp(MIN_WINDOW_BYTES.min(self.size), self.size);
        let window = 1 << window.ilog2();
        // The masks keep this inside the window, whatever another task has written to `end`.
        let base = match message.goes_on {
            true => control.end.load(Ordering::Relaxed) & (window - 1) & !(LINE - 1),
            false => 0,
        };
        control.window.store(window as u32, Ordering::Relaxed);
        control.base.store(base as u32, Ordering::Relaxed);
        let end = base.wrapping_add(message.length).wrapping_add(LINE - 1);
        control.end.store(end, Ordering::Relaxed);
        (self.at, self.other, self.window, self.base) = (0, 0, window, base);
    }

    /// Reads and checks the window of the message; for the side that did not choose it.
    fn look_at_window(&mut self) -> Result<(), Corrupt> {
        let control = self.control();
        let window = control.window.load(Ordering::Relaxed) as u64;
        let base = control.base.load(Ordering::Relaxed) as u64;
        if !window.is_power_of_two() || window > self.size || base >= window {
            return Err(Corrupt {
                what: "a pipe's window is impossible",
            });
        }
        (self.window, self.base) = (window, base);
        Ok(())
    }

    /// Returns the offset of the next byte in the data, and the number of bytes up to the end of the window.
    fn place(&self) -> (usize, u64) {
        let inside = self.at.wrapping_add(self.base) & (self.window - 1);
        (inside as usize, self.window - inside)
    }

    /// Receiver: takes over what has not been put in yet. Returns whether it succeeded, which requires that the sender
    /// is away.
    pub fn take_over(&self) -> bool {
        self.control().take_over()
    }

    /// Returns the address of the message in the sender's memory, as far as is known; 0 if it is not contiguous.
    pub fn address(&self) -> u64 {
        self.control().address()
    }

    /// Sender: sets the address of the message, before others know of the pipe.
    pub fn set_address(&mut self, address: u64) {
        self.control().set_address(address);
    }

    /// Returns whether the receiver is reading directly from the sender's memory now.
    pub fn is_taken_over(&self) -> bool {
        self.control().is_taken_over()
    }

    /// Sender: sets a new address of the message and returns `None`. If it is not the sender's turn, returns why.
    pub fn move_to(&mut self, address: u64) -> Result<Option<Filled>, Corrupt> {
        let not_now = self.control().enter()?;
        if not_now.is_none() {
            self.control().set_address(address);
            self.control().leave(self.at, false);
        }
        Ok(not_now)
    }

    /// Sender: abandons the message. The receiver cannot take it over any more; if it already has, what it reads from
    /// now on is invalid.
    pub fn give_up(&self) -> GivenUp {
        self.control().give_up()
    }

    /// Sender: returns the ticks per KiB of the receiver's last copy, if known.
    pub fn drain_cost(&self) -> Option<u64> {
        Some(self.control().drain_cost()).filter(|&cost| cost != 0)
    }

    /// Returns how many bytes this side has moved.
    pub fn moved(&self) -> u64 {
        self.at
    }

    /// Sender: copies up to `most` further bytes of the message in. `views` is the whole message, and the pipe carries
    /// nothing else. If `non_temporal`, the stores bypass the caches.
    pub fn fill(
        &mut self,
        views: &Views,
        most: usize,
        non_temporal: bool,
    ) -> Result<Filled, Corrupt> {
        if let Some(not_now) = self.control().enter()? {
            return Ok(not_now);
        }
        let copied = self.copy_in(views, most, non_temporal);
        let all = self.at == views.len() as u64;
        self.control().leave(self.at, all);
        let copied = copied?;
        Ok(if all {
            Filled::All
        } else {
            Filled::Some(copied)
        })
    }

    fn copy_in(
        &mut self,
        views: &Views,
        most: usize,
        non_temporal: bool,
    ) -> Result<usize, Corrupt> {
        let room = self.window - (self.at - self.other);
        if room < (most as u64).min(self.window / 2) {
            self.look_at_drained()?;
        }
        let room = self.window - (self.at - self.other);
        let (inside, straight) = self.place();
        let n = (views.len() as u64 - self.at)
            .min(room)
            .min(straight)
            .min(most as u64) as usize;
        if n > 0 {
            // SAFETY: `inside + n` lies in the window, which lies in the data; `at + n` lies in the message.
            unsafe {
                let to = self.data.as_ptr().add(inside);
                match non_temporal {
                    true => views.gather_non_temporal(self.at as usize, to, n),
                    false => views.gather(self.at as usize, to, n),
                }
            }
            self.at += n as u64;
        }
        Ok(n)
    }

    fn look_at_drained(&mut self) -> Result<(), Corrupt> {
        let drained = self.control().drained();
        if drained > self.at || drained < self.other {
            return Err(Corrupt {
                what: "a pipe's drained count is impossible",
            });
        }
        self.other = drained;
        Ok(())
    }

    /// Receiver: copies up to `most` bytes out to the memory of the message. Bytes beyond the end of `views` are
    /// dropped (truncation). `total` is the message's length. Returns how many bytes were taken out.
    pub fn drain(&mut self, views: &Views, total: u64, most: usize) -> Result<usize, Corrupt> {
        if self.other == self.at {
            let filled = self.control().filled();
            if filled < self.at || filled - self.at > self.window || filled > total {
                return Err(Corrupt {
                    what: "a pipe's filled count is impossible",
                });
            }
            self.other = filled;
        }
        let (inside, straight) = self.place();
        let n = (self.other - self.at).min(straight).min(most as u64) as usize;
        if n > 0 {
            let start = ticks();
            let keep = (views.len() as u64).saturating_sub(self.at).min(n as u64) as usize;
            if keep > 0 {
                // SAFETY: `inside + n` lies in the window, which lies in the data; `at + keep` lies in the message.
                unsafe {
                    let from = self.data.as_ptr().add(inside);
                    views.scatter(self.at as usize, from, keep);
                }
            }
            self.at += n as u64;
            let cost = cost_of_kib(n, ticks().wrapping_sub(start));
            let drained = &self.control().drained.0;
            drained.cost.store(cost, Ordering::Relaxed);
            self.control().publish_drained(self.at);
        }
        Ok(n)
    }

    /// Receiver, after `take_over`: reads the rest, from byte `moved()` of the message on, from the sender's contiguous
    /// memory. Returns `true` if the message is complete, and `false` if the sender has abandoned it. After an error it
    /// is the sender's turn again, with the progress from before. It is also an error if another process has the
    /// sender's process id by now.
    pub fn pull(&mut self, views: &Views, total: u64, sender: &Remote) -> std::io::Result<bool> {
        let (before, address) = (self.at, self.address());
        let read = self.read_rest(views, total, sender.pid, address);
        let read = read.and_then(|()| sender.check());
        let stands = self.control().end_take_over(read.is_ok());
        self.at = match stands && read.is_ok() {
            true => total,
            false => before,
        };
        self.other = self.at;
        read.map(|()| stands)
    }

    fn read_rest(
        &mut self,
        views: &Views,
        total: u64,
        pid: u32,
        address: u64,
    ) -> std::io::Result<()> {
        let end = (views.len() as u64).min(total);
        while self.at < end {
            let n = (end - self.at).min(1 << 22) as usize;
            let got = match views.contiguous() {
                // SAFETY: `at + n` lies in the message's block.
                Some(base) => unsafe {
                    remote::pull(
                        pid,
                        address.wrapping_add(self.at),
                        base.add(self.at as usize),
                        n,
                    )?
                },
                None => {
                    let mut bounce = vec![0u8; n.min(1 << 16)];
                    // SAFETY: `bounce` is writable for its length.
                    let got = unsafe {
                        remote::pull(
                            pid,
                            address.wrapping_add(self.at),
                            bounce.as_mut_ptr(),
                            bounce.len(),
                        )?
                    };
                    // SAFETY: `at + got` lies in the message; `bounce` is private memory.
                    unsafe { views.scatter(self.at as usize, bounce.as_ptr(), got) };
                    got
                }
            };
            if got == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.at += got as u64;
        }
        Ok(())
    }
}

/// A pool of pipes. Unused ones are on a [`Stack`].
///
/// The stack only says where to look: a pipe is taken by claiming its ends. A task can be killed between the end of a
/// pipe's use and the push, or between the pop and the claim. Then the pipe is on no stack, and is found in the list of
/// all pipes ([`Pool::adopt`]). It can also be claimed there while it is on the stack: a task that pops it then skips
/// it, and it is not pushed a second time before that.
#[derive(Debug)]
pub struct Pool<'a> {
    segment: &'a Segment,
    free: &'a Stack,
    made: Made<'a>,
    size: usize,
}

/// Offset of the `Ends` in a pipe, in bytes.
const ENDS_AT: u64 = std::mem::offset_of!(Control, ends) as u64;

impl<'a> Pool<'a> {
    /// Returns the pool whose free pipes are on `free`, and all pipes on `list`; each has `size` data bytes (a power of
    /// two).
    pub fn new(segment: &'a Segment, free: &'a Stack, list: &'a List, size: usize) -> Pool<'a> {
        Pool {
            segment,
            free,
            made: Made {
                segment,
                list,
                ends_at: ENDS_AT,
            },
            size,
        }
    }

    /// Takes a free pipe for a message, and resets it. Returns `None` if there is none.
    pub fn take(&self, message: Message) -> Result<Option<Pipe>, Corrupt> {
        // Bounded, even if other tasks write invalid values there.
        for _ in 0..Made::MAX_PIECES_SEARCHED {
            let Some(mut pipe) = self.pop()? else {
                break;
            };
            let [source, destination] = message.tasks;
            pipe.of = pipe.control().ends.claim(source, destination, |_| false);
            if pipe.of.is_some() {
                pipe.reset(message);
                return Ok(Some(pipe));
            }
        }
        Ok(None)
    }

    /// Pops the pipe on top of the stack, which may be in use again by now.
    fn pop(&self) -> Result<Option<Pipe>, Corrupt> {
        let link = |place| -> Result<&stack::Link, Corrupt> {
            // SAFETY: the control block consists of atomics.
            let control: &Control = unsafe { self.segment.words(place) }?;
            Ok(&control.next_free)
        };
        let Some(place) = self.free.pop(link)? else {
            return Ok(None);
        };
        let pipe = Pipe::at(self.segment, place, self.size)?;
        pipe.control().stacked.store(0, Ordering::Release);
        Ok(Some(pipe))
    }

    /// Takes a pipe whose ends are over, if there is one among the next ones of the list. Moves `cursor` on for the
    /// next search.
    pub fn adopt(
        &self,
        cursor: &mut u64,
        message: Message,
        gone: impl Fn(u32) -> bool,
    ) -> Option<Pipe> {
        let [source, destination] = message.tasks;
        let of_gone = |place, ends: &Ends| {
            // Check the memory first: nothing in the pipe is trusted.
            let mut pipe = Pipe::at(self.segment, place, self.size).ok()?;
            pipe.of = Some(ends.claim(source, destination, &gone)?);
            pipe.reset(message);
            Some(pipe)
        };
        self.made.search(cursor, of_gone)
    }

    /// Makes a new pipe in newly allocated memory of the segment.
    pub fn make(&self, maker: Maker, message: Message) -> std::io::Result<Pipe> {
        let bytes = Pipe::footprint(self.size).next_multiple_of(4096);
        let offset = self.segment.allocate_for(maker, bytes, 4096)?;
        let mut pipe = Pipe::at(self.segment, offset, self.size)
            .map_err(|corrupt| std::io::Error::other(corrupt.what))?;
        let [source, destination] = message.tasks;
        pipe.of = Some(pipe.control().ends.begin(source, destination));
        pipe.reset(message);
        self.made.add(offset);
        self.segment.listed(maker.task);
        Ok(pipe)
    }

    /// Lists a pipe whose memory a dead task had taken.
    pub fn list_for_dead(&self, place: u64, task: u32) {
        self.made.add_for_dead(place, task);
    }

    /// Gives a pipe back. It must not be used any more. Does nothing if its use is over, as another task may use it by
    /// now.
    pub fn give(&self, pipe: Pipe) {
        if !pipe.of.is_some_and(|of| pipe.control().ends.end(of)) {
            return;
        }
        let control = pipe.control();
        if control.stacked.swap(1, Ordering::AcqRel) == 0 {
            self.free.push(pipe.offset, &control.next_free);
        }
    }
}

#[cfg(test)]
mod tests;
