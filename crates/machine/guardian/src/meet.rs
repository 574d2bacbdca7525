//! The guardians of a step's nodes come together on the first node, and learn where everything is.
//!
//! *Encryption.* Each node says in its letter whether it trusts the network, and the first node does not encrypt only if all do,
//! itself too. A node that does not trust the network takes no other answer: it refuses a job that is not encrypted, whatever the first
//! node says. A node's wish is that of the task which has started its guardian (`REGATTA_TRUSTED_NETWORK`).

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use regatta_connection::dial;
use regatta_memory::undumped::erase;
use regatta_segment::place::{Key, Places, listen_at};
use regatta_slurm::rendezvous::{Letter, Reply, Secret, Table};
use regatta_slurm::{Step, credential, node_address};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::callers::{self, Bounds, Callers, Claim};
use crate::mesh::{BEAT, Mesh, Other};
use crate::{OURS, Refusal, node};

/// The ports on which the first node may be found: below those that systems give out, above those that services have.
const PORTS: std::ops::Range<u32> = 20_000..32_000;
/// Number of ports in [`PORTS`] that are tried.
const PORTS_TRIED: u32 = 4;
/// Time limit for connecting to a node, and for reading or writing one letter.
const LETTER_TIMEOUT: Duration = Duration::from_secs(5);
/// First and maximum pause between two calls at a node that does not listen yet; it doubles in between.
const RETRY_PAUSE: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(200)];
/// Maximum number of unexpected callers held at a time, beside the nodes that are expected.
const MAX_STRANGERS: usize = 64;
/// Maximum size of a node's letter, in bytes.
const MAX_LETTER_BYTES: usize = 1 << 20;
/// Maximum size of the answer to a letter, in bytes.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// How every letter begins: a credential of munge.
const SEAL: &[u8] = b"MUNGE:";

/// A guardian's knowledge when all have met.
pub(crate) struct Met {
    pub places: Places,
    /// Where each rank listens.
    pub addresses: Vec<SocketAddr>,
    /// The listening sockets of this node's ranks, ascending.
    pub listeners: Vec<TcpListener>,
    pub mesh: Mesh,
}

/// Meets the guardians of the other nodes.
pub(crate) fn together(step: &Step, until: Instant) -> Result<Met, Refusal> {
    let user = rustix::process::geteuid().as_raw();
    let trusted = std::env::var_os("REGATTA_TRUSTED_NETWORK").is_some_and(|value| value == "1");
    match step.node {
        0 => lead(step, user, trusted, until),
        _ => follow(step, user, trusted, until),
    }
}

fn no_munge(step: &Step, why: &str) -> Refusal {
    Refusal::new(format!(
        "step {} runs on {} nodes, which would find each other through munge, and that fails on {}: {why}. Start the program \
         with `regatta run PROGRAM` inside salloc or sbatch, which needs no munge",
        step.id,
        step.nodes.len(),
        step.nodes[step.node as usize]
    ))
}

fn no_socket(error: &std::io::Error) -> Refusal {
    Refusal::new(format!(
        "no socket can be opened for the other nodes: {error}"
    ))
}

/// A connection to an address; none: it does not answer.
fn connect(address: &SocketAddr) -> Result<Option<TcpStream>, Refusal> {
    match TcpStream::connect_timeout(address, LETTER_TIMEOUT) {
        Err(error) if is_shortage(&error) => Err(no_socket(&error)),
        called => Ok(called.ok()),
    }
}

/// Whether this host has no descriptor or no memory for a call, so that nobody else is to blame. An address that is not to be had
/// (EADDRNOTAVAIL) may be one of another kind of network, of several that are tried.
fn is_shortage(error: &std::io::Error) -> bool {
    error.kind() != std::io::ErrorKind::AddrNotAvailable && dial::shortage(error).is_some()
}

fn secret() -> Result<Secret, Refusal> {
    let mut secret = Secret::default();
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| Refusal::new("the system gives no random numbers for the job's key"))?;
    Ok(secret)
}

/// How many may call at the socket of a guardian, and for how long, before they have proved who they are.
fn bounds(step: &Step) -> Bounds {
    Bounds {
        places: step.nodes.len() + MAX_STRANGERS,
        limit: LETTER_TIMEOUT,
    }
}

/// The ports at which a step may be found; the same on all its nodes.
fn ports(step: &Step, user: u32) -> impl Iterator<Item = u16> {
    let name = format!("{user}/{}", step.id);
    // FNV-1a: well spread, and the same in every version.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let count = PORTS.end - PORTS.start;
    (0..PORTS_TRIED).map(move |n| (PORTS.start + (hash.wrapping_add(n * 2_999)) % count) as u16)
}

/// Writes a letter as it travels, its length and its text, if the other end takes all of it in time.
fn write_letter(mut stream: &TcpStream, text: &str, until: Instant) -> std::io::Result<()> {
    let whole = [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    let mut sent = 0;
    while sent < whole.len() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(&whole[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How long there is until then; an error when it is over.
fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

/// Reads an answer that is complete in time, however its bytes are spread.
fn read_letter(mut stream: &TcpStream, until: Instant) -> Option<String> {
    let mut whole = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let more = rest_of_letter(&whole, MAX_ANSWER_BYTES)?;
        if more == 0 {
            return String::from_utf8(whole.split_off(4)).ok();
        }
        stream.set_read_timeout(Some(left(until).ok()?)).ok()?;
        let more = more.min(piece.len());
        // No memory is reserved for a promise before its bytes come.
        match stream.read(&mut piece[..more]) {
            Ok(0) => return None,
            Ok(count) => whole.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// How many bytes a letter that begins so still lacks; none if it is too long.
fn rest_of_letter(whole: &[u8], longest: usize) -> Option<usize> {
    let Some((length, text)) = whole.split_first_chunk::<4>() else {
        return Some(4 - whole.len());
    };
    let length = u32::from_le_bytes(*length) as usize;
    (length <= longest).then(|| length.saturating_sub(text.len()))
}

/// Judges likewise a node's letter, which is a credential.
fn rest_of_call(whole: &[u8]) -> Option<usize> {
    let text = whole.get(4..).unwrap_or_default();
    let seal = &SEAL[..text.len().min(SEAL.len())];
    text.starts_with(seal).then_some(())?;
    let more = rest_of_letter(whole, MAX_LETTER_BYTES)?;
    // An empty one is not worth asking munge about.
    (more > 0 || text.len() > SEAL.len()).then_some(more)
}

/// Sockets for the ranks of this node, and where they listen.
type Listening = (Vec<TcpListener>, Vec<(u32, SocketAddr)>);

fn listen(step: &Step, address: IpAddr) -> Result<Listening, Refusal> {
    let (mut listeners, mut ranks) = (Vec::new(), Vec::new());
    for &rank in &step.here {
        let listener = listen_at(address).map_err(|error| no_socket(&error))?;
        ranks.push((
            rank,
            listener.local_addr().map_err(|error| no_socket(&error))?,
        ));
        listeners.push(listener);
    }
    Ok((listeners, ranks))
}

fn local_address(stream: &TcpStream) -> Result<IpAddr, Refusal> {
    let address = stream.local_addr().map_err(|error| no_socket(&error))?;
    Ok(address.ip().to_canonical())
}

/// Nodes that have been heard: their letters, and the connections on which they wait for an answer.
type Letters = BTreeMap<u32, (Letter, TcpStream)>;

/// The first node listens at the first of the step's ports that is free.
fn bind_rendezvous(step: &Step, user: u32) -> Result<TcpListener, Refusal> {
    ports(step, user)
        .find_map(|port| {
            let everywhere = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port));
            everywhere
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
                .ok()
        })
        .ok_or_else(|| {
            Refusal::new(format!(
                "all ports at which the nodes of step {} would meet are taken on {}; run it once more",
                step.id, step.nodes[0]
            ))
        })
}

/// The letters of all other nodes are awaited. If that fails, the nodes that have been heard are told why.
fn read_letters(
    step: &Step,
    calls: &Callers<(Letter, TcpStream)>,
    user: u32,
    until: Instant,
) -> Result<Letters, Refusal> {
    let mut letters = Letters::new();
    while letters.len() + 1 < step.nodes.len() {
        let left = until.saturating_duration_since(Instant::now());
        let Ok((letter, stream)) = calls.heard.recv_timeout(left) else {
            let refusal = missing(step, &letters);
            send_refusals(&letters, &refusal, user);
            return Err(refusal);
        };
        let versions = letter.versions;
        let is_other = 0 < letter.node && (letter.node as usize) < step.nodes.len();
        if is_other {
            letters.insert(letter.node, (letter, stream));
        }
        if versions != OURS {
            let refusal = node::other_version(versions);
            send_refusals(&letters, &refusal, user);
            return Err(refusal);
        }
    }
    Ok(letters)
}

/// The first node: hears all others, and tells everybody everything.
fn lead(step: &Step, user: u32, trusted: bool, until: Instant) -> Result<Met, Refusal> {
    // Nobody waits for letters that it could not answer under seal.
    credential::seal(b"", user).map_err(|why| no_munge(step, &why))?;
    let listener = bind_rendezvous(step, user)?;
    let rendezvous = listener.local_addr().map_err(|error| no_socket(&error))?;
    let id = step.id.clone();
    let calls = callers::listen(
        listener,
        bounds(step),
        callers::no_challenge,
        rest_of_call,
        move |claim| receive(claim, &id, user),
    );
    let calls = calls.map_err(|error| no_socket(&error))?;
    let letters = read_letters(step, &calls, user, until)?;
    let met = decide(step, &letters, rendezvous.port(), trusted);
    let (places, addresses, guardians, listeners) = match met {
        Ok(decided) => decided,
        Err(refusal) => {
            send_refusals(&letters, &refusal, user);
            return Err(refusal);
        }
    };
    let mut mesh = Mesh::default();
    let shown: Vec<(u32, SocketAddr)> = places
        .host_of
        .iter()
        .copied()
        .zip(addresses.iter().copied())
        .collect();
    for (node, (letter, stream)) in letters {
        let table = Table {
            nonce: letter.nonce,
            key: *places.key,
            trusted: places.trusted,
            guardians: guardians.clone(),
            places: shown.clone(),
        };
        let mut reply = Reply::Table(table).encode();
        let sealed = credential::seal(&reply, user).map_err(|why| no_munge(step, &why))?;
        erase(&mut reply);
        // A node that is gone by now is found lost by all.
        let _ = write_letter(&stream, &sealed, Instant::now() + LETTER_TIMEOUT);
        mesh.others(Other::new(&places.key, (0, node), &letter.nonce, stream))?;
        mesh.beat();
    }
    Ok(Met {
        places,
        addresses,
        listeners,
        mesh,
    })
}

impl Mesh {
    fn others(&mut self, other: Option<Other>) -> Result<(), Refusal> {
        self.add(other.ok_or_else(|| Refusal::new("a connection to another node cannot be used"))?);
        Ok(())
    }
}

fn missing<T>(step: &Step, come: &BTreeMap<u32, T>) -> Refusal {
    let names: Vec<&str> = (0..)
        .zip(&step.nodes)
        .filter(|(node, _)| *node != 0 && !come.contains_key(node))
        .map(|(_, name)| name.as_str())
        .collect();
    Refusal::new(format!(
        "the tasks of step {} on {} were not heard of on {}, where all meet: have all of them called rg_init, and does a firewall \
         between the nodes let ports from {} to 60999 through? Set REGATTA_JOIN_TIMEOUT to more seconds if they start slowly",
        step.id,
        names.join(", "),
        step.nodes[0],
        PORTS.start
    ))
}

fn send_refusals(letters: &Letters, refusal: &Refusal, user: u32) {
    for (letter, stream) in letters.values() {
        let reply = Reply::Refused {
            nonce: letter.nonce,
            versions: refusal.versions,
            sentence: refusal.sentence.clone(),
        };
        if let Ok(sealed) = credential::seal(&reply.encode(), user) {
            let _ = write_letter(stream, &sealed, Instant::now() + LETTER_TIMEOUT);
        }
    }
}

/// The letter of a caller, if it is one of this step. Nobody else is answered.
fn receive(claim: Claim, step: &str, user: u32) -> Option<(Letter, TcpStream)> {
    let Claim { stream, said, .. } = claim;
    let sealed = std::str::from_utf8(said.get(4..)?).ok()?;
    let bytes = credential::open(sealed, user).ok()?;
    let letter = Letter::decode(&bytes)?;
    (letter.step == step).then_some(())?;
    // This is the place: the answer comes when all are here.
    write_letter(
        &stream,
        &here(&letter.nonce),
        Instant::now() + LETTER_TIMEOUT,
    )
    .ok()?;
    Some((letter, stream))
}

/// The word that this is the place. Only a process of this user opens the letter and knows its nonce, so a stranger at one of the ports,
/// which anybody can compute, keeps nobody from trying the others.
fn here(nonce: &Secret) -> String {
    let said = [b"regatta: this is the place", &nonce[..]].concat();
    let proof = digest(&SHA256, &said);
    proof
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Whether the other end has opened the letter with this nonce.
fn is_the_place(stream: &TcpStream, nonce: &Secret, until: Instant) -> bool {
    read_letter(stream, until) == Some(here(nonce))
}

type Decided = (Places, Vec<SocketAddr>, Vec<SocketAddr>, Vec<TcpListener>);

/// Where everything is, from what all nodes have said.
fn decide(step: &Step, letters: &Letters, port: u16, trusted: bool) -> Result<Decided, Refusal> {
    let nobody = || Refusal::new("no node has been heard");
    let (_, stream) = letters.values().next().ok_or_else(nobody)?;
    let here = local_address(stream)?;
    let (listeners, ranks) = listen(step, here)?;
    let mut places: Vec<Option<(u32, SocketAddr)>> = vec![None; step.size as usize];
    let theirs = letters
        .iter()
        .map(|(&node, (letter, _))| (node, &letter.ranks));
    for (node, ranks) in std::iter::once((0, &ranks)).chain(theirs) {
        for &(rank, address) in ranks {
            match places.get_mut(rank as usize) {
                Some(place @ None) => *place = Some((node, address)),
                _ => {
                    return Err(Refusal::new(format!(
                        "two nodes of step {} say that rank {rank} is theirs",
                        step.id
                    )));
                }
            }
        }
    }
    let places: Vec<(u32, SocketAddr)> =
        places.into_iter().collect::<Option<_>>().ok_or_else(|| {
            Refusal::new(format!(
                "the nodes of step {} have fewer tasks between them than the {} that Slurm says",
                step.id, step.size
            ))
        })?;
    let guardians = std::iter::once(SocketAddr::new(here, port))
        .chain(letters.values().map(|(letter, _)| letter.guardian))
        .collect();
    let (host_of, addresses) = places.into_iter().unzip();
    let places = Places {
        here: 0,
        most: step.size,
        host_of,
        key: Key::taken(&mut secret()?),
        trusted: trusted && letters.values().all(|(letter, _)| letter.trusted),
    };
    Ok((places, addresses, guardians, listeners))
}

/// Any other node: finds the first, and is told everything.
fn follow(step: &Step, user: u32, trusted: bool, until: Instant) -> Result<Met, Refusal> {
    // A task that cannot seal a letter need not look for its receiver.
    credential::seal(b"", user).map_err(|why| no_munge(step, &why))?;
    let first = node_address(&step.nodes[0]).map_err(Refusal::new)?;
    let mut pause = RETRY_PAUSE[0];
    while Instant::now() < until {
        for port in ports(step, user) {
            for &address in &first {
                if let Some(met) = call(step, user, trusted, SocketAddr::new(address, port), until)?
                {
                    return Ok(met);
                }
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(RETRY_PAUSE[1]);
    }
    let first: Vec<String> = first.iter().map(IpAddr::to_string).collect();
    Err(Refusal::new(format!(
        "the tasks of step {} on {} have not reached those on {} (at {}), where all meet: have all of them called rg_init, and \
         does a firewall between the nodes let ports from {} to 60999 through? Set REGATTA_JOIN_TIMEOUT to more seconds if \
         they start slowly",
        step.id,
        step.nodes[step.node as usize],
        step.nodes[0],
        first.join(", "),
        PORTS.start
    )))
}

/// Calls where the first node may be. None: it is not there, or not yet.
fn call(
    step: &Step,
    user: u32,
    trusted: bool,
    address: SocketAddr,
    until: Instant,
) -> Result<Option<Met>, Refusal> {
    let Some(stream) = connect(&address)? else {
        return Ok(None);
    };
    let here = local_address(&stream)?;
    let (listeners, ranks) = listen(step, here)?;
    let listener = TcpListener::bind((here, 0)).map_err(|error| no_socket(&error))?;
    let nonce = secret()?;
    let letter = Letter {
        versions: OURS,
        step: step.id.clone(),
        node: step.node,
        nonce,
        trusted,
        guardian: listener.local_addr().map_err(|error| no_socket(&error))?,
        ranks,
    };
    let sealed = credential::seal(&letter.encode(), user).map_err(|why| no_munge(step, &why))?;
    let prompt = Instant::now() + LETTER_TIMEOUT;
    if write_letter(&stream, &sealed, prompt).is_err() || !is_the_place(&stream, &nonce, prompt) {
        return Ok(None);
    }
    // The first node gives up at about the same time; its reasons are the better ones.
    let Some(sealed) = read_letter(&stream, until + LETTER_TIMEOUT) else {
        return Ok(None);
    };
    let mut bytes = credential::open(&sealed, user).map_err(|why| no_munge(step, &why))?;
    let reply = Reply::decode(&bytes);
    erase(&mut bytes);
    match reply {
        Some(Reply::Table(table)) if table.nonce == nonce => {
            join_mesh(step, trusted, table, stream, listener, listeners, until).map(Some)
        }
        Some(Reply::Refused {
            nonce: named,
            versions,
            sentence,
        }) if named == nonce => Err(Refusal { versions, sentence }),
        _ => Ok(None),
    }
}

/// Nobody takes part in a job that keeps less secret than was asked for here.
fn agree(step: &Step, trusted: bool, table: &Table) -> Result<(), Refusal> {
    match table.trusted && !trusted {
        false => Ok(()),
        true => Err(Refusal::new(format!(
            "the tasks of step {} on {} are to encrypt what they say to other nodes, and the first node says that nobody does: give \
             REGATTA_TRUSTED_NETWORK the same value on all nodes",
            step.id, step.nodes[step.node as usize]
        ))),
    }
}

/// The guardian of another node and this one find no way to each other.
fn unreached(step: &Step, node: u32) -> Refusal {
    Refusal::new(format!(
        "the guardians of the nodes {} and {} do not reach each other: does a firewall between them close the ports from 32768 to 60999?",
        step.nodes[step.node as usize], step.nodes[node as usize]
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

    /// Says to all that this guardian is there, also to those that have just called it: they may have met all others, and would take it
    /// for lost while it waits for a slow one.
    fn beat(&mut self, mesh: &mut Mesh) {
        while let Ok(other) = self.calls.heard.try_recv() {
            self.take_in(other, mesh);
        }
        mesh.beat();
    }
}

/// Connects to all other guardians: calls those before this node, and is called by those after it.
fn join_mesh(
    step: &Step,
    trusted: bool,
    mut table: Table,
    first: TcpStream,
    listener: TcpListener,
    listeners: Vec<TcpListener>,
    until: Instant,
) -> Result<Met, Refusal> {
    if table.places.len() != step.size as usize || table.guardians.len() != step.nodes.len() {
        return Err(Refusal::new(
            "the first node has told something that does not fit this step",
        ));
    }
    agree(step, trusted, &table)?;
    let (me, key) = (step.node, Key::taken(&mut table.key));
    let mut mesh = Mesh::default();
    mesh.others(Other::new(&key, (me, 0), &table.nonce, first))?;
    let calls = Other::listen(key.clone(), me, listener, bounds(step));
    let calls = calls.map_err(|error| no_socket(&error))?;
    // A guardian that is called may be slow, and has as long as all have to come.
    let until = until.max(Instant::now() + LETTER_TIMEOUT);
    let mut expected = Expected {
        nodes: (me + 1..step.nodes.len() as u32).collect(),
        calls,
    };
    for (node, &guardian) in (0..me).zip(&table.guardians).skip(1) {
        expected.beat(&mut mesh);
        let other = connect(&guardian)?.and_then(|stream| {
            let beat = || expected.beat(&mut mesh);
            Other::call(&key, (me, node), stream, until, beat)
        });
        mesh.others(Some(other.ok_or_else(|| unreached(step, node))?))?;
    }
    let until = until.max(Instant::now() + LETTER_TIMEOUT);
    while let Some(&next) = expected.nodes.first() {
        match expected.calls.heard.recv_timeout(BEAT) {
            Ok(other) => expected.take_in(other, &mut mesh),
            Err(RecvTimeoutError::Timeout) if Instant::now() < until => expected.beat(&mut mesh),
            Err(_) => return Err(unreached(step, next)),
        }
    }
    let (host_of, addresses) = table.places.into_iter().unzip();
    Ok(Met {
        places: Places {
            here: me,
            most: step.size,
            host_of,
            key,
            trusted: table.trusted,
        },
        addresses,
        listeners,
        mesh,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_become_a_letter_is_read_on() {
        let letter = |length: u32, text: &[u8]| [&length.to_le_bytes()[..], text].concat();
        assert_eq!(rest_of_call(&[]), Some(4));
        assert_eq!(rest_of_call(&letter(20, b"")), Some(20));
        assert_eq!(rest_of_call(&letter(20, b"MUNGE:abc")), Some(11));
        assert_eq!(rest_of_call(&letter(9, b"MUNGE:abc")), Some(0));
        for senseless in [
            letter(0, b""),
            letter(20, b"GET"),
            letter(6, b"MUNGE:"),
            letter(2 << 20, b""),
        ] {
            assert_eq!(rest_of_call(&senseless), None, "{senseless:?}");
        }
    }

    #[test]
    fn only_a_reader_of_the_letter_can_say_that_this_is_the_place() {
        let nonce = [7; 32];
        for (word, is_believed) in [
            (String::new(), false),
            (here(&[8; 32]), false),
            (here(&nonce), true),
        ] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            let address = listener.local_addr().expect("an address");
            let caller = TcpStream::connect(address).expect("a listener");
            let (stranger, _) = listener.accept().expect("a caller");
            let until = Instant::now() + LETTER_TIMEOUT;
            write_letter(&stranger, &word, until).expect("room");
            assert_eq!(is_the_place(&caller, &nonce, until), is_believed, "{word}");
        }
    }

    fn step(id: &str) -> Step {
        Step {
            id: id.to_owned(),
            rank: 0,
            size: 2,
            node: 0,
            nodes: vec!["n1".to_owned(), "n2".to_owned()],
            here: vec![0],
        }
    }

    /// The decision of the first node when it and another one trust the network, or do not.
    fn decided(first: bool, other: bool) -> bool {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let stream = TcpStream::connect(address).expect("a listener");
        let letter = Letter {
            versions: OURS,
            step: "7.0".to_owned(),
            node: 1,
            nonce: [7; 32],
            trusted: other,
            guardian: address,
            ranks: vec![(1, address)],
        };
        let letters = Letters::from([(1, (letter, stream))]);
        let (places, ..) = decide(&step("7.0"), &letters, 1, first).expect("places");
        places.trusted
    }

    #[test]
    fn what_is_said_is_encrypted_unless_all_nodes_trust_the_network() {
        for first in [false, true] {
            for other in [false, true] {
                assert_eq!(decided(first, other), first && other, "{first} {other}");
            }
        }
    }

    /// Whether the second node takes the network for trusted, when it was told so or not, and the first node has decided so or not.
    fn joined(trusted: bool, decided: bool) -> Result<bool, Refusal> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let first = TcpStream::connect(address).expect("a listener");
        let step = Step {
            node: 1,
            ..step("7.0")
        };
        let table = Table {
            nonce: [7; 32],
            key: [9; 32],
            trusted: decided,
            guardians: vec![address; 2],
            places: vec![(0, address), (1, address)],
        };
        let met = join_mesh(
            &step,
            trusted,
            table,
            first,
            listener,
            vec![],
            Instant::now(),
        )?;
        Ok(met.places.trusted)
    }

    #[test]
    fn a_node_that_wants_encryption_takes_part_in_nothing_less() {
        let refused = joined(false, true).expect_err("in the clear");
        assert!(refused.sentence.contains("REGATTA_TRUSTED_NETWORK"));
        for (trusted, decided) in [(false, false), (true, false), (true, true)] {
            assert_eq!(joined(trusted, decided), Ok(decided));
        }
    }

    /// Of four nodes the second one is slow, and the fourth has met all others but the third, which waits for the second.
    #[test]
    fn a_guardian_that_waits_for_one_goes_on_to_say_to_those_that_have_called_that_it_is_there() {
        const KEY: Secret = [9; 32];
        const TEST_TIMEOUT: Duration = Duration::from_secs(60);
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let at = |listener: &TcpListener| listener.local_addr().expect("an address");
        let (slow, own, first) = (listen(), listen(), listen());
        let to_first = TcpStream::connect(at(&first)).expect("a listener");
        let address = at(&own);
        let table = Table {
            nonce: [7; 32],
            key: KEY,
            trusted: false,
            guardians: vec![at(&first), at(&slow), address, address],
            places: (0..4).map(|node| (node, address)).collect(),
        };
        let step = Step {
            size: 4,
            node: 2,
            nodes: (1..5).map(|node| format!("n{node}")).collect(),
            ..step("7.0")
        };
        let until = Instant::now() + TEST_TIMEOUT;
        let joining = std::thread::spawn(move || {
            join_mesh(&step, false, table, to_first, own, vec![], until).map(|met| met.mesh)
        });
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
            [crate::mesh::News::Told(
                2,
                regatta_slurm::rendezvous::Record::Beat
            )]
        ));
        called.write_all(&[8; 32]).expect("room");
        let met = joining.join().expect("it goes on").expect("all are here");
        assert_eq!(met.fds().count(), 3);
    }

    #[test]
    fn a_step_has_a_few_ports_of_its_own() {
        let of = |id: &str, user| ports(&step(id), user).collect::<Vec<u16>>();
        assert_eq!(of("7.0", 1000), of("7.0", 1000));
        assert!(
            of("7.0", 1000)
                .iter()
                .all(|&port| PORTS.contains(&port.into()))
        );
        for other in [of("7.1", 1000), of("8.0", 1000), of("7.0", 1001)] {
            assert_ne!(other[0], of("7.0", 1000)[0]);
        }
    }
}
