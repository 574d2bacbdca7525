//! The ways in which an operation completes or is abandoned, and its memory is returned or freed.
//!
//! All tests run in a world of one task, because they test this interface and not the transports. Each test has a group of
//! its own, because they share one world.

use std::future::{Future, IntoFuture};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use regatta::{ErrorKind, Group, Operation, Task};

fn alone(test: impl FnOnce(&Task, &Group)) {
    // Threads that make groups from the same group must do so one after the other.
    static ORDER: Mutex<()> = Mutex::new(());
    let task = regatta::init().expect("a world of one");
    let turn = ORDER
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let group = task.world().dup().expect("a group");
    drop(turn);
    test(&task, &group);
}

#[test]
fn a_scope_waits_for_what_was_not_waited_for() {
    alone(|_, group| {
        let mut numbers = [0; 4];
        let waited = group.scope(|s| {
            s.recv(&mut numbers, 0, 1)?;
            group.send(&[1, 2, 3, 4], 0, 1)
        });
        waited.expect("a message");
        assert_eq!(numbers, [1, 2, 3, 4]);
    });
}

#[test]
fn memory_comes_back_inside_the_scope() {
    alone(|_, group| {
        let mut buffer = vec![0; 2];
        let result = group.scope(|s| {
            let mut buffer = &mut buffer;
            for round in 0..100 {
                let request = s.recv(buffer, 0, 1)?;
                assert!(!request.test()?);
                group.send(&[round, round + 1], 0, 1)?;
                assert!(request.test()?);
                buffer = request.wait()?.0;
                assert_eq!(*buffer, [round, round + 1]);
            }
            Ok(())
        });
        result.expect("a hundred messages");
        assert_eq!(buffer, [99, 100]);
    });
}

#[test]
fn an_error_or_a_panic_ends_a_scope_without_its_messages() {
    alone(|_, group| {
        let mut never = [7; 3];
        let refused = group.scope(|s| {
            s.recv(&mut never, 0, 1)?;
            group.send(&1, 5, 1)
        });
        assert_eq!(*refused.unwrap_err().kind(), ErrorKind::Task(5));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            group.scope(|s| -> regatta::Result<()> {
                s.recv(&mut never, 0, 1)?;
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err());
        // Neither receive takes this message, as both were abandoned.
        group.send(&[1, 2, 3], 0, 1).expect("a send");
        assert_eq!(never, [7; 3]);
        assert_eq!(group.recv_vec::<i32>(0, 1).expect("it").0, [1, 2, 3]);
    });
}

#[test]
fn a_panic_in_a_scope_takes_back_what_was_not_sent() {
    alone(|_, group| {
        // A synchronous message to the task itself stays in this memory until it is received.
        let message = vec![3u8; 1000];
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            group.scope(|s| -> regatta::Result<()> {
                s.ssend(&message, 0, 1)?;
                assert!(group.iprobe(0, 1)?.is_some());
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(group.iprobe(0, 1).expect("a look"), None);
    });
}

#[test]
fn the_error_of_what_was_not_waited_for_is_the_scopes() {
    alone(|_, group| {
        let mut short = [0u8; 2];
        let result = group.scope(|s| {
            s.recv(&mut short, 0, 1)?;
            group.send(b"long", 0, 1)
        });
        let error = result.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Truncated { .. }));
        assert_eq!(&short, b"lo", "the front was kept");
        let result = group.scope(|s| {
            let request = s.recv(&mut short, 0, 1)?;
            assert!(request.cancel()?);
            assert_eq!(*request.wait().unwrap_err().kind(), ErrorKind::Cancelled);
            Ok(())
        });
        result.expect("the error was seen");
    });
}

#[test]
fn a_dropped_receive_takes_no_message() {
    alone(|_, group| {
        drop(group.irecv(vec![0u8; 8], 0, 1).expect("a receive"));
        let mut cancelled = group.irecv(vec![0u8; 8], 0, 1).expect("a receive");
        assert!(cancelled.cancel().expect("it has no message"));
        let error = cancelled.wait().unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Cancelled);
        group.send(&[9u8], 0, 1).expect("a send");
        assert_eq!(group.recv_vec::<u8>(0, 1).expect("it").0, [9]);
    });
}

#[test]
fn a_dropped_send_still_arrives() {
    alone(|_, group| {
        // For a synchronous message to the task itself the engine keeps the address of the memory.
        let message: Vec<u64> = (0..5000).collect();
        drop(group.issend(message.clone(), 0, 1).expect("a send"));
        let trash = vec![u64::MAX; 5000];
        assert!(group.recv_vec::<u64>(0, 1).expect("it").0 == message);
        drop(trash);
    });
}

#[test]
fn callbacks_are_called_once_with_the_buffer() {
    alone(|task, group| {
        let (sender, receiver) = mpsc::channel();
        let request = group.irecv(vec![0u8; 4], 0, 1).expect("a receive");
        let done = move |outcome: regatta::Result<(Vec<u8>, regatta::Status)>| {
            sender
                .send(outcome.expect("a message"))
                .expect("a listener");
        };
        request.on_complete(done).expect("a callback");
        task.progress().expect("progress");
        assert!(receiver.try_recv().is_err(), "too early");
        group.send(b"word", 0, 1).expect("a send");
        task.progress().expect("progress");
        let (word, status) = receiver.try_recv().expect("called");
        assert_eq!((&word[..], status.source), (&b"word"[..], Some(0)));
        assert!(receiver.recv().is_err(), "and gone");
    });
}

/// A panic in a callback must not unwind through the call that runs it, whose memory is borrowed. It aborts the process,
/// which here is this test program, started again.
#[test]
fn a_panic_in_a_callback_ends_the_process() {
    let exe = std::env::current_exe().expect("this program");
    let name = "a_panic_in_a_callback_ends_the_process";
    if std::env::var_os("REGATTA_TEST_PANICS").is_none() {
        let output = std::process::Command::new(exe)
            .args(["--exact", name, "--nocapture"])
            .env("REGATTA_TEST_PANICS", "1")
            .output()
            .expect("this program again");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("on purpose"), "{errors}");
        assert_eq!(output.status.signal(), Some(6), "{}", output.status);
        // not a skip: the process started above does the rest
        return;
    }
    alone(|task, group| {
        let request = group.irecv(vec![0u8; 4], 0, 1).expect("a receive");
        request
            .on_complete(|_| panic!("on purpose"))
            .expect("a callback");
        let _ = catch_unwind(AssertUnwindSafe(|| {
            group.send(&[1u8], 0, 1).expect("a send");
            task.progress().expect("progress");
        }));
        std::process::exit(3); // the panic came out
    });
}

#[test]
fn futures_complete_out_of_order() {
    alone(|task, group| {
        let text = task.block_on(async {
            let first = group.irecv(vec![0u8; 8], 0, 1)?;
            let second = group.irecv(vec![0u8; 8], 0, 2)?;
            group.send(b"two", 0, 2)?;
            let (two, status) = second.await?;
            group.send(&two[..status.length], 0, 1)?;
            let (one, status) = first.await?;
            Ok::<_, regatta::Error>(one[..status.length].to_vec())
        });
        assert_eq!(text.expect("both"), b"two");
    });
}

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn any_executor_is_woken_by_progress() {
    alone(|task, group| {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut context = Context::from_waker(&waker);
        let mut future = group
            .irecv(vec![0u8; 1], 0, 1)
            .expect("a receive")
            .into_future();
        assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        group.send(&[3u8], 0, 1).expect("a send");
        task.progress().expect("progress");
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        let Poll::Ready(Ok((message, _))) = Pin::new(&mut future).poll(&mut context) else {
            panic!("it was woken for nothing");
        };
        assert_eq!(message, [3]);
    });
}

#[test]
fn a_dropped_future_takes_no_message() {
    alone(|_, group| {
        let mut context = Context::from_waker(Waker::noop());
        let mut future = group
            .irecv(vec![0u8; 1], 0, 1)
            .expect("a receive")
            .into_future();
        assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        drop(future);
        group.send(&[4u8], 0, 1).expect("a send");
        assert_eq!(group.recv_vec::<u8>(0, 1).expect("it").0, [4]);
    });
}

#[test]
fn block_on_is_woken_by_another_thread() {
    alone(|task, _| {
        let (sender, receiver) = mpsc::channel::<Waker>();
        let woken = Arc::new(AtomicU32::new(0));
        let theirs = woken.clone();
        let thread = std::thread::spawn(move || {
            let waker = receiver.recv().expect("a waker");
            theirs.store(1, Ordering::SeqCst);
            waker.wake();
        });
        task.block_on(std::future::poll_fn(|context| {
            if woken.load(Ordering::SeqCst) == 1 {
                return Poll::Ready(());
            }
            let _ = sender.send(context.waker().clone());
            Poll::Pending
        }));
        thread.join().expect("a thread");
    });
}

#[test]
fn threads_share_a_group() {
    alone(|_, group| {
        std::thread::scope(|threads| {
            for tag in 0..4u32 {
                threads.spawn(move || {
                    for round in 0..500u32 {
                        group.send(&[tag, round], 0, tag).expect("a send");
                        let mut got = [0; 2];
                        group.recv(&mut got, 0, tag).expect("a message");
                        assert_eq!(got, [tag, round]);
                    }
                });
            }
        });
    });
}

#[test]
fn a_descriptor_tells_of_messages() {
    alone(|task, group| {
        let descriptor = task.descriptor().expect("a descriptor");
        assert!(
            std::fs::File::from(descriptor.as_fd().try_clone_to_owned().expect("a copy"))
                .metadata()
                .is_ok()
        );
        descriptor.clear().expect("cleared");
        group.barrier().expect("a barrier");
    });
}

#[test]
fn the_last_task_leaves() {
    let one = regatta::init().expect("a world of one");
    let two = regatta::init().expect("the same");
    one.finalize().expect("not the last");
    assert_eq!(two.world().size(), 1);
    two.world().send(&1u8, 0, 77).expect("still there");
    assert_eq!(two.world().recv_vec::<u8>(0, 77).expect("it").0, [1]);
    assert_eq!(two.tid().expect("an id"), 0);
}

#[test]
fn loans_are_elements() {
    alone(|task, _| {
        let mut loan = task.loan(17).expect("a loan");
        assert!(loan.elements::<u64>().is_err());
        loan.truncate(16);
        loan.elements_mut::<u64>().expect("two").fill(5);
        assert_eq!(loan.elements::<u64>().expect("two"), [5, 5]);
        assert!(task.loan(usize::MAX).is_err());
        let another = task.loan(16).expect("another");
        assert_ne!(another.as_ptr(), loan.as_ptr());
    });
}
