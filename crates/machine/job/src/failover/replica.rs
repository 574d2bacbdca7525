//! A copy of the registry on another host than the launcher's.

use regatta_wire::Malformed;
use regatta_wire::fields::Message;

use crate::{Change, Registry};

/// Size of the part of a snapshot or a change that is sent in one message, in bytes.
pub const PIECE_BYTES: usize = 1 << 20;

/// A snapshot of the registry, and the changes since then.
#[derive(Debug, Default)]
pub struct Replica {
    registry: Option<Registry>,
    /// The first pieces of a snapshot or change whose last piece has not arrived.
    pieces: Vec<u8>,
    /// Whether the snapshot came from an earlier leader.
    is_of_earlier_leader: bool,
    /// Whether the present leader has sent its succession order without a snapshot before it. From then on it may act
    /// on changes that this replica lacks.
    is_outdated: bool,
}

impl Replica {
    /// Takes a piece of a change, or of a snapshot, which replaces the registry. Fails if the bytes are malformed, or a
    /// change arrives without a snapshot.
    pub fn take_piece(&mut self, change: bool, bytes: &[u8], last: bool) -> Result<(), Malformed> {
        self.pieces.extend_from_slice(bytes);
        if !last {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.pieces);
        match (change, &mut self.registry) {
            (false, registry) => {
                *registry = Some(Registry::from_snapshot(&bytes)?);
                (self.is_of_earlier_leader, self.is_outdated) = (false, false);
            }
            (true, Some(registry)) => registry.apply(Change::decode(&bytes)?)?,
            (true, None) => return Err(Malformed),
        }
        Ok(())
    }

    /// Records that another launcher sends from now on. Pieces of an incomplete change are dropped, since the rest will
    /// not arrive.
    pub fn leader_changed(&mut self) {
        self.pieces.clear();
        self.is_of_earlier_leader = true;
    }

    /// Records that the present leader has sent its succession order.
    pub fn order_arrived(&mut self) {
        self.is_outdated |= self.is_of_earlier_leader;
    }

    /// Returns whether this host may lead with the replica.
    pub fn is_current(&self) -> bool {
        self.registry.is_some() && !self.is_outdated
    }

    /// Returns how many changes of the registry the replica has applied, or `None` if this host has no replica.
    pub fn changes(&self) -> Option<u64> {
        self.registry.as_ref().map(Registry::changes)
    }

    /// Takes the registry, to lead with it.
    pub fn take(&mut self) -> Option<Registry> {
        self.registry.take()
    }

    /// Returns a snapshot if this replica has applied more than `changes` changes.
    pub fn later_snapshot(&self, changes: u64) -> Option<Vec<u8>> {
        let later = self.registry.as_ref();
        let later = later.filter(|registry| registry.changes() > changes);
        later.map(Registry::snapshot)
    }
}

/// Returns the registry that has applied the most changes, among our own and others' snapshots. Malformed snapshots are
/// ignored.
pub fn latest<'a>(own: Registry, others: impl Iterator<Item = &'a Vec<u8>>) -> Registry {
    let others = others.filter_map(|bytes| Registry::from_snapshot(bytes).ok());
    others.fold(own, |best, other| match other.changes() > best.changes() {
        true => other,
        false => best,
    })
}
