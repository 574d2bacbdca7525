//! The functions of `regatta.h` that are recorded, and what the time in them is called. `build.rs` makes the list of the header.

/// Purpose of a call, to which the time in it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sending.
    Send,
    /// Receiving, the wait for the message included.
    Receive,
    /// Waiting for what was begun, and looking for what has come.
    Wait,
    /// Calls of all members of a group.
    Collective,
    /// Joining, leaving, and what the launcher is asked.
    Other,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [
        Kind::Send,
        Kind::Receive,
        Kind::Wait,
        Kind::Collective,
        Kind::Other,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Send => "sending",
            Kind::Receive => "receiving",
            Kind::Wait => "waiting",
            Kind::Collective => "collective",
            Kind::Other => "other",
        }
    }
}

/// The number of a function: its place in [`CALLS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call(pub u16);

impl Call {
    /// The function of this name, which is in the list.
    pub const fn named(name: &str) -> Call {
        let mut at = 0;
        while at < CALLS.len() {
            if equal(CALLS[at].0.as_bytes(), name.as_bytes()) {
                return Call(at as u16);
            }
            at += 1;
        }
        panic!("no such call");
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        CALLS
            .get(usize::from(self.0))
            .map_or("unknown", |call| call.0)
    }

    /// Its purpose.
    pub fn kind(self) -> Kind {
        CALLS
            .get(usize::from(self.0))
            .map_or(Kind::Other, |call| call.1)
    }
}

/// Are two texts equal? In constants nothing else can compare them.
const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    a.len() == b.len() && at == a.len()
}

// `CALLS`, all functions that are recorded and their purposes, in the order of their numbers.
include!(concat!(env!("OUT_DIR"), "/calls.rs"));
