//! Decodes XDR messages for the library itself.

/// The rest of a message. Every function returns `None` if it ends too early.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Starts at the beginning of these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads an integer of `pvm_pkint`.
    pub fn int(&mut self) -> Option<i32> {
        let bytes = self.take(4)?;
        Some(i32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// Reads a number of items. Returns `None` if the rest is too short for that many items of at least four bytes.
    pub fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.int()?).ok()?;
        (count <= self.0.len() / 4).then_some(count)
    }

    /// Reads a string of `pvm_pkstr`, and returns it without its NUL.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.int()?).ok()?;
        let all = self.take(length.checked_next_multiple_of(4)?)?;
        let (last, text) = all.get(..length)?.split_last()?;
        (*last == 0 && !text.contains(&0)).then_some(text)
    }

    /// Reads a number of strings and the strings.
    pub fn strings(&mut self) -> Option<Vec<&'a [u8]>> {
        let count = self.count()?;
        (0..count).map(|_| self.string()).collect()
    }

    /// Returns whether the message has been read completely.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Body;

    #[test]
    fn what_is_written_is_read_and_half_of_it_is_not() {
        let bytes = Body::new()
            .int(-7)
            .string("two")
            .int(1)
            .string("")
            .into_vec();
        let mut whole = Reader::new(&bytes);
        assert_eq!(whole.int(), Some(-7));
        assert_eq!(whole.string(), Some(&b"two"[..]));
        assert_eq!(whole.strings(), Some(vec![&b""[..]]));
        assert!(whole.is_empty());
        for end in 0..bytes.len() {
            let mut half = Reader::new(&bytes[..end]);
            let read = || Some((half.int()?, half.string()?, half.strings()?));
            assert_eq!(
                {
                    let mut read = read;
                    read()
                },
                None,
                "{end}"
            );
        }
        assert_eq!(Reader::new(&[0x7f, 255, 255, 255]).string(), None);
        assert_eq!(Reader::new(&[0x7f, 255, 255, 255]).count(), None);
        assert_eq!(Reader::new(&[0, 0, 0, 0]).string(), None);
    }
}
