//! A listener of a process that has no descriptor left. This test has a process of its own, since it changes the limit
//! of open files.

use std::net::{TcpListener, TcpStream};

use regatta_connection::listener::Listener;
use regatta_connection::ready::poll;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Waits until a connection is in the listener's queue.
fn await_caller(listener: &Listener) {
    let mut caller = [PollFd::from_borrowed_fd(listener.fd(), PollFlags::IN)];
    assert_eq!(poll(&mut caller, None), Ok(1));
}

/// So the shortage begins with a caller, and not with the last attempt to open a descriptor.
#[test]
fn a_process_without_descriptors_is_short_while_somebody_calls() {
    let socket = TcpListener::bind(("127.0.0.1", 0)).expect("a socket");
    let address = socket.local_addr().expect("an address");
    let mut listener = Listener::new(socket.into()).expect("it listens");
    listener.keep_reserve();
    let before = getrlimit(Resource::Nofile);
    let no_more = Rlimit {
        current: Some(3),
        ..before
    };
    for _ in 0..2 {
        setrlimit(Resource::Nofile, no_more).expect("a lower limit");
        assert_eq!(listener.accept(), []);
        assert!(
            !listener.is_paused() && !listener.is_short(),
            "nobody calls"
        );

        setrlimit(Resource::Nofile, before).expect("the limit as it was");
        let _caller = TcpStream::connect(address).expect("it listens");
        await_caller(&listener);
        setrlimit(Resource::Nofile, no_more).expect("a lower limit");
        assert_eq!(listener.accept(), []);
        assert!(listener.is_short());

        setrlimit(Resource::Nofile, before).expect("the limit as it was");
        listener.resume();
        assert_eq!(listener.accept().len(), 1);
        assert!(!listener.is_paused() && !listener.is_short());
    }
}
