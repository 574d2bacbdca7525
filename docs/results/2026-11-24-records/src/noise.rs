//! A Noise channel, by snow: NNpsk0, whose pre-shared key is the job's key.
//!
//! Each message has its length in front, two bytes. The first message of the caller proves the key, the answer proves it too, and the
//! first message of the channel proves to the callee that the caller is there now.

use std::io;

use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, TransportState};

use crate::KEY;
use crate::wire::{Bare, Contestant, Wire, listen, other};

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// Bytes in front of a message, and of the tag at its end.
const HEAD: usize = 2;
const TAG: usize = 16;
/// The longest message, and the plaintext in it.
const LONGEST: usize = 65_535;
pub const LONGEST_PLAIN: usize = LONGEST - TAG;
/// Written at a time at most: a message of the longest, or four of 16 KiB, or two of 32 KiB.
const BATCH: usize = 4 * (HEAD + (16 << 10) + TAG);
/// Received at a time; as much as ours.
const ROOM: usize = 16 * (5 + (16 << 10) + 256);

struct Noise {
    socket: Bare,
    state: TransportState,
    /// Most plaintext in a message.
    longest: usize,
    incoming: Box<[u8]>,
    start: usize,
    end: usize,
    /// Opened, and taken from `taken` on: a message that did not fit where it should go.
    spare: Vec<u8>,
    taken: usize,
    outgoing: Vec<u8>,
}

fn send_one(socket: &mut Bare, state: &mut HandshakeState) -> io::Result<()> {
    let mut message = [0; HEAD + 256];
    let n = state.write_message(&[], &mut message[HEAD..]);
    let n = n.map_err(other)?;
    message[..HEAD].copy_from_slice(&(n as u16).to_be_bytes());
    socket.send(&message[..HEAD + n])
}

fn recv_one(socket: &mut Bare, state: &mut HandshakeState) -> io::Result<()> {
    let (mut head, mut message) = ([0; HEAD], [0; 256]);
    socket.recv(&mut head)?;
    let length = usize::from(u16::from_be_bytes(head));
    let message = message
        .get_mut(..length)
        .ok_or(io::ErrorKind::InvalidData)?;
    socket.recv(message)?;
    state.read_message(message, &mut [0; 256]).map_err(other)?;
    Ok(())
}

impl Noise {
    fn new(mut socket: Bare, called: bool, longest: usize) -> io::Result<Noise> {
        let params: NoiseParams = PATTERN.parse().map_err(other)?;
        let builder = Builder::new(params).psk(0, &KEY).map_err(other)?;
        let mut state = match called {
            true => builder.build_initiator(),
            false => builder.build_responder(),
        }
        .map_err(other)?;
        if called {
            send_one(&mut socket, &mut state)?;
            recv_one(&mut socket, &mut state)?;
        } else {
            recv_one(&mut socket, &mut state)?;
            send_one(&mut socket, &mut state)?;
        }
        Ok(Noise {
            socket,
            state: state.into_transport_mode().map_err(other)?,
            longest,
            incoming: vec![0; ROOM].into(),
            start: 0,
            end: 0,
            spare: Vec::with_capacity(LONGEST),
            taken: 0,
            outgoing: vec![0; BATCH],
        })
    }

    /// The next message lies there as a whole, up to this byte.
    fn whole(&self) -> Option<usize> {
        let head = self.incoming[self.start..self.end].first_chunk()?;
        let end = self.start + HEAD + usize::from(u16::from_be_bytes(*head));
        (end <= self.end).then_some(end)
    }

    /// Opens the next message into `into`, or into `spare` when it needs more room; how much went into `into`.
    fn open(&mut self, end: usize, into: &mut [u8]) -> io::Result<usize> {
        let message = &self.incoming[self.start + HEAD..end];
        self.start = end;
        // snow opens in place only where the tag fits, too.
        if into.len() >= message.len() {
            return self.state.read_message(message, into).map_err(other);
        }
        self.spare.resize(message.len(), 0);
        let opened = self.state.read_message(message, &mut self.spare);
        self.spare.truncate(opened.map_err(other)?);
        self.taken = 0;
        Ok(self.take(into))
    }

    fn take(&mut self, into: &mut [u8]) -> usize {
        let keep = into.len().min(self.spare.len() - self.taken);
        into[..keep].copy_from_slice(&self.spare[self.taken..self.taken + keep]);
        self.taken += keep;
        keep
    }
}

impl Wire for Noise {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Pieces of one size: 64 KiB would otherwise be a long one and a tiny one.
        let pieces = bytes.len().div_ceil(self.longest);
        let mut have = 0;
        for piece in bytes.chunks(bytes.len().div_ceil(pieces)) {
            if have + HEAD + piece.len() + TAG > BATCH {
                self.socket.send(&self.outgoing[..have])?;
                have = 0;
            }
            let (head, rest) = self.outgoing[have..].split_at_mut(HEAD);
            let n = self.state.write_message(piece, rest).map_err(other)?;
            head.copy_from_slice(&(n as u16).to_be_bytes());
            have += HEAD + n;
        }
        self.socket.send(&self.outgoing[..have])
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<()> {
        let mut done = self.take(into);
        while done < into.len() {
            if let Some(end) = self.whole() {
                done += self.open(end, &mut into[done..])?;
                continue;
            }
            self.incoming.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            self.end += self.socket.some(&mut self.incoming[self.end..])?;
        }
        Ok(())
    }
}

pub fn contestant(name: &'static str, longest: usize) -> io::Result<Contestant> {
    let (listener, address) = listen()?;
    Ok(Contestant {
        name,
        call: Box::new(move || Ok(Box::new(Noise::new(Bare::call(address)?, true, longest)?))),
        accept: Box::new(move || {
            Ok(Box::new(Noise::new(
                Bare::accept(&listener)?,
                false,
                longest,
            )?))
        }),
    })
}
