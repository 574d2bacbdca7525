//! Sends and receives in every form, in jobs of real processes.

mod support;

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::parent_id;
use std::panic::{AssertUnwindSafe, catch_unwind};

use regatta::{ErrorKind, Shape, Source, TagMatch, Task, View, ViewMut, wait_all, wait_any};
use support::in_jobs;

/// Lengths in bytes: empty, one line, eager, streamed and large messages.
const LENGTHS: [usize; 9] = [0, 1, 40, 64, 2048, 8192, 70_000, 300_000, 5_000_000];

fn message(from: usize, to: usize, len: usize) -> Vec<u8> {
    let seed = from * 31 + to * 17 + len;
    (0..len).map(|at| (at * 7 + seed) as u8).collect()
}

#[test]
fn everybody_sends_to_everybody_in_every_form() {
    let name = "everybody_sends_to_everybody_in_every_form";
    in_jobs(name, &[1, 2, 5], |task| everybody(task).expect("messages"));
}

fn everybody(task: &Task) -> regatta::Result<()> {
    let world = task.world();
    let (me, size) = (world.rank(), world.size());
    for (tag, len) in (0u32..).zip(LENGTHS) {
        // Owned memory.
        let receive = |from| world.irecv(vec![0u8; len], from, tag);
        let receives: Vec<_> = (0..size).map(receive).collect::<Result<_, _>>()?;
        let send = |to| world.isend(message(me, to, len), to, tag);
        let sends: Vec<_> = (0..size).map(send).collect::<Result<_, _>>()?;
        for (from, (got, status)) in wait_all(receives)?.into_iter().enumerate() {
            assert_eq!((status.source, status.length), (Some(from), len));
            assert_eq!((status.tag, got == message(from, me, len)), (tag, true));
        }
        for (to, (sent, _)) in wait_all(sends)?.into_iter().enumerate() {
            assert!(sent == message(me, to, len), "the buffer came back");
        }
        // Borrowed memory.
        let gives: Vec<_> = (0..size).map(|to| message(me, to, len)).collect();
        let mut gets = vec![vec![0u8; len]; size];
        world.scope(|s| {
            for (from, get) in gets.iter_mut().enumerate() {
                s.recv(get, from, tag)?;
            }
            for (to, give) in gives.iter().enumerate() {
                s.ssend(give, to, tag)?;
            }
            Ok(())
        })?;
        assert!((0..size).all(|from| gets[from] == message(from, me, len)));
        // All send around the ring at once. With separate blocking calls this would deadlock.
        let (left, right) = ((me + size - 1) % size, (me + 1) % size);
        let mut got = vec![0u8; len];
        world.sendrecv(&gives[right], right, tag, &mut got, left, tag)?;
        assert!(got == message(left, me, len));
        // A receive of unknown length.
        let sent = world.isend(gives[right].clone(), right, tag)?;
        let (got, status) = world.recv_vec::<u8>(left, TagMatch::Any)?;
        assert_eq!((status.length, got == message(left, me, len)), (len, true));
        sent.wait()?;
        // In place.
        let mut loan = task.loan(len)?;
        loan.copy_from_slice(&gives[right]);
        world.send_loan(loan, right, tag)?;
        let (got, status) = world.recv_loan(left, tag)?;
        assert_eq!((status.length, *got == message(left, me, len)), (len, true));
        // A loan is received by an ordinary receive, and an ordinary message in place.
        world.send_loan(got, right, tag)?;
        let mut copied = vec![0u8; len];
        world.recv(&mut copied, left, tag)?;
        let sent = world.isend(copied, right, tag)?;
        let (got, _) = world.recv_loan(left, tag)?;
        // The message has been passed on three times by now.
        let (from, to) = ((me + 3 * size - 3) % size, (me + 2 * size - 2) % size);
        assert!(*got == message(from, to, len));
        sent.wait()?;
    }
    world.barrier()
}

#[test]
fn what_is_selected() {
    in_jobs("what_is_selected", &[1, 2, 5], |task| {
        selected(task).expect("messages");
    });
}

fn selected(task: &Task) -> regatta::Result<()> {
    let world = task.world();
    let (me, size) = (world.rank(), world.size());
    // Sends messages with tags 8 to 11 to each task, in this order.
    for to in 0..size {
        for tag in 8..12 {
            world.send(&[me as u32, tag], to, tag)?;
        }
    }
    let mut got = [0u32; 2];
    for from in 0..size {
        let odd = TagMatch::Masked { tag: 1, mask: 1 };
        assert_eq!(world.recv(&mut got, from, odd)?.tag, 9);
        assert_eq!(world.probe(from, 11)?.count::<u32>(), 2);
        assert_eq!(world.recv(&mut got, from, 11)?.tag, 11);
        assert_eq!(world.recv(&mut got, from, TagMatch::Any)?.tag, 8);
        assert_eq!(got, [from as u32, 8]);
    }
    let mut heard: Vec<u32> = vec![];
    for _ in 0..size {
        let status = world.recv(&mut got, Source::Any, 10)?;
        assert_eq!(status.source, Some(got[0] as usize));
        heard.push(got[0]);
    }
    heard.sort();
    assert!(heard.into_iter().eq(0..size as u32));
    assert_eq!(world.iprobe(Source::Any, TagMatch::Any)?, None);

    // No peer.
    world.send(&1u8, None, 3)?;
    let nobody = world.recv(&mut got, None, 3)?;
    assert_eq!((nobody.source, nobody.length), (None, 0));
    assert_eq!(world.recv_vec::<u8>(None, 3)?.0, []);
    assert_eq!(world.recv_loan(None, 3)?.0.len(), 0);

    // Groups keep messages apart, whatever their tags.
    let library = world.dup()?;
    world.send(&1u8, me, 5)?;
    library.send(&2u8, me, 5)?;
    assert_eq!(library.recv_vec::<u8>(Source::Any, TagMatch::Any)?.0, [2]);
    assert_eq!(world.recv_vec::<u8>(Source::Any, TagMatch::Any)?.0, [1]);
    assert_eq!(library.rank_of(world.tid_of(0)?)?, 0);
    assert!(world.rank_of(77).is_err());
    assert!(!world.path(size - 1)?.is_empty());
    world.barrier()
}

#[test]
fn a_message_too_long_is_an_error_and_the_front_is_kept() {
    let name = "a_message_too_long_is_an_error_and_the_front_is_kept";
    in_jobs(name, &[1, 2], |task| {
        let world = task.world();
        let peer = (world.rank() + 1) % world.size();
        for len in [10, 100_000] {
            let sent = world.isend(message(0, 0, len), peer, 1).expect("a send");
            let mut front = vec![0; len / 2];
            let error = world.recv(&mut front, peer, 1).unwrap_err();
            let truncated = ErrorKind::Truncated {
                length: len,
                capacity: len / 2,
            };
            assert_eq!(*error.kind(), truncated);
            assert!(front == message(0, 0, len)[..len / 2]);
            sent.wait().expect("it was sent");
        }
        world.send(&[0u8; 6], peer, 1).expect("a send");
        assert!(world.recv_vec::<u32>(peer, 1).is_err(), "6 bytes");
        assert_eq!(world.recv_vec::<u16>(peer, 1).expect("it stayed").0, [0; 3]);
    });
}

#[test]
fn views_of_any_shape() {
    in_jobs("views_of_any_shape", &[1, 2], |task| {
        let world = task.world();
        let peer = (world.rank() + 1) % world.size();
        for scale in [1, 40, 700] {
            let grid: Vec<u32> = (0..(9 * 11 * scale) as u32).collect();
            let (width, rows) = (11 * scale, 9);
            let shape = |start, block, count, stride| Shape {
                start,
                block,
                count,
                stride,
            };
            // (shape sent, shape received into)
            let cases = [
                (Shape::column(2, rows, width), Shape::row(3, rows)),
                (Shape::row(width, rows), Shape::column(0, rows, width)),
                (
                    shape(1, 3 * scale, rows, width),
                    shape(0, rows * scale, 3, 3 * width),
                ),
                (shape(0, 1, 5, 0), Shape::row(0, 5)),
                (Shape::row(5, 0), Shape::column(4, 0, 9)),
            ];
            for (from, into) in cases {
                let at = |shape: Shape| {
                    (0..shape.count).flat_map(move |k| {
                        (0..shape.block).map(move |i| shape.start + k * shape.stride + i)
                    })
                };
                let mut expected = vec![0; grid.len()];
                for (from, into) in at(from).zip(at(into)) {
                    expected[into] = grid[from];
                }
                let mut other = vec![0; grid.len()];
                let gives = View::new(&grid, from).expect("it fits");
                let mut gets = ViewMut::new(&mut other, into).expect("it fits");
                world
                    .sendrecv(&gives, peer, 1, &mut gets, peer, 1)
                    .expect("an exchange");
                assert!(other == expected, "{from:?} to {into:?}");
            }
            // One message from several views.
            let column = |k| Shape::column(k, rows, width);
            let gives = [7, 2].map(|k| View::new(&grid, column(k)).expect("it fits"));
            let mut other = vec![0; grid.len()];
            let mut gets = ViewMut::split(&mut other, [column(1), column(0)]).expect("apart");
            world
                .scope(|s| {
                    s.recv(&mut gets[..], peer, 1)?;
                    s.send(&gives[..], peer, 1)?;
                    Ok(())
                })
                .expect("an exchange");
            assert!((0..rows).all(|row| other[row * width + 1] == grid[row * width + 7]));
            assert!((0..rows).all(|row| other[row * width] == grid[row * width + 2]));
        }
    });
}

#[test]
fn what_a_panic_takes_back_is_not_sent_from_memory_that_is_gone() {
    let name = "what_a_panic_takes_back_is_not_sent_from_memory_that_is_gone";
    in_jobs(name, &[2], |task| {
        let world = task.world();
        const MAX_MESSAGES: u32 = 3000;
        let len = |number: u32| [40, 1500, 9000][number as usize % 3];
        // Task 1 waits outside Regatta until all sends have been started and abandoned.
        let name = |rank| {
            let name = format!("regatta-test-{}-{rank}", parent_id());
            SocketAddr::from_abstract_name(name).expect("a name")
        };
        let mine = UnixDatagram::bind_addr(&name(world.rank())).expect("a socket");
        world.barrier().expect("both sockets");
        if world.rank() == 0 {
            let of = |number| message(0, number as usize, len(number));
            let mut messages: Vec<_> = (0..MAX_MESSAGES).map(of).collect();
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                world.scope(|s| -> regatta::Result<()> {
                    // The buffers have no room for all of them: the rest stays in this memory.
                    for (number, message) in (0..).zip(&messages) {
                        s.send(message, 1, number)?;
                    }
                    panic!("on purpose");
                })
            }));
            assert!(panicked.is_err());
            messages.iter_mut().for_each(|message| message.fill(0xff));
            mine.send_to_addr(b"go on", &name(1)).expect("a word");
            world.send(&[0u8; 0], 1, MAX_MESSAGES).expect("the end");
        } else {
            mine.recv(&mut [0; 8]).expect("a word");
            let mut heard = 0;
            loop {
                let (got, status) = world.recv_vec::<u8>(0, TagMatch::Any).expect("a message");
                if status.tag == MAX_MESSAGES {
                    break;
                }
                assert!(got == message(0, status.tag as usize, len(status.tag)));
                heard += 1;
            }
            assert!(
                (1..MAX_MESSAGES).contains(&heard),
                "there was room for {heard}"
            );
        }
        world.barrier().expect("a barrier");
    });
}

#[test]
fn any_of_many() {
    in_jobs("any_of_many", &[2, 5], |task| {
        let world = task.world();
        let (me, size) = (world.rank(), world.size());
        if me > 0 {
            for tag in 0..50 {
                world.send(&[me, tag as usize], 0, tag).expect("a send");
            }
            return world.barrier().expect("a barrier");
        }
        let mut requests = vec![];
        for from in (1..size).rev() {
            for tag in (0..50).rev() {
                requests.push(world.irecv(vec![0; 2], from, tag).expect("a receive"));
            }
        }
        let mut got = vec![];
        while !requests.is_empty() {
            let request = requests.swap_remove(wait_any(&requests).expect("one"));
            got.push(request.wait().expect("a message").0);
        }
        got.sort();
        let expected = (1..size).flat_map(|from| (0..50).map(move |tag| vec![from, tag]));
        assert!(got.into_iter().eq(expected));
        world.barrier().expect("a barrier");
        assert!(wait_any::<regatta::Request<'_, ()>>([]).is_err());
    });
}

#[test]
fn a_dead_peer_is_an_error_that_names_it() {
    // A task that ends in a panic does not leave the job properly, so the job fails and reports this.
    if std::env::var_os("REGATTA_TEST_DIES").is_some() {
        let task = regatta::init().expect("a job");
        let world = task.world();
        if world.rank() == 1 {
            panic!("on purpose");
        }
        let error = world.recv(&mut 0u8, 1, 0).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Dead(1));
        assert!(error.to_string().contains("task 1 (pid "), "{error}");
        let (flag, result) = world.agree(6).expect("this task takes part");
        assert_eq!(flag, 6);
        assert_eq!(*result.unwrap_err().kind(), ErrorKind::Dead(1));
        assert_eq!(world.dead().expect("a group"), [1]);
        assert_eq!(world.acknowledge_dead().expect("a group"), 1);
        assert_eq!(world.agree(5).expect("this task takes part").0, 5);
        assert!(!world.is_revoked().expect("a group"));
        world.revoke().expect("a group");
        assert!(world.is_revoked().expect("a group"));
        let error = world.recv(&mut 0u8, 0, 0).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Revoked);
        let rest = world.shrink().expect("the survivors");
        assert_eq!((rest.rank(), rest.size()), (0, 1));
        println!("\n<survived>");
        // not a skip: this is a task of the job that the rest of the test starts
        return;
    }
    let exe = std::env::current_exe().expect("this program");
    let output = std::process::Command::new(support::regatta())
        .args(["run", "--timeout", "60", "-n", "2"])
        .arg(exe)
        .args(["--exact", "a_dead_peer_is_an_error_that_names_it"])
        .args(["--nocapture", "--test-threads=1"])
        .env("REGATTA_TEST_DIES", "1")
        .output()
        .expect("the command regatta");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("<survived>"), "{output:?}");
    assert_eq!(output.status.code(), Some(101), "the panic's status");
}
