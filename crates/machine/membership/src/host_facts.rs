//! Facts about hosts besides their address. They are spread as custom broadcasts of foca.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regatta_wire::Malformed;
use regatta_wire::fields::whole;

use crate::host::{Facts, HostId};

/// The facts of all hosts. Shared between [`crate::Membership`] and the foca inside it, which cannot lend what it owns.
/// Only one thread at a time uses either, so the lock is never contended.
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

    /// Records the facts of a host. Returns whether they are new.
    pub fn put(&mut self, host: HostId, facts: Facts) -> bool {
        if self.facts.get(&host) == Some(&facts) {
            return false;
        }
        self.facts.insert(host, facts);
        self.fresh.push(host);
        true
    }

    /// Reports the facts of a host once more, if there are any.
    pub fn refresh(&mut self, host: HostId) {
        if self.facts.contains_key(&host) && !self.fresh.contains(&host) {
            self.fresh.push(host);
        }
    }

    pub fn forget(&mut self, host: &HostId) {
        self.facts.remove(host);
    }

    /// Returns the hosts whose facts were received since the last call.
    pub fn take_fresh(&mut self) -> Vec<HostId> {
        std::mem::take(&mut self.fresh)
    }
}

/// The key of a broadcast: facts of a host replace older ones of the same address.
pub(crate) struct Of(HostId);

impl foca::Invalidates for Of {
    fn invalidates(&self, other: &Of) -> bool {
        self.0.same_place(&other.0)
    }
}

impl foca::BroadcastHandler<HostId> for Book {
    type Key = Of;
    type Error = Malformed;

    /// Handles one broadcast: a host and its facts.
    fn receive_item(
        &mut self,
        data: &[u8],
        _sender: Option<&HostId>,
    ) -> Result<Option<Of>, Malformed> {
        let (host, facts) = whole(data)?;
        Ok(self.lock().put(host, facts).then_some(Of(host)))
    }
}
