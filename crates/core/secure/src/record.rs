//! The header and the lengths of a record.

use std::io;

/// Size of the header of a record, which has the length of the rest, in bytes.
pub const HEAD: usize = 2;
/// Size of the tag after the content, in bytes.
pub const TAG: usize = 16;
/// Maximum size of what follows a header, in bytes: its length has 16 bits.
pub(crate) const MAX_BODY_BYTES: usize = 65_535;
/// Maximum size of the content of a record, in bytes.
pub const MAX_CONTENT_BYTES: usize = MAX_BODY_BYTES - TAG;
/// Size of a whole record that changes the key, in bytes.
pub(crate) const KEY_CHANGE_BYTES: usize = HEAD + TAG;

/// Returns the length of what follows a header. Fails if it is shorter than a tag.
#[inline]
pub(crate) fn length(head: [u8; HEAD]) -> io::Result<usize> {
    let length = usize::from(u16::from_be_bytes(head));
    match length >= TAG {
        true => Ok(length),
        false => Err(broken("a record is shorter than its tag")),
    }
}

pub(crate) fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
