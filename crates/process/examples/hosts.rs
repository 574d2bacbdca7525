//! A job of several hosts on this one, made by hand: `hosts HOSTS PER_HOST trusted|encrypted PROGRAM [ARGUMENTS]`.
//!
//! With `pingpong`, `stream` or `raw` in place of a program it measures: Regatta's messages of 8 B and of 4 MiB between
//! the first task of each of two hosts, and the same with a socket that is polled. With `REGATTA_HOSTS_AT` (addresses,
//! and network namespaces to enter, as `ns:address,ns:address`) each host is a network namespace.

use std::io::{IoSliceMut, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use regatta_process::{GroupId, Mode, Views};
use regatta_transport::job::{Cause, Invitation, Job, VERSION};
use regatta_transport::place::Places;

const LARGE: usize = 4 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[1..] {
        ["pingpong"] => pingpong(8, 20_000),
        ["stream"] => pingpong(LARGE, 300),
        ["raw-child", address] => raw_child(address.parse().unwrap()),
        ["raw"] => raw(),
        [hosts, per_host, how, ref program @ ..] => {
            return launch(
                hosts.parse().unwrap(),
                per_host.parse().unwrap(),
                how == "trusted",
                program,
            );
        }
        _ => panic!("see the head of the source"),
    }
    ExitCode::SUCCESS
}

fn places() -> Vec<(Option<String>, IpAddr)> {
    let text = std::env::var("REGATTA_HOSTS_AT").unwrap_or_default();
    let each = text.split(',').filter(|part| !part.is_empty());
    each.map(|part| {
        let (name, address) = part.split_once(':').unwrap();
        (Some(name.to_string()), address.parse().unwrap())
    })
    .collect()
}

fn place(host: usize) -> (Option<String>, IpAddr) {
    places()
        .get(host)
        .cloned()
        .unwrap_or((None, "127.0.0.1".parse().unwrap()))
}

/// Enter the namespace of a host; for this thread, and what it starts.
fn enter(host: usize) {
    if let Some(name) = place(host).0 {
        let file = std::fs::File::open(format!("/run/netns/{name}")).unwrap();
        rustix::thread::move_into_link_name_space(
            std::os::fd::AsFd::as_fd(&file),
            Some(rustix::thread::LinkNameSpaceType::Network),
        )
        .unwrap();
    }
}

fn inherited(fd: i32) -> i32 {
    // SAFETY: duplicates a descriptor, for children to inherit.
    unsafe { libc::dup(fd) }
}

fn launch(hosts: usize, per_host: usize, trusted: bool, program: &[&str]) -> ExitCode {
    let tasks = hosts * per_host;
    let host_of: Vec<u32> = (0..tasks).map(|rank| (rank / per_host) as u32).collect();
    let mut key = [0; 32];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut key))
        .unwrap();
    let jobs: Vec<Arc<Job>> = (0..hosts as u32)
        .map(|here| {
            let places = Places {
                here,
                host_of: host_of.clone(),
                key,
                trusted,
                most: regatta_transport::job::MOST_TASKS,
            };
            Arc::new(Job::create_across(&places).unwrap())
        })
        .collect();
    let listeners: Vec<TcpListener> = std::thread::scope(|scope| {
        let bind = |rank: usize| {
            enter(rank / per_host);
            TcpListener::bind((place(rank / per_host).1, 0)).unwrap()
        };
        let each: Vec<_> = (0..tasks)
            .map(|rank| scope.spawn(move || bind(rank)))
            .collect();
        each.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for job in &jobs {
        for (rank, listener) in (0..).zip(&listeners) {
            job.set_address(rank, listener.local_addr().unwrap());
        }
    }
    let own = std::env::current_exe().unwrap();
    let program: Vec<String> = match program {
        ["pingpong" | "stream"] => vec![own.to_str().unwrap().into(), program[0].into()],
        _ => program.iter().map(|word| word.to_string()).collect(),
    };
    let mut failed = 0;
    let watched: Vec<_> = (0..tasks)
        .map(|rank| {
            let host = rank / per_host;
            let (job, listener) = (&jobs[host], &listeners[rank]);
            let invitation = Invitation {
                version: VERSION,
                fd: inherited(job.fd().as_raw_fd()),
                rank: rank as u32,
                size: tasks as u32,
                control: None,
                listener: Some(inherited(listener.as_raw_fd())),
            };
            let mut command = Command::new(&program[0]);
            command.args(&program[1..]);
            command.env(Invitation::VARIABLE, invitation.to_string());
            let child = std::thread::scope(|scope| {
                let start = move || {
                    enter(host);
                    command.spawn().unwrap()
                };
                scope.spawn(start).join().unwrap()
            });
            for fd in [invitation.fd, invitation.listener.unwrap()] {
                // SAFETY: the duplicates made above, which nobody else uses.
                unsafe { libc::close(fd) };
            }
            let jobs = jobs.clone();
            std::thread::spawn(move || watch(child, rank, host, &jobs))
        })
        .collect();
    for one in watched {
        failed += !one.join().unwrap() as u8;
    }
    ExitCode::from(failed)
}

/// What each host's launcher does: tell the tables of all when a task ends.
fn watch(mut child: std::process::Child, rank: usize, host: usize, jobs: &[Arc<Job>]) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().unwrap();
    let cause = match status.signal() {
        Some(signal) => Cause::Signalled(signal),
        None => Cause::Exited(status.code().unwrap_or(0)),
    };
    let rank = rank as u32;
    let left = jobs[host].state(rank) == regatta_transport::job::TaskState::Left;
    for (number, job) in jobs.iter().enumerate() {
        match left {
            true if number != host => job.leave(rank),
            true => {}
            false => job.mark_dead(rank, cause),
        }
    }
    status.success()
}

fn pingpong(size: usize, rounds: usize) {
    regatta_process::init().unwrap();
    let me = regatta_process::rank(GroupId::WORLD).unwrap();
    let tasks = regatta_process::size(GroupId::WORLD).unwrap();
    let other = if me == 0 { tasks - 1 } else { 0 };
    if me != 0 && me != tasks - 1 {
        return regatta_process::finalize().unwrap();
    }
    let mut bytes = vec![me as u8; size];
    // SAFETY: `bytes` outlives each message.
    let whole = unsafe { Views::block(bytes.as_mut_ptr(), size) };
    let answer = if size > 1024 {
        Views::none()
    } else {
        whole.clone()
    };
    let mut times = vec![];
    for round in 0..rounds + rounds / 10 {
        let start = Instant::now();
        if me == 0 {
            send(&whole, other);
            receive(&answer, other);
        } else {
            receive(&whole, other);
            send(&answer, other);
        }
        if round >= rounds / 10 {
            times.push(start.elapsed());
        }
    }
    if me == 0 {
        report("regatta", size, times);
    }
    regatta_process::finalize().unwrap();
}

fn send(views: &Views, to: u32) {
    if !regatta_process::send_now(views, to as i32, 1, GroupId::WORLD) {
        regatta_process::send(views.clone(), to as i32, 1, GroupId::WORLD, Mode::Standard).unwrap();
    }
}

fn receive(views: &Views, from: u32) {
    if regatta_process::receive_now(views, from as i32, 1, GroupId::WORLD).is_none() {
        let tag = regatta_process::TagSelect::Exactly(1);
        regatta_process::receive(views.clone(), from as i32, tag, GroupId::WORLD).unwrap();
    }
}

fn report(what: &str, size: usize, mut times: Vec<std::time::Duration>) {
    times.sort();
    let slowest = times.last().map_or(0.0, std::time::Duration::as_secs_f64);
    let median = times[times.len() / 2].as_secs_f64();
    if size > 1024 {
        println!(
            "{what} {size} B: {:.3} GB/s (slowest {:.1} ms)",
            size as f64 / median / 1e9,
            slowest * 1e3
        );
    } else {
        println!(
            "{what} {size} B: {:.2} us one way (slowest {:.1} ms)",
            median * 5e5,
            slowest * 1e3
        );
    }
}

/// Poll a socket until all has moved.
fn all(stream: &mut TcpStream, bytes: &mut [u8], sends: bool) {
    let mut done = 0;
    while done < bytes.len() {
        let n = match sends {
            true => stream.write(&bytes[done..]),
            false => stream.read_vectored(&mut [IoSliceMut::new(&mut bytes[done..])]),
        };
        match n {
            Ok(0) => panic!("the other side has gone"),
            Ok(n) => done += n,
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}

fn raw_rounds(stream: &mut TcpStream, first: bool) {
    for (size, rounds) in [(8, 20_000), (LARGE, 300)] {
        let mut bytes = vec![1; size];
        let answer = if size > 1024 { 1 } else { size };
        let mut times = vec![];
        for round in 0..rounds + rounds / 10 {
            let start = Instant::now();
            if first {
                all(stream, &mut bytes, true);
                all(stream, &mut bytes[..answer], false);
            } else {
                all(stream, &mut bytes, false);
                all(stream, &mut bytes[..answer], true);
            }
            if round >= rounds / 10 {
                times.push(start.elapsed());
            }
        }
        if first {
            report("raw", size, times);
        }
    }
}

fn raw() {
    enter(0);
    let listener = TcpListener::bind((place(0).1, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new(own)
        .args(["raw-child", &address])
        .spawn()
        .unwrap();
    let mut stream = listener.accept().unwrap().0;
    prepare(&stream);
    raw_rounds(&mut stream, true);
    child.wait().unwrap();
    drop(OwnedFd::from(stream));
}

fn raw_child(address: SocketAddr) {
    enter(1);
    let mut stream = TcpStream::connect(address).unwrap();
    prepare(&stream);
    raw_rounds(&mut stream, false);
}

fn prepare(stream: &TcpStream) {
    stream.set_nodelay(true).unwrap();
    stream.set_nonblocking(true).unwrap();
}
