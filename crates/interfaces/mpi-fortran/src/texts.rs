//! CHARACTER arguments: strings padded with blanks, with their length as a separate argument.

use std::ffi::{CString, c_char, c_int};

use crate::SUCCESS;

/// Converts a string to C without its trailing blanks. It also ends at a NUL, if there is one.
///
/// # Safety
/// `first` points to `length` bytes.
pub unsafe fn text(first: *const u8, length: usize) -> CString {
    // SAFETY: the caller guarantees valid pointers.
    let bytes = unsafe { std::slice::from_raw_parts(first, length) };
    of_bytes(bytes)
}

/// Converts a string to C without surrounding blanks. Used for keys, values, programs and their arguments.
///
/// # Safety
/// `first` points to `length` bytes.
pub unsafe fn word(first: *const u8, length: usize) -> CString {
    // SAFETY: the caller guarantees valid pointers.
    let bytes = unsafe { std::slice::from_raw_parts(first, length) };
    of_word(bytes)
}

fn of_word(bytes: &[u8]) -> CString {
    let begin = bytes.iter().position(|it| *it != b' ');
    of_bytes(&bytes[begin.unwrap_or(bytes.len())..])
}

fn of_bytes(bytes: &[u8]) -> CString {
    let bytes = bytes.split(|it| *it == 0).next().unwrap_or_default();
    let end = bytes
        .iter()
        .rposition(|it| *it != b' ')
        .map_or(0, |it| it + 1);
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// Maximum length in bytes of a string that C's functions return: MPI_MAX_LIBRARY_VERSION_STRING.
const MAX_TEXT_BYTES: usize = 8192;

/// Memory for a string from C.
pub struct Room(Vec<u8>);

impl Room {
    /// Makes room for any string of the standard.
    pub fn new() -> Room {
        Room::of(MAX_TEXT_BYTES)
    }

    /// Makes room for a string of this length.
    pub fn of(length: usize) -> Room {
        Room(vec![0; length + 1])
    }

    /// Returns the memory, to which C writes.
    pub fn place(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// If the call has succeeded, copies the string to the program, truncated or padded with blanks.
    ///
    /// # Safety
    /// `first` points to `length` bytes.
    pub unsafe fn give(&self, result: c_int, first: *mut u8, length: usize) {
        if result != SUCCESS {
            return;
        }
        // SAFETY: the caller guarantees valid pointers.
        let to = unsafe { std::slice::from_raw_parts_mut(first, length) };
        let text = self.0.split(|it| *it == 0).next().unwrap_or_default();
        let count = text.len().min(length);
        to[..count].copy_from_slice(&text[..count]);
        to[count..].fill(b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_at_the_end_are_none_of_a_text() {
        let texts: [(&[u8], &str); 5] = [
            (b"a b  ", "a b"),
            (b"   ", ""),
            (b"", ""),
            (b" a", " a"),
            (b"a\0b ", "a"),
        ];
        for (from, to) in texts {
            assert_eq!(of_bytes(from).to_str(), Ok(to));
        }
    }

    #[test]
    fn blanks_around_a_word_are_none_of_it() {
        let words: [(&[u8], &str); 4] = [
            (b"  a b ", "a b"),
            (b"   ", ""),
            (b" \ta", "\ta"),
            (b"", ""),
        ];
        for (from, to) in words {
            assert_eq!(of_word(from).to_str(), Ok(to));
        }
    }

    #[test]
    fn a_text_is_cut_or_filled_up() {
        let mut room = Room::of(3);
        room.0[..3].copy_from_slice(b"abc");
        let mut to = *b"?????";
        // SAFETY: `to` has at least these lengths.
        unsafe { room.give(SUCCESS, to.as_mut_ptr(), 5) };
        assert_eq!(&to, b"abc  ");
        // SAFETY: `to` has at least these lengths.
        unsafe { room.give(SUCCESS, to.as_mut_ptr(), 2) };
        assert_eq!(&to, b"abc  ");
        // SAFETY: `to` has at least these lengths.
        unsafe { room.give(1, to.as_mut_ptr(), 5) };
        assert_eq!(&to, b"abc  ");
    }
}
