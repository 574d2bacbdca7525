//! The two sockets of a daemon, for datagrams and for connections, at one address and one port.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use regatta_connection::calls::CallListener;
use regatta_launch::Refusal;

/// Maximum number of attempts to find a port that is free for both sockets.
const MAX_PORT_ATTEMPTS: usize = 64;

/// The sockets of a daemon for datagrams and for connections, at one address and port.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub address: SocketAddr,
    pub datagrams: Arc<UdpSocket>,
    pub listener: CallListener,
}

impl Sockets {
    /// Opens both sockets at a free port.
    pub(crate) fn open(address: IpAddr) -> Result<Sockets, Refusal> {
        let mut last = None;
        for _ in 0..MAX_PORT_ATTEMPTS {
            match Sockets::try_open(address) {
                Ok(sockets) => return Ok(sockets),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = Some(error),
                Err(error) => return Err(refused(address, &error)),
            }
        }
        Err(refused(
            address,
            &last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()),
        ))
    }

    fn try_open(address: IpAddr) -> io::Result<Sockets> {
        let listener = TcpListener::bind((address, 0))?;
        let address = listener.local_addr()?;
        let datagrams = UdpSocket::bind(address)?;
        datagrams.set_nonblocking(true)?;
        Ok(Sockets {
            address,
            datagrams: Arc::new(datagrams),
            listener: CallListener::new(listener.into())?,
        })
    }
}

fn refused(address: IpAddr, error: &io::Error) -> Refusal {
    Refusal::of_regatta(format!("ports cannot be opened at {address}: {error}"))
}
