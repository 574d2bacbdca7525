//! Limits on the use of a key, and how much of them has been used.

use crate::record::{MAX_BODY_BYTES, TAG};

/// Limits on the use of a key of one direction. Both ends must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Minimum number of records under a key before it may be changed.
    pub least: u64,
    /// Maximum number of records under a key, including the one that changes it.
    pub most: u64,
    /// Maximum number of sealed bytes under a key, including tags.
    pub bytes: u64,
}

impl Bounds {
    /// Limits of all connections. The cipher itself would allow far more: AEGIS-128X takes 2^48 records under a key
    /// even with random nonces, and 2^61 bytes in a record (`draft-irtf-cfrg-aegis-aead`); here nonces are counted, so
    /// none is repeated. The limits bound how much can be read by someone who learns a key.
    pub const CONNECTION: Bounds = Bounds {
        least: 512,
        most: 1 << 23,
        bytes: 1 << 37,
    };
}

// A sender that has to change its key because of the bytes must have sealed enough records to do so.
const _: () = {
    let bounds = Bounds::CONNECTION;
    assert!(bounds.least + 1 < bounds.most);
    assert!((bounds.least + 2) * (MAX_BODY_BYTES as u64) < bounds.bytes);
};

/// How much a key has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl Use {
    /// Returns the use of a direction's first key after this many records without content.
    pub(crate) fn after(records: u64) -> Use {
        let bytes = records * TAG as u64;
        Use { records, bytes }
    }

    /// Returns whether the key may seal one more record of `sealed` bytes.
    #[inline]
    pub(crate) fn has_room(&self, bounds: &Bounds, sealed: usize) -> bool {
        self.records < bounds.most && self.bytes + sealed as u64 <= bounds.bytes
    }

    /// Returns whether the next record may change the key.
    pub(crate) fn may_change(&self, bounds: &Bounds) -> bool {
        self.records >= bounds.least && self.has_room(bounds, TAG)
    }

    #[inline]
    pub(crate) fn count(&mut self, sealed: usize) {
        self.records += 1;
        self.bytes += sealed as u64;
    }
}
