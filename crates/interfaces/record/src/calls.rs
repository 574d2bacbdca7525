//! The functions of `regatta.h` that are recorded, and the purpose of each. `build.rs` generates the list from the header.

/// Purpose of a call. A profile sums up the time in calls by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sending.
    Send,
    /// Receiving, including the wait for the message.
    Receive,
    /// Waiting for started operations, and probing for messages.
    Wait,
    /// Collective calls.
    Collective,
    /// Joining, leaving, and requests to the launcher.
    Other,
}

impl Kind {
    /// All purposes.
    pub const ALL: [Kind; 5] = [
        Kind::Send,
        Kind::Receive,
        Kind::Wait,
        Kind::Collective,
        Kind::Other,
    ];

    /// Returns the word for the purpose.
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

/// The number of a function: its index in [`CALLS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call(pub u16);

impl Call {
    /// Returns the function of this name. Panics if it is not in the list.
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

    /// Returns the function's name.
    pub fn name(self) -> &'static str {
        CALLS
            .get(usize::from(self.0))
            .map_or("unknown", |call| call.0)
    }

    /// Returns the function's purpose.
    pub fn kind(self) -> Kind {
        CALLS
            .get(usize::from(self.0))
            .map_or(Kind::Other, |call| call.1)
    }
}

/// Returns whether two texts are equal. Constant functions cannot use `==` for slices.
const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    a.len() == b.len() && at == a.len()
}

// Defines `CALLS`, all recorded functions and their purposes, in the order of their numbers.
include!(concat!(env!("OUT_DIR"), "/calls.rs"));
