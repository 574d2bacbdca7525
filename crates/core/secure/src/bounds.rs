//! How long a key serves: the bounds, and what has been used of them.

use crate::record::{MAX_BODY_BYTES, TAG};

/// Bounds of a key of one direction. Both ends must hold the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Records under a key before it may be changed.
    pub least: u64,
    /// Records under a key, the one that changes it among them.
    pub most: u64,
    /// Sealed bytes under a key, tags among them.
    pub bytes: u64,
}

impl Bounds {
    /// Bounds of all connections. The cipher asks for no change so early: AEGIS-128X bears 2^48 records under a key even where nonces are drawn
    /// by lot, and 2^61 bytes in a record (`draft-irtf-cfrg-aegis-aead`); here nonces are counted, and none comes twice. But who comes to know
    /// a key is to read no more than so much with it.
    pub const CONNECTION: Bounds = Bounds {
        least: 512,
        most: 1 << 23,
        bytes: 1 << 37,
    };
}

// A sender that changes its key because of the bytes has sealed enough records for that.
const _: () = {
    let bounds = Bounds::CONNECTION;
    assert!(bounds.least + 1 < bounds.most);
    assert!((bounds.least + 2) * (MAX_BODY_BYTES as u64) < bounds.bytes);
};

/// The use that has been made of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl Use {
    /// That of the first key of a direction in which so many records without content have gone.
    pub(crate) fn after(records: u64) -> Use {
        let bytes = records * TAG as u64;
        Use { records, bytes }
    }

    /// Whether a key may serve for one more record of so many sealed bytes.
    #[inline]
    pub(crate) fn has_room(&self, bounds: &Bounds, sealed: usize) -> bool {
        self.records < bounds.most && self.bytes + sealed as u64 <= bounds.bytes
    }

    /// Whether the next record may change the key.
    pub(crate) fn may_change(&self, bounds: &Bounds) -> bool {
        self.records >= bounds.least && self.has_room(bounds, TAG)
    }

    #[inline]
    pub(crate) fn count(&mut self, sealed: usize) {
        self.records += 1;
        self.bytes += sealed as u64;
    }
}
