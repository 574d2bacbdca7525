//! A connection as the contest uses it, and the bare socket below all of them.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A wait that takes longer ends the run.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks again and again, as a task does that has its core for itself, until something is found.
pub fn spin<T>(mut look: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
    let mut until = None;
    loop {
        for _ in 0..1000 {
            if let Some(found) = look()? {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
        if Instant::now() > *until.get_or_insert_with(|| Instant::now() + PATIENCE) {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

pub fn other(error: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("{error:?}"))
}

/// One end of a connection. Both methods spin until they are done.
pub trait Wire {
    /// Returns when the kernel has all of `bytes`.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Fills all of `into`.
    fn recv(&mut self, into: &mut [u8]) -> io::Result<()>;
}

/// Makes one end of a connection; both ends have proved themselves by the time that the first bytes have come.
pub type Connect = Box<dyn FnMut() -> io::Result<Box<dyn Wire>> + Send>;

/// One of those that are compared.
pub struct Contestant {
    pub name: &'static str,
    pub call: Connect,
    pub accept: Connect,
}

/// A socket at which the contestant's other end is called, and its address.
pub fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// A socket that does not block, without Nagle's delay.
pub struct Bare(TcpStream);

fn none_if_blocked(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(n) => Ok(Some(n)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

impl Bare {
    fn new(stream: TcpStream) -> io::Result<Bare> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Bare(stream))
    }

    pub fn call(address: SocketAddr) -> io::Result<Bare> {
        Bare::new(TcpStream::connect(address)?)
    }

    pub fn accept(listener: &TcpListener) -> io::Result<Bare> {
        let accepted = spin(|| match listener.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        });
        Bare::new(accepted?)
    }

    /// Receives what is there, spinning until there is something; how much it was.
    pub fn some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        spin(|| none_if_blocked(self.0.read(into)))
    }
}

impl Wire for Bare {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = spin(|| none_if_blocked(self.0.write(bytes)))?;
            bytes = &bytes[n..];
        }
        Ok(())
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            done += self.some(&mut into[done..])?;
        }
        Ok(())
    }
}

/// Sockets without encryption and without proof.
pub fn contestant() -> io::Result<Contestant> {
    let (listener, address) = listen()?;
    Ok(Contestant {
        name: "bare",
        call: Box::new(move || Ok(Box::new(Bare::call(address)?))),
        accept: Box::new(move || Ok(Box::new(Bare::accept(&listener)?))),
    })
}
