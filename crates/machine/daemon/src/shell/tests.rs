//! Tests of the end of a channel at a shell, towards a launcher of this host, or the daemon of another one.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

use regatta_connection::calls::{CallListener, Keys};
use rustix::net::sockopt;

use super::*;
use crate::dead_connection::tests::watch;
use crate::talk::Talk;

/// Number of bytes that exceed what a socket and a pump hold.
const OVERFLOWING_BYTES: usize = 4 << 20;

/// Returns a wire, and the launcher's end of it.
fn wire() -> (Wire, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    (Wire::local(ours).expect("a wire"), theirs)
}

/// Returns a wire to the daemon of another host, and the other daemon's end of it.
fn far_wire() -> (Wire, Wire) {
    const KEY: [u8; 32] = [7; 32];
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let calling = std::thread::spawn(move || {
        let call = Talk::call(address, &Keys::new(&KEY), Duration::from_secs(10));
        call.expect("a connection").into_parts().0
    });
    let keys = Keys::new(&KEY);
    let mut listener = CallListener::new(listener.into()).expect("a listener");
    let ours = loop {
        if let Some(ours) = listener.attend(&keys).pop() {
            break ours;
        }
        let fds = listener.fds();
        let mut fds: Vec<_> = fds
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        wait(&mut fds, None);
    };
    let theirs = calling.join().expect("a caller");
    (Wire::Far(Box::new(ours)), theirs)
}

/// Returns a watch that asks no host whether it lives.
fn unwatched() -> DeathWatch {
    DeathWatch::new(|| false)
}

/// Returns frames with this many bytes of data.
fn frames(count: usize) -> Vec<u8> {
    let mut frames = Vec::new();
    for piece in vec![7; count].chunks(session::MAX_PIECE_BYTES) {
        session::put_piece(Stream::Data, piece, &mut frames);
    }
    frames
}

/// Returns everything that is received on a wire until its end.
fn hear(wire: &mut Wire) -> Vec<u8> {
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match wire.recv(&mut piece) {
            Ok(Some(count)) => heard.extend_from_slice(&piece[..count]),
            Ok(None) => _ = wait(&mut [PollFd::new(wire, PollFlags::IN)], None),
            Err(_) => return heard,
        }
    }
}

/// Returns a command instead of a shell, with nothing but its input and output.
fn reader(command: &str) -> Shell {
    let mut command = Command::new(command);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a command");
    let pipe = OwnedFd::from(child.stdin.take().expect("a pipe"));
    rustix::io::ioctl_fionbio(&pipe, true).expect("a pipe");
    Shell {
        child,
        input: Some(pipe),
        output: [None, None],
        former: [None, None],
    }
}

#[test]
fn a_launcher_that_reads_late_hears_all_and_how_its_shell_has_ended() {
    let (wire, mut launcher) = wire();
    let mut pump = Pump::new(wire, Vec::new());
    pump.out = frames(OVERFLOWING_BYTES);
    let end = ChannelEnd::ShellEnded { status: 3 };
    let cut = Cut::new().expect("a cut");
    let last = pump.finish(end.clone(), &cut, None, &mut unwatched());
    let launcher = std::thread::spawn(move || {
        let mut all = Vec::new();
        launcher.read_to_end(&mut all).map(|_| all)
    });
    last.expect("last words").deliver();
    let heard = launcher.join().expect("a launcher").expect("bytes");
    let mut said = frames(OVERFLOWING_BYTES);
    session::put(&ChannelMessage::Closed { end }, &mut said);
    assert!(heard == said, "{} of {} bytes", heard.len(), said.len());
}

#[test]
fn a_launcher_is_told_why_its_shell_is_cut() {
    let (wire, mut launcher) = wire();
    let cut = Cut::new().expect("a cut");
    let end = ChannelEnd::Renewed {
        why: "it was silent".to_owned(),
    };
    cut.cut(&end);
    let last = reader("cat").serve((wire, Vec::new()), &cut, None, &mut unwatched());
    last.expect("last words").deliver();
    let (mut heard, mut said) = (Vec::new(), Vec::new());
    launcher.read_to_end(&mut heard).expect("bytes");
    session::put(&ChannelMessage::Closed { end }, &mut said);
    assert_eq!(heard, said);
}

#[test]
fn a_shell_gets_all_that_its_launcher_said_before_it_hung_up() {
    let (wire, mut launcher) = wire();
    let cut = Cut::new().expect("a cut");
    launcher
        .write_all(&frames(session::MAX_PIECE_BYTES))
        .expect("room");
    drop(launcher);
    let mut shell = reader("wc");
    let mut count = shell.child.stdout.take().expect("its output");
    let last = shell.serve(
        (wire, frames(OVERFLOWING_BYTES)),
        &cut,
        None,
        &mut unwatched(),
    );
    assert!(last.is_none());
    let mut counted = String::new();
    count.read_to_string(&mut counted).expect("a count");
    let bytes = counted.split_whitespace().last();
    let all = (OVERFLOWING_BYTES + session::MAX_PIECE_BYTES).to_string();
    assert_eq!(bytes, Some(all.as_str()));
}

#[test]
fn a_host_that_has_said_something_and_reads_late_hears_all_and_how_its_shell_has_ended() {
    const BUFFERED_BYTES: usize = 3 * session::MAX_PIECE_BYTES;
    let (ours, mut theirs) = far_wire();
    // So that the kernel takes all of it at once.
    sockopt::set_socket_send_buffer_size(ours.as_fd(), 2 * BUFFERED_BYTES).expect("a buffer");
    let mut pump = Pump::new(ours, Vec::new());
    pump.out = frames(BUFFERED_BYTES);
    let end = ChannelEnd::ShellEnded { status: 3 };
    let mut said = frames(BUFFERED_BYTES);
    session::put(&ChannelMessage::Closed { end: end.clone() }, &mut said);
    theirs.send(b"a beat that nobody reads").expect("room");
    let finished = std::thread::spawn(move || {
        let cut = Cut::new().expect("a cut");
        pump.finish(end, &cut, None, &mut unwatched())
    });
    // A reset of the connection would be noticed within this time.
    let late = Instant::now() + Duration::from_millis(300);
    wait(&mut [PollFd::new(&theirs, PollFlags::empty())], Some(late));
    let heard = hear(&mut theirs);
    assert!(heard == said, "{} of {} bytes", heard.len(), said.len());
    assert!(
        !finished.is_finished(),
        "it does not wait until all is read"
    );
    drop(theirs);
    assert!(finished.join().expect("it ends").is_none());
}

#[test]
fn the_end_of_a_shell_is_for_a_host_that_takes_nothing_until_the_machine_gives_that_up() {
    let give_up: [fn(&Cut, &DetachedSession); 2] = [
        |cut, _| {
            let cause = "it has been silent".to_owned();
            cut.cut(&ChannelEnd::HostLost { cause });
        },
        |_, session| session.owner_is_lost(),
    ];
    for give_up in give_up {
        let (ours, theirs) = far_wire();
        let mut pump = Pump::new(ours, Vec::new());
        // More than the kernels buffer for a connection.
        pump.out = frames(4 * OVERFLOWING_BYTES);
        let cut = Cut::new().expect("a cut");
        let session = DetachedSession::new(Duration::ZERO).expect("a session");
        let (began, (tell, told)) = (Instant::now(), std::sync::mpsc::channel());
        std::thread::scope(|scope| {
            let (cut, session) = (&*cut, &*session);
            scope.spawn(move || {
                tell.send(()).expect("a listener");
                let end = ChannelEnd::ShellEnded { status: 3 };
                pump.finish(end, cut, Some(session), &mut unwatched())
            });
            told.recv().expect("it begins");
            give_up(cut, session);
        });
        assert!(
            began.elapsed() < SHELL_END_TIMEOUT / 2,
            "{:?}",
            began.elapsed()
        );
        drop(theirs);
    }
}

#[test]
fn the_end_of_a_shell_is_said_once_also_on_a_channel_that_is_cut() {
    let (ours, mut theirs) = far_wire();
    let pump = Pump::new(ours, Vec::new());
    let end = ChannelEnd::ShellEnded { status: 3 };
    let cut = Cut::new().expect("a cut");
    let sentence = "this host leaves the machine".to_owned();
    cut.cut(&ChannelEnd::Cut { sentence });
    pump.finish(end.clone(), &cut, None, &mut unwatched());
    let mut said = Vec::new();
    session::put(&ChannelMessage::Closed { end }, &mut said);
    assert_eq!(hear(&mut theirs), said);
}

#[test]
fn nobody_waits_for_ever_on_a_connection_that_alone_is_dead() {
    // The other daemon never closes the connection, which it does not know any more.
    let (ours, _theirs) = far_wire();
    let pump = Pump::new(ours, Vec::new());
    let cut = Cut::new().expect("a cut");
    let end = ChannelEnd::ShellEnded { status: 3 };
    let last = pump.finish(end, &cut, None, &mut watch(|_| true, true));
    assert!(last.is_none());
}

#[test]
fn nonsense_of_a_launcher_does_not_take_from_its_shell_what_came_before() {
    let (wire, _launcher) = wire();
    let cut = Cut::new().expect("a cut");
    let said = [&frames(9)[..], &[0xff; 4]].concat();
    let mut shell = reader("wc");
    let mut count = shell.child.stdout.take().expect("its output");
    shell.serve((wire, said), &cut, None, &mut unwatched());
    let mut counted = String::new();
    count.read_to_string(&mut counted).expect("a count");
    assert_eq!(counted.split_whitespace().last(), Some("9"));
}

/// Returns whether a child still has its process id: it runs, or has not been waited for.
fn is_kept(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    rustix::process::waitid(WaitId::Pid(pid), options).is_ok()
}

#[test]
fn the_number_of_a_shell_is_kept_until_its_channel_is_not_listed() {
    // One shell whose launcher ends it, and one that ends by itself.
    for (command, is_held) in [("cat", false), ("true", true)] {
        let (wire, launcher) = wire();
        let cut = Cut::new().expect("a cut");
        let mut shell = reader(command);
        let held = Some(launcher).filter(|_| is_held);
        let last = shell.serve((wire, Vec::new()), &cut, None, &mut unwatched());
        let pid = shell.pid();
        assert!(is_kept(pid), "{command} is waited for too soon");
        drop(shell);
        assert!(!is_kept(pid), "nobody waits for {command}");
        drop((held, last));
    }
}
