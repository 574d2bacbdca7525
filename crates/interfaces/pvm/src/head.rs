//! The 16 bytes before each PVM message, with what Regatta does not carry itself.
//!
//! They are 32-bit words in this machine's byte order, as the message after them may be: a magic number, the encoding,
//! the wait id (distinguishes replies), and the sender's host.

use crate::message::HEAD;

/// Magic number. No event and no stray message of Regatta's own begins with it.
const MARK: u32 = 0x334d_5650;

/// Magic number of a message whose body is in memory that the receiver can read. Its name and length follow.
const SHARED_MARK: u32 = 0x344d_5650;
/// Size of such a message in bytes.
pub const SHARED: usize = HEAD + 16;

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub encoding: i32,
    pub wid: i32,
    pub host: i32,
}

impl Head {
    #[inline(always)]
    pub fn bytes(self) -> [u8; HEAD] {
        self.marked(MARK)
    }

    /// Returns the message that refers to a body in shared memory.
    pub fn shared(self, name: u64, body: usize) -> [u8; SHARED] {
        let mut bytes = [0; SHARED];
        bytes[..HEAD].copy_from_slice(&self.marked(SHARED_MARK));
        bytes[HEAD..HEAD + 8].copy_from_slice(&name.to_ne_bytes());
        bytes[HEAD + 8..].copy_from_slice(&(body as u64).to_ne_bytes());
        bytes
    }

    /// Parses a message from [`Head::shared`]: returns the header, the name and the length of the body.
    pub fn read_shared(bytes: &[u8]) -> Option<(Head, u64, usize)> {
        let bytes: &[u8; SHARED] = bytes.try_into().ok()?;
        let (head, rest) = bytes.split_at(HEAD);
        let head = Head::marked_by(SHARED_MARK, head)?;
        let (name, body) = rest.split_at(8);
        let name = u64::from_ne_bytes(name.try_into().ok()?);
        let body = u64::from_ne_bytes(body.try_into().ok()?);
        Some((head, name, usize::try_from(body).ok()?))
    }

    #[inline(always)]
    fn marked(self, mark: u32) -> [u8; HEAD] {
        let words = [
            mark,
            self.encoding as u32,
            self.wid as u32,
            self.host as u32,
        ];
        let mut bytes = [0; HEAD];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Parses a header. Returns `None` if these bytes are not a header.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Option<Head> {
        Head::marked_by(MARK, bytes)
    }

    #[inline(always)]
    fn marked_by(wanted: u32, bytes: &[u8]) -> Option<Head> {
        let word = |at: usize| -> Option<u32> {
            let bytes = bytes.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let [mark, encoding, wid, host] = [word(0)?, word(4)?, word(8)?, word(12)?];
        (mark == wanted).then_some(Head {
            encoding: encoding as i32,
            wid: wid as i32,
            host: host as i32 & 0xfff,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_and_nothing_else_is() {
        let head = Head {
            encoding: 0x1000_0000,
            wid: -5,
            host: 3,
        };
        assert_eq!(Head::read(&head.bytes()), Some(head));
        let shared = head.shared(u64::MAX - 5, 1 << 40);
        let read = (head, u64::MAX - 5, 1 << 40);
        assert_eq!(Head::read_shared(&shared), Some(read));
        assert_eq!(Head::read_shared(&shared[..SHARED - 1]), None);
        assert_eq!(Head::read_shared(&[0; SHARED]), None);
        assert_eq!(Head::read(&shared), None);
        assert_eq!(Head::read(&head.bytes()[..15]), None);
        assert_eq!(Head::read(&[0; HEAD]), None);
        assert_eq!(Head::read(&crate::rg::EVENT_MARK.to_ne_bytes()), None);
    }
}
