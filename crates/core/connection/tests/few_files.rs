//! Waiting for more descriptors than the limit of open files allows. This test has a process of its own, since it
//! changes the limit.

use std::io::{Read, Write, pipe};
use std::time::{Duration, Instant};

use regatta_connection::ready::poll;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const POLL_TIMEOUT: Duration = Duration::from_millis(50);

fn look(fds: &mut [PollFd<'_>]) -> (usize, Vec<PollFlags>) {
    let count = poll(fds, Some(&Timespec::default())).expect("a look");
    (count, fds.iter().map(PollFd::revents).collect())
}

/// Checks that a wait lasts until its timeout.
fn assert_waits(fds: &mut [PollFd<'_>]) {
    let begun = Instant::now();
    let limit = Timespec::try_from(POLL_TIMEOUT).expect("a short time");
    assert_eq!(poll(fds, Some(&limit)), Ok(0));
    assert!(begun.elapsed() >= POLL_TIMEOUT, "{:?}", begun.elapsed());
}

#[test]
fn more_descriptors_than_the_limit_allows_are_waited_for() {
    let [mut a, mut b, c] = [(); 3].map(|()| pipe().expect("a pipe"));
    let before = getrlimit(Resource::Nofile);
    for current in [64, 2, 0] {
        let limit = Rlimit {
            current: Some(current),
            ..before
        };
        setrlimit(Resource::Nofile, limit).expect("a lower limit");
        let reads = || [&a.0, &b.0, &c.0].map(|end| PollFd::new(end, PollFlags::IN));
        let none = PollFlags::empty();
        assert_waits(&mut reads());
        assert_eq!(look(&mut reads()), (0, vec![none; 3]), "under {current}");
        b.1.write_all(&[1]).expect("room");
        let found = vec![none, PollFlags::IN, none];
        assert_eq!(look(&mut reads()), (1, found), "under {current}");
        let mut both = reads().to_vec();
        both.push(PollFd::new(&c.1, PollFlags::OUT));
        let found = vec![none, PollFlags::IN, none, PollFlags::OUT];
        assert_eq!(look(&mut both), (2, found), "under {current}");
        drop(both);
        b.0.read_exact(&mut [0]).expect("a byte");
    }
    // A wait without a timeout is ended by another thread, and the end of a pipe counts as readable.
    let (mut end, mut writer) = (a.1, b.1);
    let woken = std::thread::spawn(move || {
        writer.write_all(&[1]).expect("room");
        writer
    });
    let mut fds = [&a.0, &b.0].map(|end| PollFd::new(end, PollFlags::IN));
    assert_eq!(poll(&mut fds, None), Ok(1));
    drop(woken.join().expect("no panic"));
    end.flush().expect("a pipe");
    drop(end);
    a.0.read_to_end(&mut Vec::new()).expect("the end");
    b.0.read_to_end(&mut Vec::new()).expect("the end");
    let mut fds = [&a.0, &b.0].map(|end| PollFd::new(end, PollFlags::IN));
    assert_eq!(poll(&mut fds, None), Ok(2));
    setrlimit(Resource::Nofile, before).expect("the limit as it was");
    high_numbers_are_waited_for();
    ends_are_told_from_words();
}

/// Sockets that are watched for a hang-up only, and not for reading: `poll` tells the two apart, and so does this.
fn ends_are_told_from_words() {
    let (mut near, far) = std::os::unix::net::UnixStream::pair().expect("sockets");
    let mut far = far;
    far.write_all(&[1]).expect("room");
    let [x, y, z] = [(); 3].map(|()| pipe().expect("a pipe"));
    let limit = Some(2);
    let before = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit,
            ..before
        },
    )
    .expect("a lower limit");
    {
        let mut fds = vec![
            PollFd::new(&near, PollFlags::RDHUP),
            PollFd::new(&near, PollFlags::empty()),
        ];
        fds.extend([&x.0, &y.0, &z.0].map(|end| PollFd::new(end, PollFlags::IN)));
        assert_waits(&mut fds);
    }
    drop(far);
    {
        let mut fds = vec![
            PollFd::new(&near, PollFlags::RDHUP),
            PollFd::new(&near, PollFlags::empty()),
        ];
        fds.extend([&x.0, &y.0, &z.0].map(|end| PollFd::new(end, PollFlags::IN)));
        assert_eq!(poll(&mut fds, None), Ok(2));
        assert!(fds[0].revents().contains(PollFlags::RDHUP));
        assert!(fds[1].revents().contains(PollFlags::HUP));
    }
    setrlimit(Resource::Nofile, before).expect("the limit as it was");
    near.read_exact(&mut [0]).expect("a byte");
}

/// Descriptors greater than the C library's `fd_set` can hold.
fn high_numbers_are_waited_for() {
    let mut one = pipe().expect("a pipe");
    let before = getrlimit(Resource::Nofile);
    // Users commonly begin with a limit of 1024.
    let all = Rlimit {
        current: before.maximum,
        ..before
    };
    setrlimit(Resource::Nofile, all).expect("the highest limit");
    let high: Vec<_> = [1023, 1024, 1025, 1087, 1088, 3000]
        .into_iter()
        .map(|least| rustix::io::fcntl_dupfd_cloexec(&one.0, least).expect("a descriptor"))
        .collect();
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(3),
            ..before
        },
    )
    .expect("a lower limit");
    let reads = || -> Vec<PollFd> {
        let all = high.iter();
        all.map(|end| PollFd::new(end, PollFlags::IN)).collect()
    };
    assert_waits(&mut reads());
    one.1.write_all(&[1]).expect("room");
    assert_eq!(look(&mut reads()), (6, vec![PollFlags::IN; 6]));
    setrlimit(Resource::Nofile, before).expect("the limit as it was");
}
