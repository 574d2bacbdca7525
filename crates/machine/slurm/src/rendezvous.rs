//! The messages of a step's tasks before they are a job, as bytes.
//!
//! Decoding takes any bytes: what is not a message is `None`, and no length is believed before it was checked.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Version of these messages.
pub const VERSION: u32 = 1;
/// No message is longer.
pub const LONGEST: usize = 8 << 20;
/// So many bytes has a [`Record`].
pub const RECORD: usize = 5;

const MAGIC: [u8; 8] = *b"rgslurm\x01";

/// A secret, or a number that is used once.
pub type Secret = [u8; 32];

/// The versions that two programs must have in common. They begin each first message; their form never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// Of these messages.
    pub rendezvous: u32,
    /// Of the job's memory.
    pub job: u32,
}

/// A task to the guardian of its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The versions of the task.
    pub versions: Versions,
    /// Its rank; nothing when it speaks another version.
    pub rank: u32,
}

/// The guardian to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The job is there. With it comes the descriptor of its segment, and that of the task's listening socket if the job
    /// is on several nodes.
    Welcome,
    /// It cannot be; why. `versions`: because they differ.
    Refused {
        /// Versions differ.
        versions: bool,
        /// Why it cannot be.
        sentence: String,
    },
}

/// A node to the first node, sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The versions of the node.
    pub versions: Versions,
    /// The step, and which of its nodes this is.
    pub step: String,
    /// See `step`.
    pub node: u32,
    /// The answer must name it.
    pub nonce: Secret,
    /// Where the other nodes find its guardian.
    pub guardian: SocketAddr,
    /// Its ranks, and where they listen.
    pub ranks: Vec<(u32, SocketAddr)>,
}

/// The first node's answer, sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The job, as all nodes know it.
    Table(Table),
    /// It cannot be.
    Refused {
        /// That of the letter.
        nonce: Secret,
        /// Versions differ.
        versions: bool,
        /// Why it cannot be.
        sentence: String,
    },
}

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// That of the letter.
    pub nonce: Secret,
    /// The key of the job.
    pub key: Secret,
    /// The network is trusted.
    pub trusted: bool,
    /// The guardian of each node.
    pub guardians: Vec<SocketAddr>,
    /// The node and the address of each rank.
    pub places: Vec<(u32, SocketAddr)>,
}

/// One guardian to another, followed by its proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// I am the guardian of this node.
    Node(u32),
    /// I am there.
    Beat,
    /// This task has left.
    Left(u32),
    /// This task has ended without leaving.
    Dead(u32),
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
    fn word(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
    fn text(&mut self) -> Option<String> {
        let length = self.word()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }
    fn address(&mut self) -> Option<SocketAddr> {
        let address = Ipv6Addr::from(self.array::<16>()?).to_canonical();
        let port = u16::from_le_bytes(self.array()?);
        (port != 0).then_some(SocketAddr::new(address, port))
    }
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.word()? as usize;
        // Every item takes bytes: a count that lies ends with them, and reserves nothing.
        (0..count).map(|_| item(self)).collect()
    }
    fn versions(&mut self) -> Option<Versions> {
        (self.array()? == MAGIC).then_some(())?;
        Some(Versions {
            rendezvous: self.word()?,
            job: self.word()?,
        })
    }
    fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn begin(versions: Versions) -> Self {
        Self(MAGIC.to_vec())
            .word(versions.rendezvous)
            .word(versions.job)
    }
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
    fn word(self, word: u32) -> Self {
        self.bytes(&word.to_le_bytes())
    }
    fn text(self, text: &str) -> Self {
        self.word(text.len() as u32).bytes(text.as_bytes())
    }
    fn address(self, address: SocketAddr) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        self.bytes(&ip.octets())
            .bytes(&address.port().to_le_bytes())
    }
    fn list<T: Copy>(self, items: &[T], write: impl Fn(Self, T) -> Self) -> Self {
        let counted = self.word(items.len() as u32);
        items
            .iter()
            .fold(counted, |writer, &item| write(writer, item))
    }
}

/// The versions that a first message states, whatever follows them.
pub fn versions(bytes: &[u8]) -> Option<Versions> {
    Reader(bytes).versions()
}

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        Writer::begin(self.versions).word(self.rank).0
    }
    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let hello = Self {
            versions: reader.versions()?,
            rank: reader.word()?,
        };
        reader.end()?;
        Some(hello)
    }
}

impl Answer {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Answer::Welcome => vec![0],
            Answer::Refused { versions, sentence } => {
                Writer(vec![1, u8::from(*versions)]).text(sentence).0
            }
        }
    }
    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let answer = match reader.flag()? {
            false => Answer::Welcome,
            true => Answer::Refused {
                versions: reader.flag()?,
                sentence: reader.text()?,
            },
        };
        reader.end()?;
        Some(answer)
    }
}

impl Letter {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        Writer::begin(self.versions)
            .text(&self.step)
            .word(self.node)
            .bytes(&self.nonce)
            .address(self.guardian)
            .list(&self.ranks, |writer, (rank, address)| {
                writer.word(rank).address(address)
            })
            .0
    }
    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let letter = Self {
            versions: reader.versions()?,
            step: reader.text()?,
            node: reader.word()?,
            nonce: reader.array()?,
            guardian: reader.address()?,
            ranks: reader.list(|reader| Some((reader.word()?, reader.address()?)))?,
        };
        reader.end()?;
        Some(letter)
    }
}

impl Reply {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Reply::Table(table) => {
                Writer(vec![0])
                    .bytes(&table.nonce)
                    .bytes(&table.key)
                    .bytes(&[u8::from(table.trusted)])
                    .list(&table.guardians, Writer::address)
                    .list(&table.places, |writer, (node, address)| {
                        writer.word(node).address(address)
                    })
                    .0
            }
            Reply::Refused {
                nonce,
                versions,
                sentence,
            } => {
                Writer(vec![1])
                    .bytes(nonce)
                    .bytes(&[u8::from(*versions)])
                    .text(sentence)
                    .0
            }
        }
    }
    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let reply = match reader.flag()? {
            false => Reply::Table(Table {
                nonce: reader.array()?,
                key: reader.array()?,
                trusted: reader.flag()?,
                guardians: reader.list(Reader::address)?,
                places: reader.list(|reader| Some((reader.word()?, reader.address()?)))?,
            }),
            true => Reply::Refused {
                nonce: reader.array()?,
                versions: reader.flag()?,
                sentence: reader.text()?,
            },
        };
        reader.end()?;
        Some(reply)
    }
}

impl Record {
    /// As bytes.
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
    /// From bytes.
    pub fn decode(bytes: &[u8; RECORD]) -> Option<Self> {
        let [kind, a, b, c, d] = *bytes;
        let value = u32::from_le_bytes([a, b, c, d]);
        match kind {
            0 => Some(Record::Node(value)),
            1 => (value == 0).then_some(Record::Beat),
            2 => Some(Record::Left(value)),
            3 => Some(Record::Dead(value)),
            _ => None,
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
            step: "7.0".to_owned(),
            node: 1,
            nonce: [7; 32],
            guardian: at(9),
            ranks: vec![
                (2, at(10)),
                (3, "[fd00::1]:11".parse().expect("an address")),
            ],
        }
    }

    fn table() -> Reply {
        Reply::Table(Table {
            nonce: [7; 32],
            key: [9; 32],
            trusted: true,
            guardians: vec![at(1), at(2)],
            places: vec![(0, at(3)), (1, at(4))],
        })
    }

    fn refused() -> Reply {
        Reply::Refused {
            nonce: [7; 32],
            versions: true,
            sentence: "no".to_owned(),
        }
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
        for reply in [table(), refused()] {
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

    #[test]
    fn a_part_is_no_message() {
        for whole in [letter().encode(), table().encode(), refused().encode()] {
            for end in 0..whole.len() {
                let part = &whole[..end];
                assert_eq!((Letter::decode(part), Reply::decode(part)), (None, None));
            }
            let longer = [&whole[..], &[0]].concat();
            assert_eq!(
                (Letter::decode(&longer), Reply::decode(&longer)),
                (None, None)
            );
        }
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
            Reply::decode(&bytes);
            for whole in [letter().encode(), table().encode(), refused().encode()] {
                let mut changed = whole;
                let at = at % changed.len();
                changed[at] = change;
                Letter::decode(&changed);
                Reply::decode(&changed);
            }
        }
    }
}
