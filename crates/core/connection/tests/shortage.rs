//! A listener of a process that has no descriptor left. Alone in its program, since the limit of open files is the process's.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use regatta_connection::listener::Listener;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Accepts until this holds: a connection that is made may not be in the queue at once.
fn accept_until(listener: &mut Listener, holds: impl Fn(&Listener, &[u64]) -> bool) {
    let begun = Instant::now();
    loop {
        listener.resume();
        let tokens = listener.accept();
        if holds(listener, &tokens) {
            return;
        }
        assert!(begun.elapsed() < TIME_LIMIT);
    }
}

/// So the time after which callers are given up begins with a caller, and not when descriptors were last looked for.
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
        setrlimit(Resource::Nofile, no_more).expect("a lower limit");
        accept_until(&mut listener, |listener, _| listener.is_short());

        setrlimit(Resource::Nofile, before).expect("the limit as it was");
        accept_until(&mut listener, |_, tokens| tokens.len() == 1);
        assert!(!listener.is_paused() && !listener.is_short());
    }
}
