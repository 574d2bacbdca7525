//! Connecting sockets, and the options of connections' sockets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

/// Maximum time between two retransmissions by the kernel. By default it doubles up to two minutes, so after a network
/// failure of ten seconds it could take another ten seconds until the connection is used again.
const MAX_RETRANSMISSION_INTERVAL: Duration = Duration::from_secs(1);
/// The socket option for that, since Linux 6.15.
const TCP_RTO_MAX_MS: libc::c_int = 44;
/// `TCP_USER_TIMEOUT`, long enough that the kernel never gives up an unacknowledged connection: lost hosts are detected
/// by other means. Without it the kernel would limit the number of retransmissions, which are more frequent with
/// `MAX_RETRANSMISSION_INTERVAL`.
const USER_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns a socket that is connecting to `address`, with the options of [`set_up`].
pub fn dial(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_up(&socket)?;
    match connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Returns what this host lacks for a connection and the remedy, if `error` means such a shortage. Neither the network
/// nor another host is to blame then.
///
/// A local firewall that forbids a connection (EPERM) counts as part of the network: its rules may change as networks
/// do.
pub fn shortage(error: &io::Error) -> Option<&'static str> {
    use rustix::io::Errno;
    Some(match Errno::from_io_error(error)? {
        Errno::MFILE => {
            "this process has no free file descriptor: close files, or raise the limit (ulimit -n)"
        }
        Errno::NFILE => {
            "this host has no free file descriptor: end processes, or raise the limit (sysctl fs.file-max)"
        }
        Errno::NOMEM | Errno::NOBUFS | Errno::NOSPC => {
            "this host's kernel has no memory left for it: end processes"
        }
        Errno::ADDRNOTAVAIL | Errno::AGAIN => {
            "this host has no free port: close connections, or widen the range (sysctl net.ipv4.ip_local_port_range)"
        }
        _ => return None,
    })
}

/// Sends small messages at once (TCP_NODELAY), and limits the interval of retransmissions.
pub fn set_up(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_tcp_nodelay(socket, true)?;
    let retry = MAX_RETRANSMISSION_INTERVAL.as_millis() as libc::c_int;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is one int, which lives across the call.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            (&raw const retry).cast(),
            size,
        )
    };
    // Kernels before 6.15 do not know the option. There tasks try another connection instead.
    match set {
        0 => never_time_out(socket),
        _ => Ok(()),
    }
}

/// Sets TCP_USER_TIMEOUT to 24 h, so that the kernel does not end a connection because data or keepalive probes are not
/// acknowledged.
pub fn never_time_out(socket: impl AsFd) -> io::Result<()> {
    let timeout = USER_TIMEOUT.as_millis() as u32;
    Ok(sockopt::set_tcp_user_timeout(socket.as_fd(), timeout)?)
}

/// Enables or disables TCP keepalive with a period of one second, for a connection on which one end may wait for the
/// other for long without sending anything. If keepalive is enabled already and nothing was received for a second, the
/// kernel sends a probe at once.
pub fn set_keepalive(socket: impl AsFd, on: bool) -> io::Result<()> {
    let socket = socket.as_fd();
    if on {
        sockopt::set_tcp_keepidle(socket, MAX_RETRANSMISSION_INTERVAL)?;
        sockopt::set_tcp_keepintvl(socket, MAX_RETRANSMISSION_INTERVAL)?;
    }
    Ok(sockopt::set_socket_keepalive(socket, on)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn what_this_host_lacks_is_told_from_a_network_that_fails() {
        let shortage = |errno: i32| shortage(&io::Error::from_raw_os_error(errno));
        assert!(shortage(libc::EMFILE).is_some_and(|what| what.contains("ulimit -n")));
        for lack in [
            libc::ENFILE,
            libc::ENOMEM,
            libc::ENOBUFS,
            libc::EADDRNOTAVAIL,
        ] {
            assert!(shortage(lack).is_some(), "{lack}");
        }
        for network in [
            libc::ENETUNREACH,
            libc::EHOSTUNREACH,
            libc::ETIMEDOUT,
            libc::EPERM,
        ] {
            assert!(shortage(network).is_none(), "{network}");
        }
        assert_eq!(super::shortage(&io::ErrorKind::UnexpectedEof.into()), None);
    }

    #[test]
    fn a_connection_is_retried_every_second_and_not_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = dial(listener.local_addr().unwrap()).unwrap();
        let (mut retry, mut size) = (0, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the option is one int, and `retry` has room for it.
        let known = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                TCP_RTO_MAX_MS,
                (&raw mut retry).cast::<libc::c_void>(),
                &raw mut size,
            )
        };
        let patience = sockopt::tcp_user_timeout(&socket).unwrap();
        match known {
            0 => assert_eq!((retry, patience), (1000, USER_TIMEOUT.as_millis() as u32)),
            _ => assert_eq!(patience, 0),
        }
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
    }
}
