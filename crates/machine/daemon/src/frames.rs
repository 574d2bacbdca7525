//! A shell on another host, as bytes: frames of what it reads, what it writes, and how it ends.
//!
//! A frame is a kind of one byte, a length of four, and so many bytes. Pure; takes any bytes.

/// Longer frames are refused.
pub(crate) const LONGEST: usize = 64 << 10;
const HEAD: usize = 5;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// For the shell's input, or from its output; no bytes: its end.
    Data,
    /// From its standard error.
    Error,
    /// It has ended: four bytes of status.
    Status,
}

/// A frame, and how many bytes it takes.
type Frame<'a> = (Kind, &'a [u8], usize);

/// Not a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Adds a frame; `bytes` no longer than [`LONGEST`].
pub(crate) fn put(to: &mut Vec<u8>, kind: Kind, bytes: &[u8]) {
    debug_assert!(bytes.len() <= LONGEST);
    to.push(kind as u8);
    to.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    to.extend_from_slice(bytes);
}

/// The first frame of these bytes, and how many it takes; `None`: it has not come as a whole.
pub(crate) fn take(from: &[u8]) -> Result<Option<Frame<'_>>, Malformed> {
    let Some((head, rest)) = from.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let kind = match head[0] {
        0 => Kind::Data,
        1 => Kind::Error,
        2 => Kind::Status,
        _ => return Err(Malformed),
    };
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if length > LONGEST {
        return Err(Malformed);
    }
    Ok(rest.get(..length).map(|bytes| (kind, bytes, HEAD + length)))
}

/// How many of these bytes are whole frames, and of which kind the last one is.
pub(crate) fn whole(bytes: &[u8]) -> Result<(usize, Option<Kind>), Malformed> {
    let (mut end, mut last) = (0, None);
    while let Some((kind, _, length)) = take(&bytes[end..])? {
        (end, last) = (end + length, Some(kind));
    }
    Ok((end, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut bytes = Vec::new();
        put(&mut bytes, Kind::Error, b"oh");
        put(&mut bytes, Kind::Data, b"");
        assert_eq!(take(&bytes), Ok(Some((Kind::Error, &b"oh"[..], 7))));
        assert_eq!(take(&bytes[7..]), Ok(Some((Kind::Data, &b""[..], 5))));
        for cut in 0..bytes.len() {
            let first = (7, Some(Kind::Error));
            assert_eq!(
                whole(&bytes[..cut]),
                Ok(if cut < 7 { (0, None) } else { first })
            );
        }
        assert_eq!(whole(&bytes), Ok((bytes.len(), Some(Kind::Data))));
        assert_eq!(take(&[0, 0, 0, 0, 1]), Err(Malformed));
        assert_eq!(take(&[9, 0, 0, 0, 0]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_frames_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok((end, _)) = whole(&bytes) {
                prop_assert!(end <= bytes.len());
            }
        }
    }
}
