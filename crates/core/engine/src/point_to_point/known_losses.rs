//! Tasks that have died, left, or broken the protocol, as far as this task knows.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::transport::Peer;

/// Tasks that are gone.
#[derive(Default)]
pub(crate) struct KnownLosses {
    /// Peers that broke the protocol, and how.
    condemned: FxHashMap<Peer, &'static str>,
    /// Those of them of which others have not been told.
    accused: Vec<Peer>,
    /// Peers that are known to be gone.
    gone: FxHashSet<Peer>,
    /// Those of them of which what depends on them has not been ended.
    fresh: Vec<Peer>,
    /// Those of them whose last frames stay outside while the buffer is full.
    unheard: Vec<Peer>,
    /// The transport's count of losses at the last look. At first not the present one: losses before this task came are noticed, too.
    counted: u32,
}

impl KnownLosses {
    /// Returns whether somebody is gone.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }

    /// Returns whether a task is known to be gone. Mostly nobody is.
    #[inline(always)]
    pub(crate) fn has(&self, peer: Peer) -> bool {
        !self.gone.is_empty() && self.gone.contains(&peer)
    }

    /// Returns how many tasks are known to be gone.
    pub(crate) fn len(&self) -> usize {
        self.gone.len()
    }

    /// Notes that a task is gone. Returns false if that was known.
    pub(super) fn insert(&mut self, peer: Peer) -> bool {
        let is_new = self.gone.insert(peer);
        if is_new {
            self.fresh.push(peer);
        }
        is_new
    }

    /// Takes a task of which what depends on it has not been ended.
    pub(super) fn pop_fresh(&mut self) -> Option<Peer> {
        (!self.fresh.is_empty()).then(|| self.fresh.remove(0))
    }

    /// Returns whether what depends on some task has not been ended, or a culprit has not been named to others.
    #[inline(always)]
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty() || !self.accused.is_empty()
    }

    /// Notes that a task has broken the protocol. Returns false if that was known.
    pub(super) fn condemn(&mut self, peer: Peer, what: &'static str) -> bool {
        let first = !self.condemned.contains_key(&peer);
        if first {
            self.condemned.insert(peer, what);
            self.accused.push(peer);
        }
        first
    }

    /// Takes a task that has broken the protocol, and of which others have not been told.
    pub(super) fn pop_accused(&mut self) -> Option<Peer> {
        self.accused.pop()
    }

    /// Returns how a task has broken the protocol, if it has.
    #[inline(always)]
    pub(super) fn crime(&self, peer: Peer) -> Option<&'static str> {
        if self.condemned.is_empty() {
            return None;
        }
        self.condemned.get(&peer).copied()
    }

    /// Notes that the last frames of a task that is gone stay outside.
    pub(super) fn keep_unheard(&mut self, peer: Peer) {
        self.unheard.push(peer);
    }

    /// Returns whether the last frames of a task stay outside.
    pub(super) fn is_unheard(&self, peer: Peer) -> bool {
        self.unheard.contains(&peer)
    }

    /// Returns whether last frames of some task stay outside.
    #[inline(always)]
    pub(crate) fn has_unheard(&self) -> bool {
        !self.unheard.is_empty()
    }

    /// Returns the tasks whose last frames stay outside.
    pub(super) fn unheard(&self) -> &[Peer] {
        &self.unheard
    }

    /// Notes that the last frames of a task have been taken in.
    pub(super) fn end_unheard(&mut self, peer: Peer) {
        self.unheard.retain(|&one| one != peer);
    }

    /// Returns whether the transport has counted losses that have not been looked at.
    #[inline(always)]
    pub(super) fn are_counted(&self, count: u32) -> bool {
        self.counted == count
    }

    /// Notes that all losses of this count have been looked at.
    pub(super) fn note_count(&mut self, count: u32) {
        self.counted = count;
    }
}
