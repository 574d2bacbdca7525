//! The meeting of the guardians of a step's nodes, in which they exchange the addresses of everything.
//!
//! Each guardian sends all others a letter with its address, those of its tasks, and its part of the job's key. Each
//! computes the same table from all letters. Then they connect to each other.
//!
//! *Encryption.* Each node's letter says whether it trusts the network, and a job is unencrypted only if all nodes do.
//! A node has the setting of the task that has started its guardian (`REGATTA_TRUSTED_NETWORK`).

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use regatta_foreign::Step;
use regatta_memory::undumped::erase;
use regatta_segment::place::{Key, Places, listen_at};
use regatta_wire::guardian::{self, Letter};
use ring::digest;

use crate::callers::Callers;
use crate::exchange::{self, LETTER_TIMEOUT, bounds, connect, no_socket, secret};
use crate::mesh::{BEAT_INTERVAL, Mesh, Other};
use crate::{OURS, Refusal, node};

/// Backlog of a guardian's socket: as many nodes as may know its address before it accepts.
const MAX_PENDING_CONNECTIONS: i32 = 4096;

/// What a guardian knows after the meeting.
pub(crate) struct Met {
    pub places: Places,
    /// The address at which each rank listens.
    pub addresses: Vec<SocketAddr>,
    /// The listening sockets of this node's ranks, ascending.
    pub listeners: Vec<TcpListener>,
    pub mesh: Mesh,
}

/// The sockets of this node, whose addresses are in its letter.
struct Sockets {
    /// The sockets of its ranks, ascending.
    ranks: Vec<TcpListener>,
    guardian: TcpListener,
}

impl Sockets {
    /// Opens the sockets at this address. Returns also the letter.
    fn open(step: &Step, address: IpAddr, trusted: bool) -> std::io::Result<(Self, Letter)> {
        let ranks: Vec<TcpListener> = step
            .here
            .iter()
            .map(|_| listen_at(address))
            .collect::<Result<_, _>>()?;
        let guardian = TcpListener::bind((address, 0))?;
        rustix::net::listen(&guardian, MAX_PENDING_CONNECTIONS)?;
        let addresses = ranks.iter().map(TcpListener::local_addr);
        let letter = Letter {
            versions: OURS,
            share: [0; 32],
            trusted,
            guardian: guardian.local_addr()?,
            ranks: addresses
                .zip(&step.here)
                .map(|(address, &rank)| Ok((rank, address?)))
                .collect::<std::io::Result<_>>()?,
        };
        Ok((Self { ranks, guardian }, letter))
    }
}

/// Meets the guardians of the other nodes.
pub(crate) fn together(step: &Step, until: Instant) -> Result<Met, Refusal> {
    let trusted = std::env::var_os("REGATTA_TRUSTED_NETWORK").is_some_and(|value| value == "1");
    let mut mine = None;
    let mut letters = exchange::of(step)?.exchange(step, until, &mut |address| {
        let opened = Sockets::open(step, address, trusted);
        let (sockets, mut letter) = opened.map_err(|error| no_socket(&error))?;
        letter.share = secret()?;
        let bytes = letter.encode();
        erase(&mut letter.share);
        mine = Some((sockets, bytes.clone()));
        Ok(bytes)
    })?;
    let own = letters.get(step.node as usize);
    let mine = mine.filter(|(_, bytes)| Some(bytes) == own);
    let (sockets, mut bytes) = mine.ok_or_else(|| senseless(step))?;
    let table = decide(step, &letters);
    letters.iter_mut().for_each(|letter| erase(letter));
    erase(&mut bytes);
    join_mesh(step, table?, sockets, until)
}

/// Returns the error for an exchange whose result does not belong to this step.
fn senseless(step: &Step) -> Refusal {
    Refusal::new(format!(
        "the nodes of step {} reported data that does not match this step",
        step.id
    ))
}

/// The addresses of everything.
struct Table {
    key: Key,
    /// Whether all nodes trust the network.
    trusted: bool,
    /// The guardian of each node.
    guardians: Vec<SocketAddr>,
    /// The node of each rank.
    host_of: Vec<u32>,
    /// The address at which each rank listens.
    addresses: Vec<SocketAddr>,
}

/// Computes the table from all letters; the result is the same on each node.
fn decide(step: &Step, letters: &[Vec<u8>]) -> Result<Table, Refusal> {
    if letters.len() != step.nodes.len() {
        return Err(senseless(step));
    }
    let mut letters: Vec<Letter> = letters
        .iter()
        .map(|bytes| match guardian::versions(bytes) {
            Some(versions) if versions != OURS => Err(node::other_version(versions)),
            _ => Letter::decode(bytes).ok_or_else(|| senseless(step)),
        })
        .collect::<Result<_, _>>()?;
    let mut places: Vec<Option<(u32, SocketAddr)>> = vec![None; step.size as usize];
    for (node, letter) in (0..).zip(&letters) {
        for &(rank, address) in &letter.ranks {
            match places.get_mut(rank as usize) {
                Some(place @ None) => *place = Some((node, address)),
                _ => {
                    return Err(Refusal::new(format!(
                        "two nodes of step {} both report rank {rank} as theirs",
                        step.id
                    )));
                }
            }
        }
    }
    let places: Option<Vec<(u32, SocketAddr)>> = places.into_iter().collect();
    let places = places.ok_or_else(|| {
        Refusal::new(format!(
            "the nodes of step {} have fewer tasks in total than the {} that {} reports",
            step.id, step.size, step.names.launcher
        ))
    })?;
    let (host_of, addresses) = places.into_iter().unzip();
    Ok(Table {
        key: key(letters.iter_mut().map(|letter| &mut letter.share)),
        trusted: letters.iter().all(|letter| letter.trusted),
        guardians: letters.iter().map(|letter| letter.guardian).collect(),
        host_of,
        addresses,
    })
}

/// Returns the key of the job, of which each node has drawn a part. Erases the parts.
fn key<'a>(shares: impl Iterator<Item = &'a mut guardian::Secret>) -> Key {
    let mut whole = digest::Context::new(&digest::SHA256);
    whole.update(b"regatta step");
    for share in shares {
        whole.update(share);
        erase(share);
    }
    let mut key = guardian::Secret::default();
    key.copy_from_slice(whole.finish().as_ref());
    Key::taken(&mut key)
}

/// Returns the error for two guardians that cannot reach each other.
fn unreached(step: &Step, node: u32) -> Refusal {
    Refusal::new(format!(
        "the guardians of the nodes {} and {} cannot reach each other; a firewall between them may close the ports from 32768 to 60999",
        step.node_name(),
        step.nodes[node as usize]
    ))
}

/// The guardians that are to call this one.
struct Expected {
    nodes: Vec<u32>,
    calls: Callers<Other>,
}

impl Expected {
    fn take_in(&mut self, other: Other, mesh: &mut Mesh) {
        if let Some(at) = self.nodes.iter().position(|&node| node == other.node()) {
            self.nodes.swap_remove(at);
            mesh.add(other);
        }
    }

    /// Accepts guardians that have called, and sends a beat to all, including those that have just called. Such a
    /// guardian may have met all others, and would consider this one lost while it waits for a slow node.
    fn beat(&mut self, mesh: &mut Mesh) {
        while let Ok(other) = self.calls.heard.try_recv() {
            self.take_in(other, mesh);
        }
        mesh.beat();
    }
}

/// Connects to all other guardians: calls those of lower nodes, and is called by those of higher ones.
fn join_mesh(step: &Step, table: Table, sockets: Sockets, until: Instant) -> Result<Met, Refusal> {
    let (me, key) = (step.node, table.key);
    let mut mesh = Mesh::default();
    let calls = Other::listen(key.clone(), me, sockets.guardian, bounds(step));
    let calls = calls.map_err(|error| no_socket(&error))?;
    // A guardian that is called may be slow, and has at least as much time as all tasks have to call.
    let until = until.max(Instant::now() + LETTER_TIMEOUT);
    let mut expected = Expected {
        nodes: (me + 1..step.nodes.len() as u32).collect(),
        calls,
    };
    for (node, &guardian) in (0..me).zip(&table.guardians) {
        expected.beat(&mut mesh);
        let other = connect(&guardian)?.and_then(|stream| {
            let beat = || expected.beat(&mut mesh);
            Other::call(&key, (me, node), stream, until, beat)
        });
        mesh.add(other.ok_or_else(|| unreached(step, node))?);
    }
    let until = until.max(Instant::now() + LETTER_TIMEOUT);
    while let Some(&next) = expected.nodes.first() {
        match expected.calls.heard.recv_timeout(BEAT_INTERVAL) {
            Ok(other) => expected.take_in(other, &mut mesh),
            Err(RecvTimeoutError::Timeout) if Instant::now() < until => expected.beat(&mut mesh),
            Err(_) => return Err(unreached(step, next)),
        }
    }
    Ok(Met {
        places: Places {
            here: me,
            most: step.size,
            host_of: table.host_of,
            key,
            trusted: table.trusted,
        },
        addresses: table.addresses,
        listeners: sockets.ranks,
        mesh,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpStream};
    use std::time::Duration;

    use regatta_foreign::slurm::NAMES;
    use regatta_wire::guardian::{Record, Secret, Versions};

    use super::*;

    pub(crate) fn step(id: &str) -> Step {
        Step {
            names: NAMES,
            id: id.to_owned(),
            rank: 0,
            size: 2,
            node: 0,
            nodes: vec!["n1".to_owned(), "n2".to_owned()],
            here: vec![0],
        }
    }

    fn at(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// Returns the letter of a node with this rank.
    fn letter(rank: u32, trusted: bool) -> Letter {
        Letter {
            versions: OURS,
            share: [rank as u8; 32],
            trusted,
            guardian: at(7),
            ranks: vec![(rank, at(9))],
        }
    }

    fn decided(letters: &[Letter]) -> Result<Table, Refusal> {
        let letters: Vec<Vec<u8>> = letters.iter().map(Letter::encode).collect();
        decide(&step("7.0"), &letters)
    }

    #[test]
    fn what_is_said_is_encrypted_unless_all_nodes_trust_the_network() {
        for first in [false, true] {
            for other in [false, true] {
                let table = decided(&[letter(0, first), letter(1, other)]).expect("a table");
                assert_eq!(table.trusted, first && other, "{first} {other}");
            }
        }
    }

    #[test]
    fn every_node_has_its_part_in_the_key() {
        let key = |first: u8, second: u8| {
            let (mut one, mut two) = (letter(0, false), letter(1, false));
            (one.share, two.share) = ([first; 32], [second; 32]);
            *decided(&[one, two]).expect("a table").key
        };
        let keys = [key(1, 2), key(2, 1), key(1, 3), key(3, 2)];
        for (at, one) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(one), "{at}");
        }
        assert_eq!(key(1, 2), keys[0]);
    }

    #[test]
    fn letters_that_do_not_fit_the_step_make_no_job() {
        let refused = |letters: &[Letter]| decided(letters).err().expect("a refusal");
        let twice = refused(&[letter(0, true), letter(0, true)]);
        assert!(
            twice.sentence.contains("both report rank 0 as theirs"),
            "{twice:?}"
        );
        let few = refused(&[
            letter(0, true),
            Letter {
                ranks: Vec::new(),
                ..letter(1, true)
            },
        ]);
        assert!(few.sentence.contains("the 2 that Slurm reports"), "{few:?}");
        let alone = refused(&[letter(0, true)]);
        assert!(alone.sentence.contains("does not match"), "{alone:?}");
        let other = refused(&[
            letter(0, true),
            Letter {
                versions: Versions { job: 99, ..OURS },
                ..letter(1, true)
            },
        ]);
        assert!(other.versions, "{other:?}");
    }

    /// Of four nodes the second one is slow, and the fourth has met all others except the third, which waits for the
    /// second.
    #[test]
    fn a_guardian_that_waits_for_one_goes_on_to_say_to_those_that_have_called_that_it_is_there() {
        const KEY: Secret = [9; 32];
        const TEST_TIMEOUT: Duration = Duration::from_secs(60);
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let at = |listener: &TcpListener| listener.local_addr().expect("an address");
        let (slow, guardian, first) = (listen(), listen(), listen());
        let address = at(&guardian);
        let table = Table {
            key: Key::taken(&mut { KEY }),
            trusted: false,
            guardians: vec![at(&first), at(&slow), address, address],
            host_of: (0..4).collect(),
            addresses: vec![address; 4],
        };
        let step = Step {
            size: 4,
            node: 2,
            nodes: (1..5).map(|node| format!("n{node}")).collect(),
            ..step("7.0")
        };
        let until = Instant::now() + TEST_TIMEOUT;
        let joining = std::thread::spawn(move || {
            let sockets = Sockets {
                ranks: Vec::new(),
                guardian,
            };
            join_mesh(&step, table, sockets, until).map(|met| met.mesh)
        });
        let (mut prompt, _) = first.accept().expect("a call");
        prompt.write_all(&[8; 32]).expect("room");
        let (mut called, _) = slow.accept().expect("a call");
        let stream = TcpStream::connect(address).expect("a listener");
        let fourth = Other::call(&KEY, (3, 2), stream, until, || {}).expect("a nonce");
        let mut mesh = Mesh::default();
        mesh.add(fourth);
        let heard = mesh.fds().all(|fd| {
            let soon = Instant::now() + Duration::from_secs(10);
            regatta_connection::local_socket::readable(fd, soon)
        });
        assert!(heard, "it would be taken for lost");
        let news = mesh.receive();
        assert!(matches!(
            news[..],
            [crate::mesh::News::Told(2, Record::Beat)]
        ));
        called.write_all(&[8; 32]).expect("room");
        let met = joining.join().expect("it goes on").expect("all are here");
        assert_eq!(met.fds().count(), 3);
    }
}
