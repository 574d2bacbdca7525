//! Tasks that have died, left, or broken the protocol, as far as this task knows.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::transport::Peer;

/// Tasks that are gone, and how far this was handled.
#[derive(Default)]
pub(crate) struct KnownLosses {
    /// Peers that broke the protocol, and how.
    condemned: FxHashMap<Peer, &'static str>,
    /// Condemned peers about which the other tasks were not notified yet.
    accused: Vec<Peer>,
    /// Peers that are known to be gone.
    gone: FxHashSet<Peer>,
    /// Peers that are gone and whose dependent operations were not ended yet.
    fresh: Vec<Peer>,
    /// Peers that are gone and whose last frames stay in the transport while the buffer is full.
    unheard: Vec<Peer>,
    /// The transport's number of losses at the last check. Initially different from the transport's, so that losses before this task's start are
    /// noticed.
    counted: u32,
}

impl KnownLosses {
    /// Returns whether no task is known to be gone.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }

    /// Returns whether a task is known to be gone. Usually none is.
    #[inline(always)]
    pub(crate) fn has(&self, peer: Peer) -> bool {
        !self.gone.is_empty() && self.gone.contains(&peer)
    }

    /// Returns the number of tasks that are known to be gone.
    pub(crate) fn len(&self) -> usize {
        self.gone.len()
    }

    /// Records that a task is gone. Returns false if that was known.
    pub(super) fn insert(&mut self, peer: Peer) -> bool {
        let is_new = self.gone.insert(peer);
        if is_new {
            self.fresh.push(peer);
        }
        is_new
    }

    /// Removes and returns a lost task whose dependent operations were not ended yet.
    pub(super) fn pop_fresh(&mut self) -> Option<Peer> {
        (!self.fresh.is_empty()).then(|| self.fresh.remove(0))
    }

    /// Returns whether dependent operations of some task were not ended, or a condemned peer was not reported to other tasks.
    #[inline(always)]
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty() || !self.accused.is_empty()
    }

    /// Records that a task has broken the protocol. Returns false if that was known.
    pub(super) fn condemn(&mut self, peer: Peer, what: &'static str) -> bool {
        let first = !self.condemned.contains_key(&peer);
        if first {
            self.condemned.insert(peer, what);
            self.accused.push(peer);
        }
        first
    }

    /// Removes and returns a task that has broken the protocol and was not reported to other tasks.
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

    /// Records that the last frames of a lost task stay in the transport.
    pub(super) fn keep_unheard(&mut self, peer: Peer) {
        self.unheard.push(peer);
    }

    /// Returns whether the last frames of a task stay in the transport.
    pub(super) fn is_unheard(&self, peer: Peer) -> bool {
        self.unheard.contains(&peer)
    }

    /// Returns whether last frames of any task stay in the transport.
    #[inline(always)]
    pub(crate) fn has_unheard(&self) -> bool {
        !self.unheard.is_empty()
    }

    /// Returns the tasks whose last frames stay in the transport.
    pub(super) fn unheard(&self) -> &[Peer] {
        &self.unheard
    }

    /// Records that the last frames of a task were received.
    pub(super) fn end_unheard(&mut self, peer: Peer) {
        self.unheard.retain(|&one| one != peer);
    }

    /// Returns whether all losses up to this number were checked.
    #[inline(always)]
    pub(super) fn are_counted(&self, count: u32) -> bool {
        self.counted == count
    }

    /// Records that all losses up to this number were checked.
    pub(super) fn note_count(&mut self, count: u32) {
        self.counted = count;
    }
}
