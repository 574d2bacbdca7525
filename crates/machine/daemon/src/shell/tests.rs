//! The end of a channel at a shell, towards a launcher of this host.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::*;

/// More than a socket and a pump take.
const MUCH: usize = 4 << 20;

/// A wire, and the launcher's end of it.
fn wire() -> (Wire, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    (Wire::local(ours).expect("a wire"), theirs)
}

/// Frames with so many bytes of data.
fn frames(count: usize) -> Vec<u8> {
    let mut frames = Vec::new();
    for piece in vec![7; count].chunks(session::PIECE) {
        session::put_piece(Stream::Data, piece, &mut frames);
    }
    frames
}

/// A command in the place of a shell, to which its input is all that there is.
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
    pump.out = frames(MUCH);
    let end = ChannelEnd::ShellEnded { status: 3 };
    let last = pump.finish(end.clone());
    let launcher = std::thread::spawn(move || {
        let mut all = Vec::new();
        launcher.read_to_end(&mut all).map(|_| all)
    });
    last.expect("last words").deliver();
    let heard = launcher.join().expect("a launcher").expect("bytes");
    let mut said = frames(MUCH);
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
    let last = reader("cat").serve(wire, Vec::new(), &cut, None);
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
    launcher.write_all(&frames(session::PIECE)).expect("room");
    drop(launcher);
    let mut shell = reader("wc");
    let mut count = shell.child.stdout.take().expect("its output");
    let last = shell.serve(wire, frames(MUCH), &cut, None);
    assert!(last.is_none());
    let mut counted = String::new();
    count.read_to_string(&mut counted).expect("a count");
    let bytes = counted.split_whitespace().last();
    let all = (MUCH + session::PIECE).to_string();
    assert_eq!(bytes, Some(all.as_str()));
}
