//! Lineages: the unbroken chain of quorum decisions to which a roll belongs.
//!
//! Within one lineage, consecutive rolls are decided by quorums that intersect, so there is one roll for each epoch
//! ([`crate::ballot`]). Two things go on without a quorum: an operator's assertion, and certainty about the dead.
//! Neither can know what the absent hosts have decided, so neither may continue their chain: each begins a new lineage,
//! as a recovery from a lost quorum begins a new cluster in consensus systems.
//!
//! Hosts of different lineages accept nothing from each other, neither deaths nor votes; they only compare
//! ([`crate::reunion`]). If both could go on, the lower lineage does: the one for which operators have vouched less
//! often, then the one with fewer conclusions from certainty, then the one whose eldest host arrived earlier.

use rand::{Rng, RngExt};
use regatta_wire::fields;

/// Identifies a lineage. The order is the order of precedence; the first one goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lineage {
    /// How often an operator's assertion has replaced a quorum.
    vouched: u16,
    /// How often certainty about the dead has replaced a quorum.
    concluded: u16,
    /// The place of its eldest host in the order of arrival, when the lineage began.
    eldest: u32,
    /// A random number, never zero, which distinguishes lineages that began alike.
    nonce: u32,
}
fields!(Lineage {
    vouched,
    concluded,
    eldest,
    nonce
});

impl Lineage {
    /// Encoded size, in bytes.
    pub(crate) const BYTES: usize = 12;

    /// The lineage of hosts that begin with the same roll.
    pub(crate) const FIRST: Lineage = Lineage {
        vouched: 0,
        concluded: 0,
        eldest: 0,
        nonce: 1,
    };

    /// Returns the lineage of a machine that one host creates.
    pub(crate) fn founded(rng: &mut impl Rng) -> Lineage {
        Lineage {
            nonce: rng.random_range(2..=u32::MAX),
            ..Lineage::FIRST
        }
    }

    /// Returns the next lineage, because an operator asserts that the absent hosts are dead.
    pub(crate) fn vouched(&self, eldest: u32, rng: &mut impl Rng) -> Lineage {
        Lineage {
            vouched: self.vouched.saturating_add(1),
            eldest,
            ..Lineage::founded_with(self, rng)
        }
    }

    /// Returns the next lineage, because the absent hosts are certainly dead.
    pub(crate) fn concluded(&self, eldest: u32, rng: &mut impl Rng) -> Lineage {
        Lineage {
            concluded: self.concluded.saturating_add(1),
            eldest,
            ..Lineage::founded_with(self, rng)
        }
    }

    fn founded_with(parent: &Lineage, rng: &mut impl Rng) -> Lineage {
        Lineage {
            nonce: Lineage::founded(rng).nonce,
            ..*parent
        }
    }

    /// Returns whether there is no lineage: a new host has not met another one yet.
    pub(crate) fn is_none(&self) -> bool {
        self.nonce == 0
    }

    /// Returns how often an operator's assertion has replaced a quorum.
    pub fn vouches(&self) -> u16 {
        self.vouched
    }

    /// Returns any lineage, for tests of decoders.
    #[cfg(test)]
    pub(crate) fn any(words: (u16, u16, u32, u32)) -> Lineage {
        let (vouched, concluded, eldest, nonce) = words;
        Lineage {
            vouched,
            concluded,
            eldest,
            nonce,
        }
    }
}
