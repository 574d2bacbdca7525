//! The start of a daemon: its process, the settings that it gets, and the hosts that it must reach before it belongs to
//! the machine.
//!
//! ```text
//! starter                        daemon
//! begin: the charge        >     claims its place, opens its sockets, meets the hosts that it joins
//!                          <     done, or the reason why not
//! keep                     >     from here on it stays
//!                          <     done
//! ```
//!
//! If the starter ends before it has sent `keep`, the daemon leaves again, so an interrupted start leaves nothing
//! behind. A daemon that is *tied* leaves whenever its starter ends: on systems where processes only live as long as a
//! resource that was lent, the starter is one of them.

use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use regatta_launch::{Refusal, identity, in_parallel, limits};
use regatta_membership::{Input, Standing};

use crate::answer::{self, REACH_TIMEOUT};
use crate::ask::{Ask, Birth, Charge, Opening, Reply};
use crate::daemon::Daemon;
use crate::drive;
use crate::leftover;
use crate::sockets::Sockets;
use crate::spare::Spare;
use crate::talk::{Talk, Wire};
use regatta_launch::place::{Claimed, MachinePlace};

/// Time that a daemon may take to join its machine. Beyond that its datagrams are considered blocked.
const JOIN_TIMEOUT: Duration = Duration::from_secs(8);
/// Time that a starter may take to tell the daemon to stay, as it may wait for other hosts. It does not apply to a
/// machine's first daemon, whose starter runs on the same host, so that the starter's end is noticed.
const KEEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of hosts with which connections are tried in both directions: all hosts of a small machine, and
/// enough to find a firewall in a large one.
const MAX_WITNESSES: usize = 4;

/// Starts a daemon in a process of its own, and returns when it has joined. It leaves unless it is told to stay.
/// Returns also a note for the user, if there is one.
pub(crate) fn start(charge: &Charge) -> Result<(Talk, Option<String>), Refusal> {
    let failed = |error: std::io::Error| {
        Refusal::of_regatta(format!("the daemon cannot be started: {error}"))
    };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("regatta")
        .args(["daemon", "--serve"])
        .current_dir("/")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // The variables about this ssh login are not for the daemon.
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.as_encoded_bytes().starts_with(b"SSH_")) {
        command.env_remove(name);
    }
    command
        .spawn()
        .map_err(|error| limits::no_process("the daemon cannot be started", &error))?;
    drop(command);
    let wire = Wire::local(ours).map_err(failed)?;
    // It first tries addresses in both directions, and joins.
    let mut talk = Talk::new(wire, JOIN_TIMEOUT * 2 + REACH_TIMEOUT * 3);
    let begun = talk
        .send_line(&Birth::Begin(charge.clone()))
        .and_then(|()| talk.receive::<Reply>());
    match begun {
        Ok(Reply::Refused(sentence)) => Err(Refusal::of_regatta(sentence)),
        Ok(Reply::Note(note)) => Ok((talk, Some(note))),
        Ok(_) => Ok((talk, None)),
        Err(_) => Err(Refusal::of_regatta(
            "the daemon ended without reporting a cause",
        )),
    }
}

/// Tells the daemon to stay.
pub(crate) fn keep(talk: &mut Talk) -> Result<(), Refusal> {
    talk.limit(Some(answer::TALK_TIMEOUT));
    let kept = talk
        .send_line(&Birth::Keep)
        .and_then(|()| talk.receive::<Reply>());
    match kept {
        Ok(Reply::Done) => Ok(()),
        _ => Err(Refusal::of_regatta(
            "the daemon ended soon after it was started",
        )),
    }
}

/// Runs the daemon's process to its end. The connection to its starter is standard input.
pub fn live() -> Result<(), Refusal> {
    let failed = |error: std::io::Error| {
        Refusal::of_regatta(format!("the daemon cannot be set up: {error}"))
    };
    let starter = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(failed)?;
    if rustix::net::sockopt::socket_type(&starter).is_err() {
        return Err(Refusal::of_regatta(
            "`regatta daemon` is started by `regatta up` and `regatta add`, not by hand",
        ));
    }
    let wire = Wire::local(UnixStream::from(starter)).map_err(failed)?;
    // A new session protects this process from the terminal's keys and the end of the login. Where Linux schedules
    // sessions in turn (sched_autogroup_enabled), it also has a turn of its own: a daemon that waited behind a login's
    // processes would be declared dead.
    rustix::process::setsid().map_err(|errno| failed(errno.into()))?;
    let _ = rustix::thread::set_name(c"regatta-daemon");
    let null = std::fs::File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(|errno| failed(errno.into()))?;
    let (ends, told) = UnixStream::pair().map_err(failed)?;
    ends.set_nonblocking(true).map_err(failed)?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        let told = told.try_clone().map_err(failed)?;
        signal_hook::low_level::pipe::register(signal, told).map_err(failed)?;
    }
    let ignored = Arc::new(std::sync::atomic::AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGHUP, ignored).map_err(failed)?;

    let mut talk = Talk::new(wire, answer::TALK_TIMEOUT);
    let Ok(Birth::Begin(charge)) = talk.receive::<Birth>() else {
        return Err(Refusal::of_regatta("the daemon received no instructions"));
    };
    match set_up(charge) {
        Ok((daemon, sockets, claimed, note)) => {
            let done = note.map_or(Reply::Done, Reply::Note);
            let spare = begin(&daemon, talk, done)?;
            drive::run(&daemon, sockets, claimed, &ends, &spare);
            Ok(())
        }
        Err(refusal) => {
            let _ = talk.send_line(&Reply::Refused(refusal.sentence.clone()));
            Err(refusal)
        }
    }
}

/// Starts the threads that a daemon has from the beginning. `done` is sent when it has joined. If a thread cannot be
/// started, the starter gets the reason.
fn begin(daemon: &Arc<Daemon>, mut talk: Talk, done: Reply) -> Result<Spare, Refusal> {
    let born = daemon.clone();
    // The talk is handed over once there is a thread for it.
    let (hand, taken) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().spawn(move || {
        if let Ok(talk) = taken.recv() {
            grow_up(&born, talk, &done);
        }
    });
    match thread.and_then(|_| Spare::start(daemon)) {
        Ok(spare) => {
            let _ = hand.send(talk);
            Ok(spare)
        }
        Err(error) => {
            let refusal = limits::no_process("the daemon cannot run", &error);
            let _ = talk.send_line(&Reply::Refused(refusal.sentence.clone()));
            Err(refusal)
        }
    }
}

/// A daemon with its sockets and its place, and a note about how it got the place.
type SetUp = (Arc<Daemon>, Sockets, Claimed, Option<String>);

fn set_up(charge: Charge) -> Result<SetUp, Refusal> {
    let place = MachinePlace::of(&charge.machine)?;
    let note = leftover::end(&place, &charge.name)?;
    let claimed = place.claim()?;
    let sockets = Sockets::open(charge.address)?;
    Ok((Daemon::new(charge, &sockets)?, sockets, claimed, note))
}

/// Joins the machine, and waits until it is told to stay; otherwise leaves. `done` is sent when it has joined.
fn grow_up(daemon: &Arc<Daemon>, mut talk: Talk, done: &Reply) {
    talk.limit(Some(answer::TALK_TIMEOUT));
    let joined = join(daemon);
    let is_first = daemon.charge.contacts.is_empty();
    talk.limit((!is_first).then_some(KEEP_TIMEOUT));
    let kept = match joined {
        Ok(()) => {
            let answered = talk.send_line(done);
            answered
                .and_then(|()| talk.receive::<Birth>())
                .is_ok_and(|word| word == Birth::Keep)
        }
        Err(refusal) => {
            let _ = talk.send_line(&Reply::Refused(refusal.sentence));
            false
        }
    };
    if kept {
        let _ = talk.send_line(&Reply::Done);
        if !daemon.charge.tied {
            return;
        }
        await_end(&mut talk);
    }
    answer::leave(daemon);
}

/// Waits until the other end has gone. It sends nothing any more.
pub(crate) fn await_end(talk: &mut Talk) {
    talk.limit(None);
    while talk.line(0).is_ok() {}
}

fn join(daemon: &Arc<Daemon>) -> Result<(), Refusal> {
    let contacts = &daemon.charge.contacts;
    if contacts.is_empty() {
        daemon.found();
        return Ok(());
    }
    let witnesses = contacts.iter().take(MAX_WITNESSES);
    let refusals = in_parallel(witnesses, |(name, address)| {
        meet(daemon, name, *address).err()
    });
    if let Some(refusal) = refusals.into_iter().flatten().next() {
        return Err(refusal);
    }
    for (_, address) in contacts {
        daemon.notify(Input::Join { address: *address });
    }
    let until = Instant::now() + JOIN_TIMEOUT;
    let mut state = daemon.lock();
    while state.membership.standing() != Standing::Majority {
        match daemon.await_change(state, until) {
            Some(woken) => state = woken,
            None => {
                let port = daemon.lock().membership.own().address().port();
                return Err(Refusal::of_regatta(format!(
                    "connections between {} and {} work, but datagrams do not arrive (UDP, to port {port} here and port {} there); a firewall may block them",
                    daemon.charge.name,
                    contacts[0].0,
                    contacts[0].1.port()
                )));
            }
        }
    }
    Ok(())
}

/// Connects to a host of the machine, and makes it connect to this one.
fn meet(daemon: &Daemon, name: &str, address: std::net::SocketAddr) -> Result<(), Refusal> {
    let here = &daemon.charge.name;
    let own = daemon.lock().membership.own();
    let asked = Talk::call(address, &daemon.keys, REACH_TIMEOUT).and_then(|mut talk| {
        talk.limit(Some(REACH_TIMEOUT * 2));
        talk.send_line(&Opening {
            identity: identity(),
            from: Some(own.into()),
            to: Some(address),
            ask: Ask::Reach { at: own.address() },
        })?;
        talk.receive::<Reply>()
    });
    let firewall = "check for a firewall between them";
    match asked {
        Ok(Reply::Done) => Ok(()),
        Ok(Reply::Refused(sentence)) if sentence.starts_with("the daemon of") => {
            Err(Refusal::of_regatta(sentence))
        }
        Ok(_) => Err(Refusal::of_regatta(format!(
            "the host {name} cannot connect to {here} at {}: {firewall}",
            own.address()
        ))),
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(Refusal::of_regatta(format!(
            "the host {name} runs another version of Regatta than {here}"
        ))),
        Err(_) => Err(Refusal::of_regatta(format!(
            "{here} cannot connect to the host {name} at {address}: {firewall}"
        ))),
    }
}
