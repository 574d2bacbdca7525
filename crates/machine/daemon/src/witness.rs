//! Finds out whether a suspected host is dead or only its daemon: a live host refuses connections to a port on which no
//! process listens.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use regatta_membership::{HostId, Input};

use crate::daemon::Daemon;

/// Time limit for a connection attempt: a host in the same network answers within this time, or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(700);

/// Examines a host in a separate thread, and reports a verdict to the membership.
pub(crate) fn examine(daemon: &Arc<Daemon>, host: HostId) {
    let daemon = daemon.clone();
    // If no thread can be started, the host is found dead a little later because of its silence.
    let _ = std::thread::Builder::new().spawn(move || {
        if is_daemon_gone(host) {
            daemon.notify(Input::DaemonGone { host });
        }
    });
}

/// Returns whether the host answers but no process listens at its daemon's port. Takes up to [`CONNECT_TIMEOUT`].
pub(crate) fn is_daemon_gone(host: HostId) -> bool {
    let tried = TcpStream::connect_timeout(&host.address(), CONNECT_TIMEOUT);
    tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Returns whether the host answers a call, whether by its daemon or only by its kernel. Takes up to
/// [`CONNECT_TIMEOUT`].
pub(crate) fn answers(host: HostId) -> bool {
    match TcpStream::connect_timeout(&host.address(), CONNECT_TIMEOUT) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    }
}
