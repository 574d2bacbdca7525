//! Lineages: which unbroken chain of quorum decisions a roll belongs to.
//!
//! Inside one lineage, consecutive rolls are decided by quorums that meet, so there is one roll for each epoch ([`crate::ballot`]). Two things
//! go on without a quorum: an operator's word, and certainty about the dead. Neither can know what the absent have decided, so neither may
//! continue their chain: each begins a new lineage, as a recovery from a lost quorum begins a new cluster in consensus systems.
//!
//! Hosts of different lineages take nothing from each other, neither news of deaths nor votes; they only compare ([`crate::reunion`]). The
//! lower lineage goes on if both could: the one that fewer operators have vouched for, then the one with fewer conclusions from certainty,
//! then the one whose eldest host has been here longer.

use rand::{Rng, RngExt};
use regatta_wire::fields;

/// Names a lineage. The order is the order of precedence, first the one that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lineage {
    /// How often an operator's word has stood in for a quorum.
    vouched: u16,
    /// How often certainty about the dead has.
    concluded: u16,
    /// The place in the order of arrival of its eldest host, when the lineage began.
    eldest: u32,
    /// Drawn when it began, and never zero; two lineages that began alike differ here.
    nonce: u32,
}
fields!(Lineage {
    vouched,
    concluded,
    eldest,
    nonce
});

impl Lineage {
    /// Bytes on the wire.
    pub(crate) const BYTES: usize = 12;

    /// The lineage of hosts that begin with one and the same roll.
    pub(crate) const FIRST: Lineage = Lineage {
        vouched: 0,
        concluded: 0,
        eldest: 0,
        nonce: 1,
    };

    /// The lineage of a machine that one host founds.
    pub(crate) fn founded(rng: &mut impl Rng) -> Lineage {
        Lineage {
            nonce: rng.random_range(2..=u32::MAX),
            ..Lineage::FIRST
        }
    }

    /// The next one, because an operator vouches that the absent are dead.
    pub(crate) fn vouched(&self, eldest: u32, rng: &mut impl Rng) -> Lineage {
        Lineage {
            vouched: self.vouched.saturating_add(1),
            eldest,
            ..Lineage::founded_with(self, rng)
        }
    }

    /// The next one, because the absent are certainly dead.
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

    /// Whether this is none: a newcomer has not met anybody yet.
    pub(crate) fn is_none(&self) -> bool {
        self.nonce == 0
    }

    /// How often an operator's word has stood in for a quorum.
    pub fn vouches(&self) -> u16 {
        self.vouched
    }

    /// Any lineage, for tests of decoders.
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
