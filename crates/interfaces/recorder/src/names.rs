//! Marks and toggles of the program, and switching recording on and off. libregatta.so has functions of the same names that do
//! nothing.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::{Mutex, PoisonError};

use regatta_abi::{ERR_ARGUMENT, OK};
use regatta_record::{NAMES, NAMES_AT, event, head, name};

use crate::events::{self, Message};
use crate::map::{Map, map, now};
use crate::{file, thread as own};

/// Held by a thread that adds a new name.
static ENTERING: Mutex<()> = Mutex::new(());
/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = name::TEXT_WORDS * 8 - 1;

/// Returns the number of a name, which it adds if it is new. Returns `None` if there is no room.
fn number(map: Map, text: &[u8]) -> Option<usize> {
    let mut words = [0u64; name::TEXT_WORDS];
    for (word, bytes) in words
        .iter_mut()
        .zip(text[..text.len().min(MAX_NAME_BYTES)].chunks(8))
    {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    let known = |number: &usize| {
        let at = NAMES_AT + number * name::WORDS;
        let there = map[at..at + name::TEXT_WORDS].iter();
        there
            .zip(&words)
            .all(|(there, word)| there.load(Relaxed) == *word)
    };
    if let Some(number) = (0..NAMES).find(known) {
        return Some(number);
    }
    let _entering = ENTERING.lock().unwrap_or_else(PoisonError::into_inner);
    let free = |number: &usize| map[NAMES_AT + number * name::WORDS].load(Relaxed) == 0;
    let Some(number) = (0..NAMES).find(known).or_else(|| (0..NAMES).find(free)) else {
        map[head::NAMES_LOST].fetch_add(1, Relaxed);
        return None;
    };
    file::write_text(map, NAMES_AT + number * name::WORDS, MAX_NAME_BYTES, text);
    Some(number)
}

/// Returns the record, the number of a name and the position of its entry. Returns `None` if recording is off or the name is empty.
fn place(text: &CStr) -> Option<(Map, usize, usize)> {
    let map = map()?;
    if map[head::OFF_SINCE].load(Relaxed) != 0 || text.is_empty() {
        return None;
    }
    let number = number(map, text.to_bytes())?;
    Some((map, number, NAMES_AT + number * name::WORDS))
}

fn write(map: Map, kind: u16, times: (u64, u64), number: usize) {
    let about = Message {
        bytes: number as u64,
        ..Message::NONE
    };
    if let Some(part) = own::part(map) {
        events::write(map, part, kind, times, about);
    }
}

/// Returns the text at a pointer, or `None` if it is NULL.
///
/// # Safety
/// `text` must be NULL or NUL-terminated.
unsafe fn text_of<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller guarantees that `text` is NUL-terminated, and it is not NULL.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_mark(text: *const c_char) -> c_int {
    // SAFETY: the C program guarantees that `text` is NULL or NUL-terminated.
    let Some(text) = (unsafe { text_of(text) }) else {
        return ERR_ARGUMENT;
    };
    if let Some((map, number, at)) = place(text) {
        map[at + name::MARKS].fetch_add(1, Relaxed);
        let now = now();
        write(map, event::MARK, (now, now), number);
    }
    OK
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_toggle(text: *const c_char, on: c_int) -> c_int {
    // SAFETY: the C program guarantees that `text` is NULL or NUL-terminated.
    let Some(text) = (unsafe { text_of(text) }) else {
        return ERR_ARGUMENT;
    };
    let Some((map, number, at)) = place(text) else {
        return OK;
    };
    let since = &map[at + name::SINCE];
    if on != 0 {
        if since.compare_exchange(0, now(), AcqRel, Relaxed).is_ok() {
            map[at + name::TIMES].fetch_add(1, Relaxed);
        }
        return OK;
    }
    let began = since.swap(0, AcqRel);
    if began != 0 {
        let ended = now();
        map[at + name::TIME].fetch_add(ended.saturating_sub(began), Relaxed);
        write(map, event::TOGGLE, (began, ended), number);
    }
    OK
}

#[unsafe(no_mangle)]
extern "C" fn rg_profile(on: c_int) -> c_int {
    let Some(map) = map() else { return OK };
    let since = &map[head::OFF_SINCE];
    if on == 0 {
        let _ = since.compare_exchange(0, now(), Release, Relaxed);
    } else {
        let off = since.swap(0, AcqRel);
        if off != 0 {
            map[head::OFF].fetch_add(now().saturating_sub(off), Relaxed);
        }
    }
    OK
}
