//! The exchange of nodes that trust each other through munge: the first node collects the letters of all others, and
//! distributes them.
//!
//! The first node listens on one of a few ports derived from the step's number. Messages are munge credentials: only
//! processes of this user on nodes of this cluster can decode them, which authenticates the sender and hides the
//! content. Each answer contains the nonce of the call that it answers.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use regatta_foreign::Step;
use regatta_memory::undumped::erase;
use regatta_slurm::{credential, node_address};
use regatta_wire::guardian::{Call, Reply, Secret};
use ring::digest::{SHA256, digest};

use super::{Exchange, Give, LETTER_TIMEOUT, bounds, connect, no_socket, secret};
use crate::Refusal;
use crate::callers::{self, Callers, Claim};

/// The range of ports on which the first node may listen: below the ephemeral ports, above those of most services.
const PORTS: std::ops::Range<u32> = 20_000..32_000;
/// Number of ports in [`PORTS`] that are tried.
const PORTS_TRIED: u32 = 4;
/// First and maximum pause between two calls to a node that does not listen yet; doubled each time.
const RETRY_PAUSE: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(200)];
/// Maximum size of a node's letter, in bytes.
const MAX_LETTER_BYTES: usize = 1 << 20;
/// Maximum size of the answer to a letter, in bytes.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// The prefix of every letter: a credential of munge.
const SEAL: &[u8] = b"MUNGE:";

/// The functions that an exchange needs: seal, open, and address lookup. Tests replace them.
#[derive(Clone, Copy)]
pub(super) struct Munge {
    /// Seals bytes for processes of a user.
    seal: fn(&[u8], u32) -> Result<String, String>,
    /// Opens a letter that a process of a user has sealed for that user.
    open: fn(&str, u32) -> Result<Vec<u8>, String>,
    /// Returns the addresses of a node.
    addresses: fn(&str) -> Result<Vec<IpAddr>, String>,
}

/// The exchange of steps of Slurm.
pub(super) const OF_SLURM: Munge = Munge {
    seal: credential::seal,
    open: credential::open,
    addresses: node_address,
};

impl Exchange for Munge {
    fn exchange(&self, step: &Step, until: Instant, give: Give) -> Result<Vec<Vec<u8>>, Refusal> {
        let user = rustix::process::geteuid().as_raw();
        let peer = Peer {
            means: *self,
            step,
            user,
            until,
        };
        // Fail early if munge does not work: this node could neither call the first node nor answer calls.
        peer.seal(b"")?;
        match step.node {
            0 => peer.lead(give),
            _ => peer.follow(give),
        }
    }
}

/// One node's part in the exchange.
struct Peer<'a> {
    means: Munge,
    step: &'a Step,
    user: u32,
    until: Instant,
}

/// The nodes that have called: their calls, and the connections on which they wait for an answer.
type Calls = BTreeMap<u32, (Call, TcpStream)>;

impl Peer<'_> {
    fn seal(&self, bytes: &[u8]) -> Result<String, Refusal> {
        (self.means.seal)(bytes, self.user).map_err(|why| self.no_munge(&why))
    }

    fn no_munge(&self, why: &str) -> Refusal {
        let step = self.step;
        Refusal::new(format!(
            "step {} runs on {} nodes, which find each other through munge, but munge fails on {}: {why}. Start the program with {}, which does not need munge",
            step.id,
            step.nodes.len(),
            step.node_name(),
            step.names.instead
        ))
    }

    /// Runs the first node: collects the letters of all others, and sends all letters to each.
    fn lead(&self, give: Give) -> Result<Vec<Vec<u8>>, Refusal> {
        let listener = self.bind()?;
        let (open, id, user) = (self.means.open, self.step.id.clone(), self.user);
        let calls = callers::listen(
            listener,
            bounds(self.step),
            callers::no_challenge,
            rest_of_call,
            move |claim| receive(claim, |letter| open(letter, user).ok(), &id),
        );
        let mut calls = self.read_calls(&calls.map_err(|error| no_socket(&error))?)?;
        let (_, stream) = calls
            .values()
            .next()
            .ok_or_else(|| Refusal::new("no other node has called"))?;
        let mut letters = vec![give(local_address(stream)?)?];
        let theirs = calls.values_mut();
        letters.extend(theirs.map(|(call, _)| std::mem::take(&mut call.letter)));
        for (call, stream) in calls.values() {
            let mut reply = Reply::Letters {
                nonce: call.nonce,
                letters,
            };
            self.answer(&reply, stream)?;
            let Reply::Letters { letters: all, .. } = &mut reply else {
                unreachable!("just made");
            };
            letters = std::mem::take(all);
        }
        Ok(letters)
    }

    /// Sends an answer. Write errors are ignored: if the node is gone, the mesh reports it as lost to all nodes.
    fn answer(&self, reply: &Reply, stream: &TcpStream) -> Result<(), Refusal> {
        let mut bytes = reply.encode();
        let sealed = self.seal(&bytes);
        erase(&mut bytes);
        let _ = write_letter(stream, &sealed?, Instant::now() + LETTER_TIMEOUT);
        Ok(())
    }

    /// Listens on the first free port among the step's ports.
    fn bind(&self) -> Result<TcpListener, Refusal> {
        ports(self.step, self.user)
            .find_map(|port| {
                let everywhere = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port));
                everywhere
                    .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
                    .ok()
            })
            .ok_or_else(|| {
                Refusal::new(format!(
                    "all ports at which the nodes of step {} could meet are taken on {}; run it again",
                    self.step.id, self.step.nodes[0]
                ))
            })
    }

    /// Waits for the calls of all other nodes. On timeout it sends the reason to the nodes that did call.
    fn read_calls(&self, callers: &Callers<(Call, TcpStream)>) -> Result<Calls, Refusal> {
        let mut calls = Calls::new();
        while calls.len() + 1 < self.step.nodes.len() {
            let left = self.until.saturating_duration_since(Instant::now());
            let Ok((call, stream)) = callers.heard.recv_timeout(left) else {
                let refusal = self.refusal_for_missing(&calls);
                for (call, stream) in calls.values() {
                    let reply = Reply::Refused {
                        nonce: call.nonce,
                        sentence: refusal.sentence.clone(),
                    };
                    let _ = self.answer(&reply, stream);
                }
                return Err(refusal);
            };
            if 0 < call.node && (call.node as usize) < self.step.nodes.len() {
                calls.insert(call.node, (call, stream));
            }
        }
        Ok(calls)
    }

    fn refusal_for_missing(&self, come: &Calls) -> Refusal {
        let step = self.step;
        let names: Vec<&str> = (0..)
            .zip(&step.nodes)
            .filter(|(node, _)| *node != 0 && !come.contains_key(node))
            .map(|(_, name)| name.as_str())
            .collect();
        Refusal::new(format!(
            "the tasks of step {} on {} did not reach {}, where all nodes meet; they may not all have called rg_init, or a firewall between the nodes closes ports from {} to 60999. Set REGATTA_JOIN_TIMEOUT to more seconds if they start slowly",
            step.id,
            names.join(", "),
            step.nodes[0],
            PORTS.start
        ))
    }

    /// Runs any other node: finds the first node, and receives all letters from it.
    fn follow(&self, give: Give) -> Result<Vec<Vec<u8>>, Refusal> {
        let step = self.step;
        let first = (self.means.addresses)(&step.nodes[0]).map_err(Refusal::new)?;
        let mut pause = RETRY_PAUSE[0];
        while Instant::now() < self.until {
            for port in ports(step, self.user) {
                for &address in &first {
                    let address = SocketAddr::new(address, port);
                    if let Some(letters) = self.call(address, give)? {
                        return Ok(letters);
                    }
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(RETRY_PAUSE[1]);
        }
        let first: Vec<String> = first.iter().map(IpAddr::to_string).collect();
        Err(Refusal::new(format!(
            "the tasks of step {} on {} could not reach those on {} (at {}), where all nodes meet; they may not all have called rg_init, or a firewall between the nodes closes ports from {} to 60999. Set REGATTA_JOIN_TIMEOUT to more seconds if they start slowly",
            step.id,
            step.node_name(),
            step.nodes[0],
            first.join(", "),
            PORTS.start
        )))
    }

    /// Tries one address and port. Returns `None` if the first node does not listen there, or not yet.
    fn call(&self, address: SocketAddr, give: Give) -> Result<Option<Vec<Vec<u8>>>, Refusal> {
        let Some(stream) = connect(&address)? else {
            return Ok(None);
        };
        let mut call = Call {
            step: self.step.id.clone(),
            node: self.step.node,
            nonce: secret()?,
            letter: give(local_address(&stream)?)?,
        };
        let mut bytes = call.encode();
        erase(&mut call.letter);
        let sealed = self.seal(&bytes);
        erase(&mut bytes);
        let (sealed, nonce) = (sealed?, call.nonce);
        let prompt = Instant::now() + LETTER_TIMEOUT;
        if write_letter(&stream, &sealed, prompt).is_err()
            || !read_place_proof(&stream, &nonce, prompt)
        {
            return Ok(None);
        }
        // Wait a little longer than `until`: the first node gives up at about that time and sends a better error.
        let Some(sealed) = read_letter(&stream, self.until + LETTER_TIMEOUT) else {
            return Ok(None);
        };
        let opened = (self.means.open)(&sealed, self.user);
        let mut bytes = opened.map_err(|why| self.no_munge(&why))?;
        let reply = Reply::decode(&bytes);
        erase(&mut bytes);
        match reply {
            Some(Reply::Letters {
                nonce: named,
                letters,
            }) if named == nonce => Ok(Some(letters)),
            Some(Reply::Refused {
                nonce: named,
                sentence,
            }) if named == nonce => Err(Refusal::new(sentence)),
            _ => Ok(None),
        }
    }
}

/// Returns the ports on which a step's first node may listen; the same on all its nodes.
fn ports(step: &Step, user: u32) -> impl Iterator<Item = u16> {
    let name = format!("{user}/{}", step.id);
    // FNV-1a: well distributed, and the same in every version.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let count = PORTS.end - PORTS.start;
    (0..PORTS_TRIED).map(move |n| (PORTS.start + (hash.wrapping_add(n * 2_999)) % count) as u16)
}

/// Writes a letter as its length and its text. Fails if the other end does not take all of it by `until`.
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

/// Returns the time left until `until`, or `TimedOut`.
fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

/// Reads a letter that is complete by `until`, however its bytes are spread. Returns `None` otherwise.
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
        // Do not allocate for the announced length; grow the buffer as bytes arrive.
        match stream.read(&mut piece[..more]) {
            Ok(0) => return None,
            Ok(count) => whole.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Returns how many bytes are missing to complete the letter that starts with `whole`, or `None` if its length is above
/// `longest`.
fn rest_of_letter(whole: &[u8], longest: usize) -> Option<usize> {
    let Some((length, text)) = whole.split_first_chunk::<4>() else {
        return Some(4 - whole.len());
    };
    let length = u32::from_le_bytes(*length) as usize;
    (length <= longest).then(|| length.saturating_sub(text.len()))
}

/// Like [`rest_of_letter`], for a letter from another node: its text must also begin with `SEAL`.
fn rest_of_call(whole: &[u8]) -> Option<usize> {
    let text = whole.get(4..).unwrap_or_default();
    let seal = &SEAL[..text.len().min(SEAL.len())];
    text.starts_with(seal).then_some(())?;
    let more = rest_of_letter(whole, MAX_LETTER_BYTES)?;
    // An empty credential is not worth a call of munge.
    (more > 0 || text.len() > SEAL.len()).then_some(more)
}

fn local_address(stream: &TcpStream) -> Result<IpAddr, Refusal> {
    let address = stream.local_addr().map_err(|error| no_socket(&error))?;
    Ok(address.ip().to_canonical())
}

/// Returns the call in a letter, if it belongs to this step, after sending the place proof. Other callers get no
/// answer.
fn receive(
    claim: Claim,
    open: impl Fn(&str) -> Option<Vec<u8>>,
    step: &str,
) -> Option<(Call, TcpStream)> {
    let Claim { stream, said, .. } = claim;
    let sealed = std::str::from_utf8(said.get(4..)?).ok()?;
    let mut bytes = open(sealed)?;
    let call = Call::decode(&bytes);
    erase(&mut bytes);
    let call = call.filter(|call| call.step == step)?;
    // Tell the caller that it has found the first node. The full answer follows when all nodes have called.
    write_letter(
        &stream,
        &place_proof(&call.nonce),
        Instant::now() + LETTER_TIMEOUT,
    )
    .ok()?;
    Some((call, stream))
}

/// The proof that the first node listens here: a hash over the nonce, which only a process of this user can read.
/// Anybody can compute the ports, so another process may listen on one of them; without this proof callers go on to the
/// next port.
fn place_proof(nonce: &Secret) -> String {
    let said = [b"regatta: this is the place", &nonce[..]].concat();
    let proof = digest(&SHA256, &said);
    proof
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Reads the first answer and returns whether it proves that the other end has opened the letter.
fn read_place_proof(stream: &TcpStream, nonce: &Secret, until: Instant) -> bool {
    read_letter(stream, until) == Some(place_proof(nonce))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Functions that need no munge: sealed bytes can be read by everybody, and every node is this host.
    pub(in crate::exchange) const IN_THE_CLEAR: Munge = Munge {
        seal: |bytes, _| Ok(format!("MUNGE:{}", hex(bytes))),
        open: |letter, _| unhex(letter.strip_prefix("MUNGE:").unwrap_or("x")),
        addresses: |_| Ok(vec![Ipv4Addr::LOCALHOST.into()]),
    };

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn unhex(text: &str) -> Result<Vec<u8>, String> {
        let digits = (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..][..2], 16));
        digits
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }

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
            (place_proof(&[8; 32]), false),
            (place_proof(&nonce), true),
        ] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            let address = listener.local_addr().expect("an address");
            let caller = TcpStream::connect(address).expect("a listener");
            let (stranger, _) = listener.accept().expect("a caller");
            let until = Instant::now() + LETTER_TIMEOUT;
            write_letter(&stranger, &word, until).expect("room");
            assert_eq!(
                read_place_proof(&caller, &nonce, until),
                is_believed,
                "{word}"
            );
        }
    }

    #[test]
    fn a_step_has_a_few_ports_of_its_own() {
        let of = |id: &str, user| ports(&crate::meet::tests::step(id), user).collect::<Vec<u16>>();
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
