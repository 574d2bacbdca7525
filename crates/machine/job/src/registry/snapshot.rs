//! A snapshot: a whole registry as bytes, from which another host starts a copy.
//!
//! Maps are ordered, so equal registries have equal snapshots.

use regatta_wire::Malformed;
use regatta_wire::fields;
use regatta_wire::fields::{Bytes, Field};

use super::sent::SentLog;
use super::{HostRecord, Registry, TaskRecord};

fields!(HostRecord {
    number,
    name,
    architecture,
    cores,
    speed,
    alive
});

impl Field for TaskRecord {
    fn put(&self, to: &mut Vec<u8>) {
        self.parent.put(to);
        self.host.put(to);
        self.pid.put(to);
        self.program.to_vec().put(to);
        self.ended.put(to);
        self.kill_requested.put(to);
        self.output.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok(Self {
            parent: Field::take(from)?,
            host: Field::take(from)?,
            pid: Field::take(from)?,
            program: Vec::<u8>::take(from)?.into(),
            ended: Field::take(from)?,
            kill_requested: Field::take(from)?,
            output: Field::take(from)?,
        })
    }
}

impl Registry {
    /// Returns the whole registry as bytes, without messages that have not been taken.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let to = &mut bytes;
        self.tasks.put(to);
        self.hosts.put(to);
        self.known_runs.put(to);
        self.watches.put(to);
        self.names.put(to);
        self.groups.put(to);
        self.sent
            .as_ref()
            .map_or_else(Vec::new, SentLog::to_list)
            .put(to);
        self.changes.put(to);
        self.decision.put(to);
        self.announced.put(to);
        bytes
    }

    /// Decodes a registry from its snapshot.
    pub fn from_snapshot(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut from = Bytes(bytes);
        let from = &mut from;
        let registry = Self {
            tasks: Field::take(from)?,
            hosts: Field::take(from)?,
            known_runs: Field::take(from)?,
            watches: Field::take(from)?,
            names: Field::take(from)?,
            groups: Field::take(from)?,
            sent: Some(SentLog::from_list(Field::take(from)?)),
            changes: Field::take(from)?,
            decision: Field::take(from)?,
            announced: Field::take(from)?,
            outgoing: Vec::new(),
        };
        from.0.is_empty().then_some(registry).ok_or(Malformed)
    }
}
