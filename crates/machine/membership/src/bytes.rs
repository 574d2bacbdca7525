//! Reading bytes that somebody sent: every read is checked, nothing panics.

/// The bytes are not what they should be: too few, or of an unknown kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

impl std::fmt::Display for Short {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("the datagram is shorter than it says, or of an unknown kind")
    }
}

impl std::error::Error for Short {}

/// Reads little-endian words off the front of a slice.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn slice(&mut self, length: usize) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        Ok(self.slice(N)?.try_into().expect("slice gave N bytes"))
    }

    pub fn u8(&mut self) -> Result<u8, Short> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }
}
