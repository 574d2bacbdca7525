//! The client of an inbox: sends requests to another process on the host.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::super::Window;
use super::inbox::{Address, serve_own};
use super::page::{
    BY_THREAD_BIT, CLASS_SHIFT, Client, DONE_BIT, Page, Part, SLEEPING_BIT, SLOT_DATA_BYTES, SLOTS,
    Slot, sleep, wake,
};
use crate::error::{Error, PROC_FAILED, Result};
use crate::segment::Segment;
use crate::tasks;

/// Number of polls for the reply before the thread of the target's inbox is woken.
const POLLS_BEFORE_WAKING: u32 = 100;
/// Number of polls before the client sleeps: about 50 us, in which a thread is woken and serves.
const POLLS_BEFORE_SLEEP: u32 = 300;
/// Maximum duration of a sleep in nanoseconds, after which the client checks whether the target is still running.
const MAX_SLEEP_NANOS: libc::c_long = 50_000_000;
/// Number of attempts to get a slot between checks whether the target and the owners of its slots are still running.
const POLLS_BEFORE_CHECK: u32 = 1024;
/// Number of polls before a request that is not needed is withdrawn: about 2 us, in which a target that is itself in a
/// copy by the kernel returns.
const POLLS_BEFORE_WITHDRAWAL: u32 = 150;
/// Number of blocks that the kernel copies, at 0.4 us each, in the time of a request that is served in a call.
const BLOCKS_OF_A_REQUEST: usize = 16;
/// Number of blocks that the kernel copies in the time of a request for which a thread is woken.
const BLOCKS_OF_A_SWITCH: usize = 48;
/// Number of requests that are not tried after one was withdrawn.
const REQUESTS_PASSED_OVER: u32 = 32;

/// The client's side of an inbox.
pub struct Mailbox {
    address: Address,
    /// The inbox's page, mapped at the first request; `None` if it cannot be mapped.
    segment: OnceLock<Option<Segment>>,
    /// Whether the inbox's thread gave the last reply. If so, it is woken at once the next time.
    is_apart: AtomicBool,
    /// Number of requests left that are not to be tried.
    passed_over: AtomicU32,
}

/// The target of a request.
#[derive(Clone, Copy)]
pub struct Whom<'a> {
    /// The window of the request.
    pub window: &'a Window,
    /// The target's rank in the window.
    pub rank: c_int,
    /// The target's process id.
    pub process: c_int,
}

/// A request, and memory for the data of its reply.
#[derive(Clone, Copy)]
pub struct Letter<'a> {
    /// Header and pieces.
    pub words: &'a [u64],
    /// Data.
    pub data: &'a [u8],
    /// Address and length in bytes of the memory for the reply.
    pub room: (*mut u8, usize),
    /// Whether it must be served. Otherwise it is withdrawn if it is not served at once.
    pub needed: bool,
}

impl Mailbox {
    /// Returns the client of an inbox, which is not mapped yet.
    pub fn new(address: Address) -> Mailbox {
        Mailbox {
            address,
            segment: OnceLock::new(),
            is_apart: AtomicBool::new(false),
            passed_over: AtomicU32::new(0),
        }
    }

    fn page(&self, process: c_int) -> Option<&Page> {
        let all = 0..Page::LENGTH;
        let open = || Segment::open(process, self.address.file, all.end, Some(all)).ok()?;
        self.segment.get_or_init(open).as_ref().map(Page::of)
    }

    /// Returns whether requests to the inbox of `process` are possible. Maps it if necessary.
    pub fn is_open(&self, process: c_int) -> bool {
        self.page(process).is_some()
    }

    /// Returns the number of blocks up to which copying them one by one takes no longer than a request.
    pub fn blocks_to_copy(&self) -> usize {
        match self.is_apart.load(Ordering::Relaxed) {
            true => BLOCKS_OF_A_SWITCH,
            false => BLOCKS_OF_A_REQUEST,
        }
    }

    /// Returns whether a request that is not needed is worth trying: the last one was served at once, or was withdrawn
    /// long ago.
    pub fn is_attended(&self, process: c_int) -> bool {
        let left = self.passed_over.load(Ordering::Relaxed);
        if left != 0 {
            self.passed_over.store(left - 1, Ordering::Relaxed);
        }
        left == 0 && self.is_open(process)
    }

    /// Sends a request and waits for the reply. Returns the reply's error class, or `None` if the request was
    /// withdrawn.
    ///
    /// # Safety
    /// `letter.room` has the length of the reply's data.
    pub unsafe fn ask(&self, whom: Whom, letter: Letter) -> Result<Option<c_int>> {
        let Some(page) = self.page(whom.process) else {
            return Err(gone(whom.rank));
        };
        let index = claim(page, whom)?;
        let slot = &page.slots[index];
        self.fill(page, index, letter);
        let bit = 1 << index;
        page.head.posted.fetch_or(bit, Ordering::SeqCst);
        if !letter.needed
            && !is_done_soon(slot)
            && page.head.posted.fetch_and(!bit, Ordering::AcqRel) & bit != 0
        {
            slot.client.store(0, Ordering::Release);
            self.passed_over
                .store(REQUESTS_PASSED_OVER, Ordering::Relaxed);
            return Ok(None);
        }
        // If the target has ended, its slot is left as it is: no process needs it any longer.
        let done = self.await_done(whom, page, slot)?;
        let (room, length) = letter.room;
        if done >> CLASS_SHIFT == 0 && (1..=SLOT_DATA_BYTES).contains(&length) {
            // SAFETY: the caller guarantees that `room` has this length, and so has the slot's area.
            unsafe { room.copy_from_nonoverlapping(page.reply(index), length) };
        }
        slot.client.store(0, Ordering::Release);
        let is_apart = done & BY_THREAD_BIT != 0;
        self.is_apart.store(is_apart, Ordering::Relaxed);
        Ok(Some((done >> CLASS_SHIFT) as c_int))
    }

    /// Writes a request to a slot that this client has claimed.
    fn fill(&self, page: &Page, index: usize, letter: Letter) {
        let slot = &page.slots[index];
        slot.done.store(0, Ordering::Relaxed);
        let window = self.address.window as u32;
        slot.window.store(window, Ordering::Relaxed);
        let Letter { words, data, .. } = letter;
        let (room, room_length) = letter.room;
        let front = size_of_val(words);
        let fits = front + data.len() <= SLOT_DATA_BYTES;
        if fits {
            let given = page.given(index);
            // SAFETY: this client has claimed the slot, and its area has room for all of this.
            unsafe {
                given.copy_from_nonoverlapping(words.as_ptr().cast(), front);
                let behind = given.wrapping_add(front);
                behind.copy_from_nonoverlapping(data.as_ptr(), data.len());
            }
        }
        let part = |length: usize, address: u64, is_inside| Part {
            length: length as u64,
            address: if is_inside { 0 } else { address },
        };
        slot.set_parts([
            part(front, words.as_ptr() as u64, fits),
            part(data.len(), data.as_ptr() as u64, fits),
            part(room_length, room as u64, room_length <= SLOT_DATA_BYTES),
        ]);
    }

    /// Waits for the reply. A target that is in a call on a window replies soon; otherwise its inbox's thread is woken.
    fn await_done(&self, whom: Whom, page: &Page, slot: &Slot) -> Result<u32> {
        let mut looks = match self.is_apart.load(Ordering::Relaxed) {
            true => POLLS_BEFORE_WAKING,
            false => 0,
        };
        loop {
            let done = slot.done.load(Ordering::Acquire);
            if done & DONE_BIT != 0 {
                return Ok(done);
            }
            serve_own();
            looks += 1;
            match looks {
                ..POLLS_BEFORE_WAKING => std::hint::spin_loop(),
                POLLS_BEFORE_WAKING..POLLS_BEFORE_SLEEP => {
                    if page.head.sleeps.load(Ordering::SeqCst) != 0 {
                        wake(&page.head.posted);
                    }
                    std::thread::yield_now();
                }
                _ => {
                    // If the reply has been written meanwhile, the sleep ends at once.
                    slot.done.fetch_or(SLEEPING_BIT, Ordering::Relaxed);
                    sleep(&slot.done, SLEEPING_BIT, Some(MAX_SLEEP_NANOS));
                    if slot.done.load(Ordering::Acquire) & DONE_BIT == 0 {
                        check(whom, page)?;
                    }
                }
            }
        }
    }
}

/// Claims a slot and returns its index.
fn claim(page: &Page, whom: Whom) -> Result<usize> {
    let comm = &whom.window.comm;
    let client = Client {
        task: comm.local[comm.rank as usize],
        process: std::process::id() as c_int,
    };
    let first = client.process as usize % SLOTS;
    let mut looks = 0u32;
    loop {
        let mut slots = (0..SLOTS).map(|step| (first + step) % SLOTS);
        let free = slots.find(|&index| exchange(&page.slots[index], 0, client));
        if let Some(free) = free {
            return Ok(free);
        }
        serve_own();
        std::thread::yield_now();
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(POLLS_BEFORE_CHECK) {
            check(whom, page)?;
            let ended = |tasks: &[c_int]| tasks::ended(tasks).unwrap_or_default();
            if let Some(index) = take_over(page, client, ended) {
                while page.head.serving.load(Ordering::SeqCst) != 0 {
                    check(whom, page)?;
                    serve_own();
                    std::thread::yield_now();
                }
                return Ok(index);
            }
        }
    }
}

/// Assigns a slot to a client if its present number is `from`. Returns whether it has.
fn exchange(slot: &Slot, from: u64, to: Client) -> bool {
    let to = to.number();
    let given = slot
        .client
        .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed);
    given.is_ok()
}

/// Takes over the slot of a client that has ended, if there is one, and withdraws its request. If a thread of the
/// target has begun to serve that request, `serving` still counts it.
fn take_over(
    page: &Page,
    client: Client,
    ended: impl FnOnce(&[c_int]) -> Vec<c_int>,
) -> Option<usize> {
    let numbers = page
        .slots
        .each_ref()
        .map(|slot| slot.client.load(Ordering::Relaxed));
    let tasks = numbers.map(|number| Client::of(number).task);
    let ended = ended(&tasks);
    let mut left = (0..SLOTS).filter(|&index| ended.contains(&tasks[index]));
    let index = left.find(|&index| exchange(&page.slots[index], numbers[index], client))?;
    page.head.posted.fetch_and(!(1 << index), Ordering::SeqCst);
    Some(index)
}

/// Polls for the reply for a short while.
fn is_done_soon(slot: &Slot) -> bool {
    for _ in 0..POLLS_BEFORE_WITHDRAWAL {
        if slot.done.load(Ordering::Acquire) & DONE_BIT != 0 {
            return true;
        }
        serve_own();
        std::hint::spin_loop();
    }
    false
}

/// Fails only if it is certain that the request will not be served: a server could still write the reply to the
/// client's memory.
fn check(whom: Whom, page: &Page) -> Result {
    let task = whom.window.comm.local.get(whom.rank as usize).copied();
    let ended = tasks::ended(task.as_slice());
    match page.is_closed() || ended.is_ok_and(|ended| !ended.is_empty()) {
        true => Err(gone(whom.rank)),
        false => Ok(()),
    }
}

#[cold]
fn gone(rank: c_int) -> Error {
    let text = format!("the target (process {rank}) has ended");
    Error::new(PROC_FAILED, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_of_a_client_that_has_ended_is_taken_over_without_its_request() {
        const LIVE: c_int = 7;
        const DEAD: c_int = 8;
        const DEAD_SLOT: usize = 5;
        let segment = Segment::private(Page::LENGTH).expect("memory");
        let page = Page::of(&segment);
        let of_task = |task| Client { task, process: 99 };
        for (index, slot) in page.slots.iter().enumerate() {
            let task = if index == DEAD_SLOT { DEAD } else { LIVE };
            assert!(exchange(slot, 0, of_task(task)));
        }
        page.head.posted.store((1 << SLOTS) - 1, Ordering::Relaxed);
        let own = Client {
            task: LIVE,
            process: 100,
        };
        assert_eq!(take_over(page, own, |_| Vec::new()), None);
        assert_eq!(take_over(page, own, |_| vec![DEAD]), Some(DEAD_SLOT));
        assert_eq!(take_over(page, own, |_| vec![DEAD]), None);
        let client = page.slots[DEAD_SLOT].client.load(Ordering::Relaxed);
        assert_eq!(Client::of(client), own);
        let posted = page.head.posted.load(Ordering::Relaxed);
        assert_eq!(posted, ((1 << SLOTS) - 1) & !(1 << DEAD_SLOT));
    }
}
