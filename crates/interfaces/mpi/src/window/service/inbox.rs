//! Requests to a process on the same host, in memory that both map.
//!
//! Each process has one *inbox*, which others map when they first need it. A request is a slot there, with room for its
//! bytes and those of the reply. Longer ones stay in the client, and the server lets the kernel copy them. Any thread
//! of the target that is in a call on a window serves pending requests. The inbox's thread does so if a client has
//! woken it because no other thread has. For a few bytes waking is too expensive: a client withdraws such a request,
//! and lets the kernel copy the bytes.
//!
//! What others write to the inbox is not trusted: it is read once, and a request can access only memory of windows. A
//! client that finds no free slot takes over the slot of a client that has ended, once no thread of the target serves
//! it.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::super::Window;
use super::super::copying::{self, CopyDirection};
use super::super::pieces::MAX_BYTES;
use super::page::{
    BY_THREAD_BIT, CLASS_SHIFT, CLOSED, Client, DONE_BIT, Page, Part, SLEEPING_BIT,
    SLOT_DATA_BYTES, sleep, wake,
};
use super::server::{self, wrong};
use crate::communicator::internal_messages;
use crate::datatype::memory;
use crate::error::Result;
use crate::segment::{self, File};

/// The inbox of this process. Its page is never unmapped.
struct Inbox {
    page: &'static Page,
    file: File,
    thread: JoinHandle<()>,
}

/// Number of polls of the thread before it sleeps, about 30 us: waking it takes as long on machines whose cores sleep.
const POLLS_BEFORE_SLEEP: u32 = 100;

static OWN: Mutex<Option<Inbox>> = Mutex::new(None);
/// The inbox's page, readable without a lock; null if there is none.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(null_mut());
/// The windows that requests may refer to, by their numbers.
static WINDOWS: Mutex<BTreeMap<u32, Arc<Window>>> = Mutex::new(BTreeMap::new());
/// The number of the window that was made last.
static NUMBERS: AtomicU32 = AtomicU32::new(0);

fn own() -> MutexGuard<'static, Option<Inbox>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn windows() -> MutexGuard<'static, BTreeMap<u32, Arc<Window>>> {
    WINDOWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a process sends to the others about its inbox and its part of a window.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// The file of the inbox's page.
    pub file: segment::Address,
    /// The number by which requests refer to the window.
    pub window: c_int,
}

impl Address {
    /// The address of no inbox.
    pub const NONE: Address = Address {
        file: segment::NOWHERE,
        window: 0,
    };
}

/// Returns the address for a new window. The first call creates this process's inbox.
pub fn open() -> Address {
    let mut own = own();
    if own.is_none() {
        *own = make().ok();
        if let Some(inbox) = &*own {
            PAGE.store(std::ptr::from_ref(inbox.page).cast_mut(), Ordering::Release);
        }
    }
    let file = own
        .as_ref()
        .map_or(segment::NOWHERE, |inbox| inbox.file.address());
    let window = NUMBERS.fetch_add(1, Ordering::Relaxed).wrapping_add(1) as c_int;
    Address { file, window }
}

fn make() -> Result<Inbox> {
    let file = File::new()?;
    let page = Page::of(Box::leak(Box::new(
        file.memory(Page::LENGTH, Some(0..Page::LENGTH))?,
    )));
    let thread = server::spawn(move || {
        while !page.is_closed() {
            if !is_posted_soon(page) {
                page.head.sleeps.store(1, Ordering::SeqCst);
                sleep(&page.head.posted, 0, None);
                page.head.sleeps.store(0, Ordering::Relaxed);
            }
            serve(page, BY_THREAD_BIT);
        }
    })?;
    Ok(Inbox { page, file, thread })
}

/// Polls for a request for a while, yielding the core to other threads.
fn is_posted_soon(page: &Page) -> bool {
    (0..POLLS_BEFORE_SLEEP).any(|_| {
        std::thread::yield_now();
        page.head.posted.load(Ordering::Relaxed) != 0
    })
}

/// Adds a window that requests may refer to.
pub fn add(window: &Arc<Window>) {
    windows().insert(window.number, window.clone());
}

/// Removes a window.
pub fn remove(window: &Window) {
    windows().remove(&window.number);
}

/// Closes the inbox and ends its thread, because MPI is being finalized.
pub fn close() {
    PAGE.store(null_mut(), Ordering::Release);
    if let Some(inbox) = own().take() {
        inbox.page.head.posted.fetch_or(CLOSED, Ordering::SeqCst);
        wake(&inbox.page.head.posted);
        let _ = inbox.thread.join();
    }
    windows().clear();
}

/// Serves pending requests to this process. Called in calls on windows.
#[inline]
pub fn serve_own() {
    // SAFETY: the page is never unmapped.
    if let Some(page) = unsafe { PAGE.load(Ordering::Relaxed).as_ref() } {
        serve(page, 0);
    }
}

fn serve(page: &Page, by: u32) {
    if page.head.posted.load(Ordering::Relaxed) & !CLOSED == 0 {
        return;
    }
    // This precedes clearing the bits: a client that sees its bit cleared also sees this count, until all is served.
    page.head.serving.fetch_add(1, Ordering::SeqCst);
    let posted = page.head.posted.fetch_and(CLOSED, Ordering::SeqCst);
    for (index, slot) in page.slots.iter().enumerate() {
        if posted & 1 << index == 0 {
            continue;
        }
        let class = internal_messages::class_of(&answer(page, index)) as u32;
        let done = DONE_BIT | by | class << CLASS_SHIFT;
        if slot.done.swap(done, Ordering::AcqRel) & SLEEPING_BIT != 0 {
            wake(&slot.done);
        }
    }
    page.head.serving.fetch_sub(1, Ordering::SeqCst);
}

/// Executes the request in a slot.
fn answer(page: &Page, index: usize) -> Result {
    let slot = &page.slots[index];
    let client = Client::of(slot.client.load(Ordering::Relaxed)).process;
    let number = slot.window.load(Ordering::Relaxed);
    let [words, data, room] = slot.parts();
    let window = windows().get(&number).cloned().ok_or_else(wrong)?;
    let mut bytes = Vec::new();
    let (head, given) = request(page, index, client, [words, data], &mut bytes)?;
    let (mut reply, mut length) = (Vec::new(), 0);
    let reserve = |wanted: usize| {
        length = wanted;
        match room.address {
            0 if wanted <= SLOT_DATA_BYTES => Ok(page.reply(index)),
            0 => Err(wrong()),
            _ => {
                reply = memory(wanted)?;
                Ok(reply.as_mut_ptr())
            }
        }
    };
    // SAFETY: the data have this many bytes, and `reserve` returns memory for as many as it is asked for.
    unsafe {
        server::act(&window, &head, given, reserve)?;
        if length == 0 || room.address == 0 {
            return Ok(());
        }
        if length as u64 > room.length {
            return Err(wrong());
        }
        let there = [(room.address, length)];
        copying::copy(client, there, reply.as_mut_ptr(), CopyDirection::ToTarget)
    }
}

/// Returns the words of a request, and its data: in the slot's area, or copied to `bytes`.
fn request(
    page: &Page,
    index: usize,
    client: c_int,
    [words, data]: [Part; 2],
    bytes: &mut Vec<u8>,
) -> Result<(Vec<u64>, (*const u8, usize))> {
    if words.length.max(data.length) > MAX_BYTES as u64 || !words.length.is_multiple_of(8) {
        return Err(wrong());
    }
    let (front, behind) = (words.length as usize, data.length as usize);
    let mut head = vec![0u64; front / 8];
    let to = head.as_mut_ptr().cast::<u8>();
    if words.address == 0 {
        if front + behind > SLOT_DATA_BYTES {
            return Err(wrong());
        }
        let given = page.given(index);
        // SAFETY: the area has this many bytes.
        unsafe { given.copy_to_nonoverlapping(to, front) };
        return Ok((head, (given.wrapping_add(front), behind)));
    }
    *bytes = memory(behind)?;
    let own = [
        (words.address, front, to),
        (data.address, behind, bytes.as_mut_ptr()),
    ];
    for (address, length, to) in own.into_iter().filter(|it| it.1 != 0) {
        // SAFETY: `to` has memory for this many bytes.
        unsafe { copying::copy(client, [(address, length)], to, CopyDirection::FromTarget)? };
    }
    Ok((head, (bytes.as_ptr(), behind)))
}
