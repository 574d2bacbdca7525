//! A desk as bytes, and back: for a host that begins to keep a copy.

use std::collections::HashMap;
use std::hash::Hash;

use regatta_wire::Malformed;
use regatta_wire::fields::{Bytes, Field};

use super::memory::Memory;
use super::{Desk, Host, Task};
use regatta_wire::fields;

fields!(Host {
    number,
    name,
    architecture,
    cores,
    speed,
    lives
});

impl Field for Task {
    fn put(&self, to: &mut Vec<u8>) {
        self.parent.put(to);
        self.host.put(to);
        self.pid.put(to);
        self.program.to_vec().put(to);
        self.ended.put(to);
        self.doomed.put(to);
        self.written.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok(Self {
            parent: Field::take(from)?,
            host: Field::take(from)?,
            pid: Field::take(from)?,
            program: Vec::<u8>::take(from)?.into(),
            ended: Field::take(from)?,
            doomed: Field::take(from)?,
            written: Field::take(from)?,
        })
    }
}

/// A map, in no order.
pub(super) fn put_map<K: Field + Clone, V: Field>(map: &HashMap<K, V>, to: &mut Vec<u8>) {
    (map.len() as u32).put(to);
    for (key, value) in map {
        key.put(to);
        value.put(to);
    }
}

pub(super) fn take_map<K: Field + Eq + Hash, V: Field>(
    from: &mut Bytes,
) -> Result<HashMap<K, V>, Malformed> {
    Ok(Vec::<(K, V)>::take(from)?.into_iter().collect())
}

impl Desk {
    /// All that it knows.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let to = &mut bytes;
        self.tasks.put(to);
        self.hosts.put(to);
        self.known.put(to);
        self.watches.put(to);
        self.names.put(to);
        self.groups.put(to);
        self.memory
            .as_ref()
            .map_or_else(Vec::new, Memory::to_list)
            .put(to);
        self.changes.put(to);
        bytes
    }

    /// The same desk again.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut from = Bytes(bytes);
        let from = &mut from;
        let desk = Self {
            tasks: Field::take(from)?,
            hosts: Field::take(from)?,
            known: Field::take(from)?,
            watches: Field::take(from)?,
            names: Field::take(from)?,
            groups: Field::take(from)?,
            memory: Some(Memory::from_list(Field::take(from)?)),
            changes: Field::take(from)?,
            said: Vec::new(),
        };
        from.0.is_empty().then_some(desk).ok_or(Malformed)
    }
}
