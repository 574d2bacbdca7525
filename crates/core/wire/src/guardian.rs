//! Messages, as bytes, between tasks that the launcher of another system has started and their guardians, before they
//! form a job.
//!
//! Decoding accepts any bytes: it returns `None` for what is not a message, and checks each length before using it.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::fields::{Bytes, Field, bytes_of, whole};
use crate::{Malformed, choices, fields};

/// Version of these messages.
pub const VERSION: u32 = 4;
/// Size of a [`Record`], in bytes.
pub const RECORD: usize = 5;

const MAGIC: [u8; 8] = *b"rgslurm\x01";

/// A secret, or a nonce.
pub type Secret = [u8; 32];

/// The versions that two programs must have in common. They begin each first message, and their format never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// Version of these messages.
    pub rendezvous: u32,
    /// Version of the job's memory.
    pub job: u32,
}

/// Argument of the command `regatta guardian`, after the versions: says that a guardian has started the command.
pub const STARTED: &str = "started";

/// The format in which a library and the command `regatta guardian` tell each other their versions. It never changes.
impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.rendezvous, self.job)
    }
}

impl FromStr for Versions {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (rendezvous, job) = text.split_once('.').ok_or(())?;
        let number = |text: &str| text.parse().map_err(|_| ());
        Ok(Self {
            rendezvous: number(rendezvous)?,
            job: number(job)?,
        })
    }
}

/// From a task to the guardian of its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The versions of the task.
    pub versions: Versions,
    /// The task's rank; unused if the versions differ.
    pub rank: u32,
}

/// From the guardian to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The job exists. The message carries the descriptor of the job's segment and, if the job is on several nodes,
    /// that of the task's listening socket.
    Welcome,
    /// The task cannot join.
    Refused {
        /// Whether the reason is that the versions differ.
        versions: bool,
        /// The reason.
        sentence: String,
    },
}

/// What each node sends to all others. It is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The versions of the node.
    pub versions: Versions,
    /// The node's part of the job's key.
    pub share: Secret,
    /// Whether the node trusts the network. A node that does not trust it refuses jobs of nodes that do.
    pub trusted: bool,
    /// Address at which the other nodes reach its guardian.
    pub guardian: SocketAddr,
    /// Its ranks, and the addresses at which they listen.
    pub ranks: Vec<(u32, SocketAddr)>,
}

/// From a node to the first node, if the first node distributes the letters of all; sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The step's id.
    pub step: String,
    /// The caller's number among the step's nodes.
    pub node: u32,
    /// The answer must contain it.
    pub nonce: Secret,
    /// The node's encoded [`Letter`].
    pub letter: Vec<u8>,
}

/// The first node's answer, sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The letters of all nodes.
    Letters {
        /// The nonce of the call.
        nonce: Secret,
        /// One letter for each node, in the order of the nodes.
        letters: Vec<Vec<u8>>,
    },
    /// Not all nodes have called.
    Refused {
        /// The nonce of the call.
        nonce: Secret,
        /// Which nodes are missing.
        sentence: String,
    },
}

/// From one guardian to another, followed by its proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The sender is the guardian of this node.
    Node(u32),
    /// The sender is alive.
    Beat,
    /// This task has left.
    Left(u32),
    /// This task has ended without leaving.
    Dead(u32),
}

impl Field for Versions {
    fn put(&self, to: &mut Vec<u8>) {
        (MAGIC, self.rendezvous, self.job).put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let (magic, rendezvous, job) = <([u8; 8], _, _)>::take(from)?;
        let versions = Self { rendezvous, job };
        (magic == MAGIC).then_some(versions).ok_or(Malformed)
    }
}

fields!(Hello { versions, rank });
choices!(Answer {
    0 Welcome,
    1 Refused { versions, sentence }
});
fields!(Letter {
    versions,
    share,
    trusted,
    guardian,
    ranks
});
fields!(Call {
    step,
    node,
    nonce,
    letter
});
choices!(Reply {
    0 Letters { nonce, letters },
    1 Refused { nonce, sentence }
});

/// Whether all of these addresses have a port other than 0.
fn have_ports<'a>(mut addresses: impl Iterator<Item = &'a SocketAddr>) -> bool {
    addresses.all(|address| address.port() != 0)
}

/// Returns the versions that begin a first message, whatever follows them.
pub fn versions(bytes: &[u8]) -> Option<Versions> {
    Versions::take(&mut Bytes(bytes)).ok()
}

impl Hello {
    /// Returns the encoded message.
    pub fn encode(&self) -> Vec<u8> {
        bytes_of(self)
    }
    /// Decodes the message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        whole(bytes).ok()
    }
}

impl Answer {
    /// Returns the encoded message.
    pub fn encode(&self) -> Vec<u8> {
        bytes_of(self)
    }
    /// Decodes the message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        whole(bytes).ok()
    }
}

impl Letter {
    /// Returns the encoded message.
    pub fn encode(&self) -> Vec<u8> {
        bytes_of(self)
    }
    /// Decodes the message. Returns `None` also if an address has port 0.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let letter: Self = whole(bytes).ok()?;
        let ranks = letter.ranks.iter().map(|(_, address)| address);
        have_ports(ranks.chain([&letter.guardian])).then_some(letter)
    }
}

impl Call {
    /// Returns the encoded message.
    pub fn encode(&self) -> Vec<u8> {
        bytes_of(self)
    }
    /// Decodes the message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        whole(bytes).ok()
    }
}

impl Reply {
    /// Returns the encoded message.
    pub fn encode(&self) -> Vec<u8> {
        bytes_of(self)
    }
    /// Decodes the message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        whole(bytes).ok()
    }
}

impl Record {
    /// Returns the encoded record.
    pub fn encode(&self) -> [u8; RECORD] {
        let (kind, value) = match *self {
            Record::Node(node) => (0, node),
            Record::Beat => (1, 0),
            Record::Left(rank) => (2, rank),
            Record::Dead(rank) => (3, rank),
        };
        let [a, b, c, d] = u32::to_le_bytes(value);
        [kind, a, b, c, d]
    }
    /// Decodes a record.
    pub fn decode(bytes: &[u8; RECORD]) -> Option<Self> {
        match whole::<([u8; 1], u32)>(bytes).ok()? {
            ([0], node) => Some(Record::Node(node)),
            ([1], 0) => Some(Record::Beat),
            ([2], rank) => Some(Record::Left(rank)),
            ([3], rank) => Some(Record::Dead(rank)),
            ([_], _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VERSIONS: Versions = Versions {
        rendezvous: 1,
        job: 2,
    };

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn letter() -> Letter {
        Letter {
            versions: VERSIONS,
            share: [7; 32],
            trusted: true,
            guardian: at(9),
            ranks: vec![
                (2, at(10)),
                (3, "[fd00::1]:11".parse().expect("an address")),
            ],
        }
    }

    fn call() -> Call {
        Call {
            step: "7.0".to_owned(),
            node: 1,
            nonce: [9; 32],
            letter: letter().encode(),
        }
    }

    fn letters() -> Reply {
        Reply::Letters {
            nonce: [9; 32],
            letters: vec![letter().encode(), Vec::new()],
        }
    }

    fn refused() -> Reply {
        Reply::Refused {
            nonce: [7; 32],
            sentence: "no".to_owned(),
        }
    }

    /// Returns a message of each kind that another host may send.
    fn wholes() -> [Vec<u8>; 4] {
        let (letter, call) = (letter().encode(), call().encode());
        [letter, call, letters().encode(), refused().encode()]
    }

    #[test]
    fn what_is_said_is_heard() {
        let hello = Hello {
            versions: VERSIONS,
            rank: 3,
        };
        assert_eq!(Hello::decode(&hello.encode()), Some(hello.clone()));
        assert_eq!(versions(&hello.encode()), Some(VERSIONS));
        assert_eq!(Letter::decode(&letter().encode()), Some(letter()));
        assert_eq!(Call::decode(&call().encode()), Some(call()));
        for reply in [letters(), refused()] {
            assert_eq!(Reply::decode(&reply.encode()), Some(reply));
        }
        let no = Answer::Refused {
            versions: false,
            sentence: "no".to_owned(),
        };
        for answer in [Answer::Welcome, no] {
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
        for record in [
            Record::Node(1),
            Record::Beat,
            Record::Left(2),
            Record::Dead(3),
        ] {
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }

    /// Programs of the same version must agree about every byte: a change of the format requires a new version.
    #[test]
    fn messages_of_this_version_have_these_bytes() {
        let versions = b"rgslurm\x01\x01\0\0\0\x02\0\0\0";
        let address = |port: u8| [&[0; 10][..], &[0xff, 0xff, 10, 0, 0, 1, port, 0]].concat();
        let mut letter = letter();
        letter.ranks.pop();
        let bytes = [
            &versions[..],
            &[7; 32],
            &[1],
            &address(9),
            &[1, 0, 0, 0, 2, 0, 0, 0],
            &address(10),
        ];
        assert_eq!(letter.encode(), bytes.concat());
        let call = Call {
            letter: vec![5],
            ..call()
        };
        let bytes = [
            &b"\x03\0\0\x007.0"[..],
            &[1, 0, 0, 0],
            &[9; 32],
            &[1, 0, 0, 0, 5],
        ];
        assert_eq!(call.encode(), bytes.concat());
        let bytes = [&[1][..], &[7; 32], b"\x02\0\0\0no"];
        assert_eq!(refused().encode(), bytes.concat());
        assert_eq!(Answer::Welcome.encode(), [0]);
        assert_eq!(Record::Left(3).encode(), [2, 3, 0, 0, 0]);
    }

    #[test]
    fn versions_are_read_as_they_are_written_and_nothing_else_is() {
        assert_eq!(VERSIONS.to_string().parse(), Ok(VERSIONS));
        for text in [
            "",
            "1",
            "1.",
            ".1",
            "1.2.3",
            "1.-2",
            "one.two",
            "1.4294967296",
        ] {
            assert_eq!(text.parse::<Versions>(), Err(()), "{text}");
        }
    }

    #[test]
    fn a_part_is_no_message() {
        let decode = |bytes: &[u8]| {
            let call = Call::decode(bytes).is_some();
            Letter::decode(bytes).is_some() || call || Reply::decode(bytes).is_some()
        };
        for whole in wholes() {
            for end in 0..whole.len() {
                assert!(!decode(&whole[..end]));
            }
            assert!(!decode(&[&whole[..], &[0]].concat()));
        }
    }

    #[test]
    fn an_address_without_a_port_is_no_address() {
        let mut letter = letter();
        letter.guardian.set_port(0);
        assert_eq!(Letter::decode(&letter.encode()), None);
        letter.guardian.set_port(9);
        letter.ranks[1].1.set_port(0);
        assert_eq!(Letter::decode(&letter.encode()), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            at in 0_usize..200,
            change in any::<u8>(),
        ) {
            Hello::decode(&bytes);
            Answer::decode(&bytes);
            Letter::decode(&bytes);
            Call::decode(&bytes);
            Reply::decode(&bytes);
            for mut changed in wholes() {
                let at = at % changed.len();
                changed[at] = change;
                Letter::decode(&changed);
                Call::decode(&changed);
                Reply::decode(&changed);
            }
        }
    }
}
