//! What the kernel permits, found by trying.

use std::sync::atomic::AtomicU32;

use regatta_memory::bell::Fencing;
use regatta_memory::segment::Segment;
use rustix::io::Errno;
use rustix::process::PidfdFlags;
use rustix::thread::futex;

use super::finding::Finding;

pub const AREA: &str = "kernel";
/// Size of the shared memory to try, in bytes.
const TRIED_BYTES: usize = 1 << 20;

pub fn findings(single_copy: &Finding) -> Vec<Finding> {
    vec![
        shared_memory(),
        waking(),
        membarrier(),
        single_copy.clone(),
        pidfd(),
        packet_sockets(),
        io_uring(),
        user_namespaces(),
    ]
}

fn shared_memory() -> Finding {
    const NAME: &str = "shared memory";
    match Segment::create("regatta-doctor", TRIED_BYTES) {
        Ok(_) => Finding::ok(AREA, NAME, "anonymous (memfd), sealed, and reserved before use"),
        Err(error) => Finding::missing(AREA, NAME, format!("a sealed memfd of 1 MiB is refused: {error}"))
            .next("raise the limit that the error names, and those below; in a container, the seccomp profile must allow memfd_create"),
    }
    .essential()
}

fn waking() -> Finding {
    const NAME: &str = "sleeping and waking";
    match futex::wake(&AtomicU32::new(0), futex::Flags::empty(), 1) {
        Ok(_) => Finding::ok(AREA, NAME, "futex across processes"),
        Err(errno) => Finding::missing(
            AREA,
            NAME,
            format!("futex across processes is refused: {errno}"),
        ),
    }
    .essential()
}

fn membarrier() -> Finding {
    const NAME: &str = "membarrier";
    if Fencing::available() {
        Finding::ok(
            AREA,
            NAME,
            "global expedited: senders need no fence to detect sleepers",
        )
    } else {
        Finding::slow(
            AREA,
            NAME,
            "global expedited is refused: every send needs a fence (about 10 ns)",
        )
        .next(
            "needs Linux 4.16 or later; in a container, the seccomp profile must allow membarrier",
        )
    }
}

fn pidfd() -> Finding {
    const NAME: &str = "pidfd";
    match rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()) {
        Ok(_) => Finding::ok(AREA, NAME, "processes can be watched by descriptor"),
        Err(errno) => Finding::info(
            AREA,
            NAME,
            format!("refused ({errno}); nothing needs it yet"),
        ),
    }
}

fn packet_sockets() -> Finding {
    const NAME: &str = "packet sockets";
    match regatta_launch::packet_socket_allowed() {
        Ok(()) => Finding::ok(AREA, NAME, "this command may open them on this host: one of the conditions for small messages to bypass TCP/IP (docs/messages.md)"),
        Err(errno) => Finding::info(AREA, NAME, format!("this command may not open them ({errno}): small messages between hosts use TCP in programs without this privilege"))
            .next("tasks need CAP_NET_RAW: as root, by `setcap cap_net_raw=ep PROGRAM` (the loader then ignores LD_LIBRARY_PATH), or in a container with --cap-add NET_RAW"),
    }
}

fn io_uring() -> Finding {
    const NAME: &str = "io_uring";
    match regatta_launch::io_uring_allowed() {
        Ok(()) => Finding::ok(AREA, NAME, "allowed; nothing needs it yet"),
        Err(errno) => {
            let why = match errno {
                Errno::NOSYS => "not in this kernel",
                Errno::PERM => "forbidden by kernel.io_uring_disabled or a seccomp profile",
                _ => "refused",
            };
            Finding::info(AREA, NAME, format!("{why} ({errno}); nothing needs it yet"))
        }
    }
}

fn user_namespaces() -> Finding {
    const NAME: &str = "user namespaces";
    match regatta_launch::user_namespace_allowed() {
        Ok(()) => Finding::ok(AREA, NAME, "allowed: tests with several hosts can run here"),
        Err(errno) => Finding::info(AREA, NAME, format!("refused ({errno}); only tests with several hosts need them"))
            .next("sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 (as root), where they exist"),
    }
}
