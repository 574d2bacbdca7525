//! Which addresses of a host the other hosts of a job can reach, determined by trying.
//!
//! Every host opens a *beacon*, a port that sends a random token to everyone who connects, and reports the addresses
//! that it may have. Other hosts connect to each address and report the token that they received. So an address that is
//! filtered, or that belongs to another host on another network (every host with Docker has the address 172.17.0.1), is
//! found out before any task starts. The token is no secret, and the beacon reads nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;

use crate::channel::messages::{Sight, Target, Token};
use crate::sys;
use crate::system::parallel::in_parallel;
pub(crate) use regatta_job::hosts::{Interface, chosen};

/// Time limit for an attempt to reach an address, enough for two retransmissions of a lost packet.
const REACH_TIMEOUT: Duration = Duration::from_millis(3500);

/// Pause before the next accept when no descriptor is available.
const ACCEPT_PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A listening socket that sends this host's token, until it is dropped.
#[derive(Debug)]
pub(crate) struct Beacon {
    pub(crate) port: u16,
    pub(crate) token: Token,
    /// Closing it ends the thread.
    end: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Beacon {
    pub(crate) fn light() -> std::io::Result<Self> {
        // One socket for both families if the kernel has IPv6, otherwise IPv4 only.
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let mut token = Token::default();
        rustix::rand::getrandom(&mut token, rustix::rand::GetRandomFlags::empty())?;
        let (told, end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let thread = std::thread::Builder::new().spawn(move || shine(&listener, &told, token))?;
        Ok(Self {
            port,
            token,
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Beacon {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn shine(listener: &TcpListener, told: &OwnedFd, token: Token) {
    let mut closed = false;
    loop {
        let mut fds = [
            PollFd::new(told, PollFlags::IN),
            PollFd::new(listener, PollFlags::IN),
        ];
        // While no descriptor is available, a pending connection must not wake this thread all the time.
        let (count, limit) = match closed {
            true => (1, Some(ACCEPT_PAUSE)),
            false => (2, None),
        };
        let _ = regatta_connection::ready::poll(&mut fds[..count], limit.as_ref());
        if !fds[0].revents().is_empty() {
            return;
        }
        let called = listener.accept();
        closed = called
            .as_ref()
            .is_err_and(|error| error.kind() != ErrorKind::WouldBlock);
        if let Ok((mut stream, _)) = called {
            // The token fits into the send buffer of a new connection, so this does not block.
            let _ = stream.set_nonblocking(true);
            let _ = stream.write(&token);
        }
    }
}

/// Tries every candidate of every target at once, and returns those at which a beacon answered.
pub(crate) fn look_for(targets: &[Target]) -> Vec<Sight> {
    let candidates = targets
        .iter()
        .flat_map(|target| target.candidates.iter().map(move |&ip| (target, ip)));
    let attempts = in_parallel(candidates, |(target, address)| {
        let token = read_token(SocketAddr::new(address, target.port)).ok()?;
        Some(Sight {
            host: target.host,
            address,
            token,
        })
    });
    attempts.into_iter().flatten().collect()
}

fn read_token(address: SocketAddr) -> std::io::Result<Token> {
    let until = Instant::now() + REACH_TIMEOUT;
    let mut stream = TcpStream::connect_timeout(&address, REACH_TIMEOUT)?;
    let mut token = Token::default();
    let mut have = 0;
    // Another program may listen there and send a byte now and then, so the limit is for the whole token.
    while have < token.len() {
        let left = until.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut token[have..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) if Instant::now() < until => have += count,
            Ok(_) => return Err(ErrorKind::TimedOut.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(token)
}

/// Returns the addresses at which this host may be reached, the likeliest first: the one at which the launcher
/// connected (`known`), those of interfaces that look like networks, and last the loopback, which works for several
/// hosts simulated on one machine.
pub(crate) fn candidates(known: Option<IpAddr>) -> Vec<Interface> {
    let mut all = sys::interfaces();
    all.retain(|interface| !is_link_local(interface.address));
    all.sort_by_key(|interface| {
        let address = interface.address;
        (
            Some(address) != known,
            address.is_loopback(),
            is_bridge(&interface.name),
            address.is_ipv6(),
        )
    });
    all
}

/// Returns whether an interface is a network of containers or virtual machines inside a host, which is rarely the way
/// to another host.
fn is_bridge(name: &str) -> bool {
    ["docker", "br-", "virbr", "veth", "cni", "podman", "lxc"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beacon_is_heard_where_it_is_and_silent_elsewhere() {
        let (here, other) = (
            Beacon::light().expect("a beacon"),
            Beacon::light().expect("another"),
        );
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let target = |host, port| Target {
            host,
            port,
            candidates: vec![loopback],
        };
        let gone = {
            let beacon = Beacon::light().expect("a third");
            beacon.port
        };
        let seen = look_for(&[target(0, here.port), target(1, other.port), target(2, gone)]);
        let sight = |host, token| Sight {
            host,
            address: loopback,
            token,
        };
        assert_eq!(seen, [sight(0, here.token), sight(1, other.token)]);
    }

    #[test]
    fn the_loopback_is_the_last_resort() {
        let all = candidates(None);
        let first = all
            .iter()
            .position(|interface| interface.address.is_loopback());
        assert!(
            all[first.unwrap_or(all.len())..]
                .iter()
                .all(|interface| interface.address.is_loopback())
        );
    }
}
