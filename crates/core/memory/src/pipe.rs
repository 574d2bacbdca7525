//! A pipe: the stream buffer a large message flows through while both sides copy at once.
//!
//! The sender copies the message into the pipe a chunk at a time; the receiver copies chunks out
//! as they appear. Two cores copy side by side through memory that stays in their caches, which
//! moves a message at the speed of one `memcpy` where a single copy by the kernel moves it at a
//! third of that (docs/decisions/2026-11-21-pipe-for-large-messages.md).
//!
//! *Turns.* `turn` says who may touch the sender's part. `FREE` -> `FILLING` while the sender
//! copies; then back to `FREE`, or to `COMPLETE` if that was the last of the message. A receiver
//! that starves while the sender is away may take the message over (`FREE` -> `PULLED`) and read
//! the rest straight from the sender's memory; it then says `DONE`, or `FREE` again if that could
//! not be read. Where the message is in the sender's memory the pipe says; in a turn of its own the
//! sender may have moved it. After `COMPLETE` the pipe is the receiver's to give back, after `DONE` the sender's.
//! A sender that gives up stays `FILLING` for good and says so elsewhere; then the pipe is the
//! receiver's to give back as well, and what it was just reading from the sender's memory is void.
//!
//! *Window.* A message cycles through the first `window` bytes of the data, from the front or from where the message before it ended. The side that takes the
//! pipe for a message chooses the window, and says so before the other side knows of the pipe. A small window stays in the caches of
//! both cores; a window larger than a core's own cache is written back to the shared one before it is written again, which is
//! faster where two cores are far apart.
//!
//! *Tasks that die.* A task that is done with a pipe in hand, and does not give it back, says so ([`Pipe::let_go`]).
//! A pipe both ends of which are done or gone is used again ([`Pool::take`], [`Pool::adopt`]).
//!
//! *Rules of [`Pipe::fill`] and [`Pipe::drain`]:* no lock, no allocation, no system call. Only [`Pipe::pull`] calls the kernel.
//! (docs/hot-paths.md names the test.)

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

/// The sender may fill, the receiver may take over.
pub const FREE: u32 = 0;
/// The sender is filling.
pub const FILLING: u32 = 1;
/// The receiver reads the rest from the sender's memory.
pub const PULLED: u32 = 2;
/// It has done so.
pub const DONE: u32 = 3;
/// The whole message has been put in: the sender will not touch the pipe again.
pub const COMPLETE: u32 = 4;

/// Bytes between the start of a pipe and its data.
pub const CONTROL: usize = 512;
/// Messages begin on a cache line of their own.
const LINE: u64 = 64;
/// Minimum window, in bytes, of a pipe that is not smaller itself.
const MIN_WINDOW_BYTES: u64 = 4096;

/// A message that needs a pipe.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Its source and its destination.
    pub tasks: [u32; 2],
    /// Bytes of the pipe's data that it is to cycle through; rounded down to a power of two.
    pub window: u32,
    /// Bytes of it.
    pub length: u64,
    /// It begins where the message before it ended, and not at the front: short messages then cycle through the whole window, too.
    pub goes_on: bool,
}

#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Apart<T>(T);

/// Written by the receiver.
#[repr(C)]
#[derive(Debug, Default)]
struct Drained {
    bytes: AtomicU64,
    /// Ticks that it took to copy a KiB out, the last time; 0: not known yet.
    cost: AtomicU64,
}

/// The shared words of a pipe, and the protocol of its turns: all that sender and receiver tell
/// each other. The model checker runs this very code; see `tests/models_loom.rs`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Control {
    /// Bytes the sender has put in.
    filled: Apart<AtomicU64>,
    /// Bytes the receiver has taken out.
    drained: Apart<Drained>,
    /// Whose turn; see the module.
    turn: Apart<AtomicU32>,
    /// Where the message is in the sender's memory; 0: nowhere as one block.
    address: AtomicU64,
    /// Bytes of the data that the message cycles through, and where in them it begins.
    window: AtomicU32,
    base: AtomicU32,
    /// Where the next message begins, before it is rounded and brought into its window.
    end: AtomicU64,
    /// Link of the pool's stack, while this pipe is in it; and 1 from before it is pushed until after it is popped.
    pub(crate) next_free: stack::Link,
    pub(crate) stacked: AtomicU32,
    /// The source and the receiver that use it.
    pub(crate) ends: Ends,
}

/// For the test that holds it to the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("pipe", Control { filled, drained, turn, address, window, base, end, next_free, stacked, ends } CONTROL FREE FILLING PULLED DONE COMPLETE);

/// The result of a sender's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// This many bytes went in; there are more.
    Some(usize),
    /// The last byte went in.
    All,
    /// The receiver has taken over and is still reading.
    TakenOver,
    /// The receiver took over and has read everything.
    Pulled,
}

/// Whose a pipe is that its sender has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The receiver's, as soon as it has been told.
    Receivers,
    /// The sender's: the receiver had taken over and is done.
    Senders,
}

impl Control {
    /// Sender: make the pipe new. Nobody else may hold it.
    pub fn reset(&self) {
        self.filled.0.store(0, Ordering::Relaxed);
        self.drained.0.bytes.store(0, Ordering::Relaxed);
        self.drained.0.cost.store(0, Ordering::Relaxed);
        self.address.store(0, Ordering::Relaxed);
        self.turn.0.store(FREE, Ordering::Release);
    }

    /// Sender: begin to fill. If that is not its turn: why not.
    #[inline]
    pub fn enter(&self) -> Result<Option<Filled>, Corrupt> {
        let turn = &self.turn.0;
        match turn.compare_exchange(FREE, FILLING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(None),
            Err(DONE) => Ok(Some(Filled::Pulled)),
            Err(PULLED) => Ok(Some(Filled::TakenOver)),
            Err(_) => Err(Corrupt {
                what: "a pipe's turn is nobody's",
            }),
        }
    }

    /// Sender: `at` bytes are in now, and that is all of the message or not.
    #[inline]
    pub fn leave(&self, at: u64, all: bool) {
        let done = if all { COMPLETE } else { FREE };
        // When all is in, the receiver may give the pipe away as soon as it sees `filled`: so
        // that store must be the last.
        self.turn.0.store(done, Ordering::Release);
        self.filled.0.store(at, Ordering::Release);
    }

    /// Receiver: bytes that are in.
    #[inline]
    pub fn filled(&self) -> u64 {
        self.filled.0.load(Ordering::Acquire)
    }

    /// Sender: bytes that are out again.
    #[inline]
    pub fn drained(&self) -> u64 {
        self.drained.0.bytes.load(Ordering::Acquire)
    }

    /// Receiver: `at` bytes are out; their room is the sender's.
    #[inline]
    pub fn publish_drained(&self, at: u64) {
        self.drained.0.bytes.store(at, Ordering::Release);
    }

    /// Sender: ticks that the receiver has last taken to copy a KiB out; 0: not known yet.
    #[inline]
    pub fn drain_cost(&self) -> u64 {
        self.drained.0.cost.load(Ordering::Relaxed)
    }

    /// Where the message is. In a turn of one's own; to others a hint.
    pub fn address(&self) -> u64 {
        self.address.load(Ordering::Relaxed)
    }

    /// Sender: where it is from now on. In a turn of its own, or before others know of the pipe.
    pub fn set_address(&self, address: u64) {
        self.address.store(address, Ordering::Relaxed);
    }

    /// Sender: see [`Pipe::give_up`].
    pub fn give_up(&self) -> GivenUp {
        match self.turn.0.swap(FILLING, Ordering::AcqRel) {
            DONE => GivenUp::Senders,
            _ => GivenUp::Receivers,
        }
    }

    /// Receiver: see [`Pipe::take_over`].
    pub fn take_over(&self) -> bool {
        self.turn
            .0
            .compare_exchange(FREE, PULLED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Is the receiver reading from the sender's memory?
    pub fn is_taken_over(&self) -> bool {
        self.turn.0.load(Ordering::Relaxed) == PULLED
    }

    /// Receiver: see [`Pipe::pull`]. False: the sender has given up meanwhile.
    pub fn end_take_over(&self, all: bool) -> bool {
        let turn = if all { DONE } else { FREE };
        self.turn
            .0
            .compare_exchange(PULLED, turn, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// One process's handle on a pipe.
#[derive(Debug)]
pub struct Pipe {
    control: NonNull<Control>,
    data: NonNull<u8>,
    size: u64,
    offset: u64,
    /// How far this side is.
    at: u64,
    /// How far the other side was when last seen.
    other: u64,
    /// Bytes of the data that are in use (a power of two), and where in them the message begins.
    window: u64,
    base: u64,
    /// The use for which this handle was made; none, if nobody used the pipe.
    of: Option<Use>,
}

// SAFETY: a pipe is a pair of pointers into a segment that outlives it; the protocol gives each
// side its own words.
unsafe impl Send for Pipe {}

impl Pipe {
    /// Bytes of segment a pipe with `size` bytes of data needs.
    pub fn footprint(size: usize) -> usize {
        CONTROL + size
    }

    /// The pipe at `offset` with `size` data bytes (a power of two). The segment must outlive it.
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
            // SAFETY: inside the segment, atomics only.
            of: unsafe { start.cast::<Control>().as_ref() }.ends.present(),
        })
    }

    /// Attach to a pipe as [`Pipe::at`] does, if these two use it.
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

    /// Bytes of data it has room for.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where in the segment it lies.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// This side does not touch the pipe any more. The other side may.
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
        // SAFETY: inside the segment (checked in `at`), atomics only.
        unsafe { self.control.as_ref() }
    }

    /// Makes the pipe new for a message. Nobody else may hold it.
    fn reset(&mut self, message: Message) {
        let control = self.control();
        control.reset();
        let window = (message.window as u64).clamp(MIN_WINDOW_BYTES.min(self.size), self.size);
        let window = 1 << window.ilog2();
        // This lies in the window, whatever another task has written there.
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

    /// The other side: which window the message has.
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

    /// Where in the data the next byte lies, and how many bytes there are to the end of the window.
    fn place(&self) -> (usize, u64) {
        let inside = self.at.wrapping_add(self.base) & (self.window - 1);
        (inside as usize, self.window - inside)
    }

    /// Receiver: take over what has not been put in yet. True once, if the sender is away.
    pub fn take_over(&self) -> bool {
        self.control().take_over()
    }

    /// Where the message lies in the sender's memory as one block, as far as is known; 0: nowhere.
    pub fn address(&self) -> u64 {
        self.control().address()
    }

    /// Sender, before others know of the pipe: there it lies.
    pub fn set_address(&mut self, address: u64) {
        self.control().set_address(address);
    }

    /// Is the receiver reading the message where it lies, at this moment?
    pub fn is_taken_over(&self) -> bool {
        self.control().is_taken_over()
    }

    /// Sender: from now on the message lies there. If that is not its turn: why not.
    pub fn move_to(&mut self, address: u64) -> Result<Option<Filled>, Corrupt> {
        let not_now = self.control().enter()?;
        if not_now.is_none() {
            self.control().set_address(address);
            self.control().leave(self.at, false);
        }
        Ok(not_now)
    }

    /// Sender: leave the message unfinished for good. Nobody takes it over any more, and if the
    /// receiver has, what it reads from now on is void.
    pub fn give_up(&self) -> GivenUp {
        self.control().give_up()
    }

    /// Sender: ticks that the receiver has last taken to copy a KiB out, as it says.
    pub fn drain_cost(&self) -> Option<u64> {
        Some(self.control().drain_cost()).filter(|&cost| cost != 0)
    }

    /// Bytes this side has moved.
    pub fn moved(&self) -> u64 {
        self.at
    }

    /// Sender: copy up to `most` bytes of the message in, from where it stands. The message is
    /// `views` from its start; the pipe carries nothing else.
    /// Past the caches, if so wanted.
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

    /// Receiver: copy up to `most` bytes out to the message's memory. Bytes beyond the end of
    /// `views` are dropped (truncation). `total` is the message's length. Returns how many came.
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

    /// Receiver, after `take_over`: read the rest, from byte `moved()` of the message on, out of
    /// the memory of the sender, where it is one block. True: the message is complete. False: the
    /// sender has given it up. After an error it is the sender's turn again, from where it was; it
    /// is one, too, that another process has the sender's number by now.
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
                    // SAFETY: `at + got` lies in the message; `bounce` is ours.
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

/// A pool of pipes: those that nobody uses, on a [`Stack`].
///
/// The stack only says where to look: a pipe is had by claiming its ends. A task can be killed between the end of a pipe's use
/// and the push, or between the pop and the claim. Then the pipe is in no stack, and found in the list of all pipes
/// ([`Pool::adopt`]). It can also be claimed there while it is in the stack: whoever pops it passes it over, and it is not pushed
/// a second time before that.
#[derive(Debug)]
pub struct Pool<'a> {
    segment: &'a Segment,
    free: &'a Stack,
    made: Made<'a>,
    size: usize,
}

/// Where the words of the ends are in a pipe.
const ENDS_AT: u64 = std::mem::offset_of!(Control, ends) as u64;

impl<'a> Pool<'a> {
    /// The pool whose free pipes are on `free`, and all pipes on `list`; each has `size` data bytes (a power of two).
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

    /// A pipe for a message, new.
    pub fn take(&self, message: Message) -> Result<Option<Pipe>, Corrupt> {
        // The search has an end even if others write nonsense there.
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

    /// The pipe on top of the stack, which others may use by now.
    fn pop(&self) -> Result<Option<Pipe>, Corrupt> {
        let link = |place| -> Result<&stack::Link, Corrupt> {
            // SAFETY: atomics only.
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

    /// A pipe whose ends are over, if the next ones of the list have one. `cursor` is where the next search goes on.
    pub fn adopt(
        &self,
        cursor: &mut u64,
        message: Message,
        gone: impl Fn(u32) -> bool,
    ) -> Option<Pipe> {
        let [source, destination] = message.tasks;
        let of_gone = |place, ends: &Ends| {
            // Its memory is looked at first: nothing that it says of itself is trusted.
            let mut pipe = Pipe::at(self.segment, place, self.size).ok()?;
            pipe.of = Some(ends.claim(source, destination, &gone)?);
            pipe.reset(message);
            Some(pipe)
        };
        self.made.search(cursor, of_gone)
    }

    /// Make one more pipe out of segment memory.
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

    /// A dead task had been handed out this memory for a pipe.
    pub fn list_for_dead(&self, place: u64, task: u32) {
        self.made.add_for_dead(place, task);
    }

    /// Give a pipe back. Nobody may use it any more. If its use is over, it is somebody else's by now and stays so.
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
