//! TLS 1.3 by rustls alone, through the interface that leaves buffers and sockets to its user.
//!
//! No proof goes before it: both ends derive one Ed25519 key pair from the job's key (`proof`).

mod proof;

use std::io;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};

use crate::wire::{Bare, Contestant, Wire, listen, other};

/// Plaintext of a record, and what a record has more.
const PLAIN: usize = 16 << 10;
const MORE: usize = 5 + 17;
/// Sealed and written at a time: four records, as ours.
const BATCH: usize = 4;
/// Received at a time; as much as ours.
const ROOM: usize = 16 * (5 + PLAIN + 256);

/// One of rustls' two ends.
trait End {
    type Data;
    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
    fn is_under_way(&self) -> bool;
}

impl End for UnbufferedClientConnection {
    type Data = ClientConnectionData;
    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(bytes)
    }
    fn is_under_way(&self) -> bool {
        self.is_handshaking()
    }
}

impl End for UnbufferedServerConnection {
    type Data = ServerConnectionData;
    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(bytes)
    }
    fn is_under_way(&self) -> bool {
        self.is_handshaking()
    }
}

struct Tls<E> {
    socket: Bare,
    end: E,
    incoming: Box<[u8]>,
    first: usize,
    last: usize,
    /// Opened, and taken from `taken` on: what did not fit where it should go.
    spare: Vec<u8>,
    taken: usize,
    outgoing: Vec<u8>,
}

/// The next need of a handshake.
enum Next {
    Nothing,
    Send,
    Bytes,
    Over,
}

fn encode<D>(mut data: EncodeTlsData<'_, D>, outgoing: &mut Vec<u8>) -> io::Result<()> {
    let begin = outgoing.len();
    if let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut []) {
        outgoing.resize(begin + size.required_size, 0);
    }
    data.encode(&mut outgoing[begin..]).map_err(other)?;
    Ok(())
}

impl<E: End> Tls<E> {
    fn new(socket: Bare, end: E) -> io::Result<Tls<E>> {
        let mut tls = Tls {
            socket,
            end,
            incoming: vec![0; ROOM].into(),
            first: 0,
            last: 0,
            spare: Vec::with_capacity(PLAIN),
            taken: 0,
            outgoing: Vec::new(),
        };
        tls.shake()?;
        // A change of keys may go in front of the records.
        tls.outgoing.resize(BATCH * (PLAIN + MORE) + 64, 0);
        Ok(tls)
    }

    fn shake(&mut self) -> io::Result<()> {
        loop {
            let status = self.end.process(&mut self.incoming[self.first..self.last]);
            let discard = status.discard;
            let next = match status.state.map_err(other)? {
                ConnectionState::EncodeTlsData(data) => {
                    encode(data, &mut self.outgoing)?;
                    Next::Nothing
                }
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    Next::Send
                }
                ConnectionState::BlockedHandshake => Next::Bytes,
                ConnectionState::ReadTraffic(mut traffic) => {
                    // The caller's first bytes have come with the end of its handshake.
                    while let Some(record) = traffic.next_record() {
                        self.spare.extend_from_slice(record.map_err(other)?.payload);
                    }
                    Next::Over
                }
                ConnectionState::WriteTraffic(_) => Next::Over,
                state => return Err(other(state)),
            };
            self.first += discard;
            match next {
                Next::Nothing => {}
                Next::Send => {
                    self.socket.send(&self.outgoing)?;
                    self.outgoing.clear();
                }
                // It could send already; but the other side has not proved who it is.
                Next::Over if !self.end.is_under_way() => return Ok(()),
                Next::Bytes | Next::Over => self.fill()?,
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.incoming.copy_within(self.first..self.last, 0);
        (self.first, self.last) = (0, self.last - self.first);
        self.last += self.socket.some(&mut self.incoming[self.last..])?;
        Ok(())
    }

    /// Opens the records that rustls has into `into`, and what does not fit into `spare`; how much went into `into`, and `None` when
    /// it needs more bytes.
    fn open(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let status = self.end.process(&mut self.incoming[self.first..self.last]);
        let mut discard = status.discard;
        let done = match status.state.map_err(other)? {
            ConnectionState::WriteTraffic(_) => None,
            ConnectionState::ReadTraffic(mut traffic) => {
                let mut done = 0;
                while let Some(record) = traffic.next_record() {
                    let record = record.map_err(other)?;
                    discard += record.discard;
                    let keep = record.payload.len().min(into.len() - done);
                    into[done..done + keep].copy_from_slice(&record.payload[..keep]);
                    self.spare.extend_from_slice(&record.payload[keep..]);
                    done += keep;
                }
                Some(done)
            }
            state => return Err(other(state)),
        };
        self.first += discard;
        Ok(done)
    }

    fn take(&mut self, into: &mut [u8]) -> usize {
        let keep = into.len().min(self.spare.len() - self.taken);
        into[..keep].copy_from_slice(&self.spare[self.taken..self.taken + keep]);
        self.taken += keep;
        if self.taken == self.spare.len() {
            self.spare.clear();
            self.taken = 0;
        }
        keep
    }
}

impl<E: End> Wire for Tls<E> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        for batch in bytes.chunks(BATCH * PLAIN) {
            let n = match self.end.process(&mut []).state.map_err(other)? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let sealed = traffic.encrypt(batch, &mut self.outgoing);
                    sealed.map_err(other)?
                }
                state => return Err(other(state)),
            };
            self.socket.send(&self.outgoing[..n])?;
        }
        Ok(())
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<()> {
        let mut done = self.take(into);
        while done < into.len() {
            match self.open(&mut into[done..])? {
                Some(n) => done += n,
                None => self.fill()?,
            }
        }
        Ok(())
    }
}

pub fn contestant() -> io::Result<Contestant> {
    let (listener, address) = listen()?;
    let (client, server) = proof::configs().map_err(other)?;
    let call = move || -> io::Result<Box<dyn Wire>> {
        let name = ServerName::try_from("task").map_err(other)?;
        let end = UnbufferedClientConnection::new(client.clone(), name);
        Ok(Box::new(Tls::new(
            Bare::call(address)?,
            end.map_err(other)?,
        )?))
    };
    let accept = move || -> io::Result<Box<dyn Wire>> {
        let socket = Bare::accept(&listener)?;
        let end = UnbufferedServerConnection::new(server.clone());
        Ok(Box::new(Tls::new(socket, end.map_err(other)?)?))
    };
    Ok(Contestant {
        name: "rustls",
        call: Box::new(call),
        accept: Box::new(accept),
    })
}
