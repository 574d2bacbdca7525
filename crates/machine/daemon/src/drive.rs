//! The thread that drives a daemon: datagrams, time, and new callers.

use std::io::ErrorKind;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use regatta_connection::local_socket;
use regatta_membership::Input;
use rustix::event::{PollFd, PollFlags};

use crate::answer;
use crate::daemon::Daemon;
use crate::seal::Opener;
use crate::sockets::Sockets;
use crate::spare::Spare;
use crate::talk::{Wire, wait};
use regatta_launch::place::Claimed;

/// Maximum number of datagrams, or of callers, that are handled before the loop checks its other inputs.
const MAX_BATCH: usize = 64;
/// Size of the receive buffer, in bytes. Longer datagrams are not from daemons.
const MAX_DATAGRAM_BYTES: usize = 2048;
/// Maximum sleep while strangers are connected, while the daemon ends, or while no caller can be accepted.
const TICK: Duration = Duration::from_millis(250);
/// Time limit for the end of the tasks that end with this daemon.
const TASKS_END_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for answers to commands once the daemon is to end.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Drives the daemon until it has to end. `ends` is readable after a signal that asks for that.
pub(crate) fn run(
    daemon: &Arc<Daemon>,
    mut sockets: Sockets,
    claimed: Claimed,
    ends: &UnixStream,
    spare: &Spare,
) {
    let mut opener = Opener::new(&daemon.charge.key);
    let mut over_since = None;
    // Whether there is no free descriptor: commands then wait in the queue, and must not wake the loop all the time.
    let mut full = false;
    loop {
        let (deadline, over) = {
            let mut state = daemon.lock();
            if let Some(moved) = state.moved.take() {
                sockets = moved;
            }
            state.over |= state.departed;
            if state.over {
                over_since.get_or_insert_with(Instant::now);
            }
            let rude = over_since.is_some_and(|since: Instant| since.elapsed() > FAREWELL_TIMEOUT);
            let owes = state.answers_due > 0 || state.watchers > 0;
            let over = state.over && (!owes || rude);
            (state.membership.deadline(), over)
        };
        if over {
            break;
        }
        let now = daemon.now();
        let mut left = deadline.saturating_sub(now);
        if sockets.listener.drop_overdue() || over_since.is_some() || full {
            left = left.min(TICK);
        }
        let callers = Some(&claimed.listener).filter(|_| !full);
        await_input(daemon, (&sockets, callers, ends), left);
        let _ = rustix::io::read(&daemon.bell, &mut [0; 8]);
        receive(daemon, &sockets, &mut opener);
        if daemon.now() >= deadline {
            daemon.input(Input::Timer);
        }
        let met = sockets.listener.attend(&daemon.keys);
        for peer in met {
            let wire = Wire::Far(Box::new(peer));
            spare.serve(daemon, Builder::new(), (wire, None));
        }
        full = !accept(daemon, &claimed.listener, spare);
        let mut byte = [0; 16];
        if rustix::io::read(ends, &mut byte).is_ok_and(|count| count > 0) {
            answer::leave(daemon);
        }
    }
    end(daemon, claimed);
}

/// Waits for the first input, at most for `limit`. If `callers` is `None`, callers of this host stay in the queue.
fn await_input(
    daemon: &Daemon,
    (sockets, callers, ends): (&Sockets, Option<&UnixListener>, &UnixStream),
    limit: Duration,
) {
    let mut fds = vec![
        PollFd::new(&sockets.datagrams, PollFlags::IN),
        PollFd::new(&daemon.bell, PollFlags::IN),
        PollFd::new(ends, PollFlags::IN),
    ];
    let strangers = sockets.listener.fds();
    fds.extend(strangers.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    fds.extend(callers.map(|listener| PollFd::new(listener, PollFlags::IN)));
    wait(&mut fds, Some(Instant::now() + limit));
}

fn receive(daemon: &Arc<Daemon>, sockets: &Sockets, opener: &mut Opener) {
    let mut datagram = [0; MAX_DATAGRAM_BYTES];
    for _ in 0..MAX_BATCH {
        let Ok((count, from)) = sockets.datagrams.recv_from(&mut datagram) else {
            return;
        };
        if let Some(bytes) = opener.open(sockets.address, &mut datagram[..count]) {
            daemon.input(Input::Datagram { from, bytes });
        }
    }
}

/// Accepts callers of this host. Returns whether all of them could be accepted.
fn accept(daemon: &Arc<Daemon>, listener: &UnixListener, spare: &Spare) -> bool {
    for _ in 0..MAX_BATCH {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        };
        if local_socket::check_user(&stream).is_err() {
            continue;
        }
        let caller = rustix::net::sockopt::socket_peercred(&stream).map(|peer| peer.pid);
        let Ok(caller) = caller else {
            continue;
        };
        if let Ok(wire) = Wire::local(stream) {
            spare.serve(daemon, Builder::new(), (wire, Some(caller)));
        }
    }
    true
}

/// Ends everything that runs here for the machine.
fn end(daemon: &Arc<Daemon>, claimed: Claimed) {
    let until = Instant::now() + TASKS_END_TIMEOUT;
    let mut state = daemon.lock();
    state.channels.let_go("the daemon of this host is ending");
    while state.channels.all().next().is_some() {
        match daemon.await_change(state, until) {
            Some(woken) => state = woken,
            None => break,
        }
    }
    drop(claimed);
}
