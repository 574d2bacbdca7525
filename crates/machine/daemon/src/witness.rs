//! Whether a suspected host is dead or only its daemon: a host that lives refuses connections to a port nobody listens at.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use regatta_membership::{HostId, Input};

use crate::daemon::Daemon;

/// Time limit for a connection attempt: a host in the same network answers within this, or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(700);

/// Looks, in a thread of its own; a verdict goes to the membership.
pub(crate) fn examine(daemon: &Arc<Daemon>, host: HostId) {
    let daemon = daemon.clone();
    // Without a thread the host is found dead a little later, of silence.
    let _ = std::thread::Builder::new().spawn(move || {
        if is_daemon_gone(host) {
            daemon.notify(Input::DaemonGone { host });
        }
    });
}

/// Whether the host answers and nobody listens at its daemon's port any more. Takes up to [`CONNECT_TIMEOUT`].
pub(crate) fn is_daemon_gone(host: HostId) -> bool {
    let tried = TcpStream::connect_timeout(&host.address(), CONNECT_TIMEOUT);
    tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Whether the host answers a call, its daemon or its kernel alone. Takes up to [`CONNECT_TIMEOUT`].
pub(crate) fn answers(host: HostId) -> bool {
    match TcpStream::connect_timeout(&host.address(), CONNECT_TIMEOUT) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    }
}
