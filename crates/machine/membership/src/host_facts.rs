//! Facts about hosts beside their address. They spread as passengers of foca's messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regatta_wire::Malformed;
use regatta_wire::fields::whole;

use crate::host::{Facts, HostId};

/// The facts of all hosts. Shared between [`crate::Membership`] and the foca inside it, which cannot lend what it owns; one
/// thread at a time has both, so the lock is never contended.
#[derive(Clone, Default)]
pub(crate) struct Book(Arc<Mutex<Pages>>);

#[derive(Default)]
pub(crate) struct Pages {
    facts: HashMap<HostId, Facts>,
    fresh: Vec<HostId>,
}

impl Book {
    pub fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    pub fn get(&self, host: &HostId) -> Option<&Facts> {
        self.facts.get(host)
    }

    /// True if that was news.
    pub fn put(&mut self, host: HostId, facts: Facts) -> bool {
        if self.facts.get(&host) == Some(&facts) {
            return false;
        }
        self.facts.insert(host, facts);
        self.fresh.push(host);
        true
    }

    /// Spreads the facts of this host once more, if there are any.
    pub fn refresh(&mut self, host: HostId) {
        if self.facts.contains_key(&host) && !self.fresh.contains(&host) {
            self.fresh.push(host);
        }
    }

    pub fn forget(&mut self, host: &HostId) {
        self.facts.remove(host);
    }

    /// Hosts that facts came of since the last call.
    pub fn take_fresh(&mut self) -> Vec<HostId> {
        std::mem::take(&mut self.fresh)
    }
}

/// Facts of one host replace older ones of it.
pub(crate) struct Of(HostId);

impl foca::Invalidates for Of {
    fn invalidates(&self, other: &Of) -> bool {
        self.0.same_place(&other.0)
    }
}

impl foca::BroadcastHandler<HostId> for Book {
    type Key = Of;
    type Error = Malformed;

    /// One passenger: a host and its facts.
    fn receive_item(
        &mut self,
        data: &[u8],
        _sender: Option<&HostId>,
    ) -> Result<Option<Of>, Malformed> {
        let (host, facts) = whole(data)?;
        Ok(self.lock().put(host, facts).then_some(Of(host)))
    }
}
