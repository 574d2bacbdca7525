//! The other task: this test program, started again as a separate process.
//!
//! The parent makes the job and supervises the child as a launcher would. The child ends with the thread that started
//! it, and by an alarm if something hangs. The parent then notices its death, and the test fails.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use regatta_segment::job::{Cause, Job, JoinToken};

use super::traffic::{Counts, Mix, Plan, Traffic};

/// Environment variable with the child's plan.
const PLAN: &str = "REGATTA_TEST_PLAN";
/// Longer than any of these tests takes.
const ALARM_SECONDS: u32 = 120;

/// An event of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Stopped,
    Ended(Cause),
}

/// A job of two tasks: this process is task 0 and the child is task 1.
pub struct Pair {
    pub traffic: Traffic,
    pub news: Receiver<News>,
    child: Child,
    counts: u64,
    watch: Option<JoinHandle<()>>,
}

impl Pair {
    /// Starts the child. `test` is the name of the test that calls [`be_the_child`].
    pub fn start(plan: Plan, test: &str) -> Pair {
        let job = Arc::new(Job::create(2).unwrap());
        let place = || job.segment().allocate(size_of::<Counts>(), 64).unwrap();
        let (mine, counts) = (place(), place());
        // SAFETY: `dup` returns a new descriptor, which nothing else owns; children inherit it.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::dup(job.fd().as_raw_fd())) };
        let token = JoinToken {
            fd: fd.as_raw_fd(),
            ..JoinToken::handed(1, 2)
        };
        let Plan {
            mix,
            count,
            window,
            seed,
        } = plan;
        let every = (mix == Mix::Every) as u64;
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(JoinToken::VARIABLE, token.to_string())
            .env(PLAN, format!("{every} {count} {window} {seed} {counts}"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (tell, news) = channel();
        let (watched, pid) = (job.clone(), child.id());
        job.announce(1, pid);
        job.join_alone().unwrap();
        Pair {
            traffic: Traffic::new(job, 0, plan, mine),
            news,
            child,
            counts,
            watch: Some(std::thread::spawn(move || watch(&watched, pid, &tell))),
        }
    }

    /// Sends the child a signal. The child's end must not have been reported.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the process is a child that has not been waited for; `watch` reports when it has.
        let sent = unsafe { libc::kill(self.child.id() as i32, signal) };
        assert_eq!(sent, 0);
    }

    /// Returns the child's counts: sends started, and sends complete without a gap.
    pub fn counts(&self) -> (u64, u64) {
        // SAFETY: `Counts` consists of atomics only.
        let counts: &Counts = unsafe { self.traffic.job.segment().words(self.counts) }.unwrap();
        (
            counts.started.load(Ordering::SeqCst),
            counts.completed.load(Ordering::SeqCst),
        )
    }

    /// Waits for the child's end. Returns the parent's traffic and how the child ended.
    pub fn end(mut self) -> (Traffic, Cause) {
        self.watch.take().unwrap().join().unwrap();
        let ended = self.news.try_iter().last();
        let Some(News::Ended(cause)) = ended else {
            panic!("the child's last news are {ended:?}");
        };
        (self.traffic, cause)
    }
}

fn watch(job: &Job, pid: u32, tell: &Sender<News>) {
    loop {
        let mut status = 0;
        // SAFETY: the call waits for a child of this process, and writes to a local variable.
        let waited = unsafe { libc::waitpid(pid as i32, &mut status, libc::WUNTRACED) };
        assert_eq!(waited, pid as i32);
        if libc::WIFSTOPPED(status) {
            let _ = tell.send(News::Stopped);
            continue;
        }
        let cause = match libc::WIFSIGNALED(status) {
            true => Cause::Signalled(libc::WTERMSIG(status)),
            false => Cause::Exited(libc::WEXITSTATUS(status)),
        };
        job.mark_dead(1, cause);
        let _ = tell.send(News::Ended(cause));
        return;
    }
}

/// Runs task 1 until all is done, and leaves, if this process is the child. Does nothing in the parent.
pub fn be_the_child() {
    let Ok(plan) = std::env::var(PLAN) else {
        return;
    };
    // SAFETY: both calls only take numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(ALARM_SECONDS);
    }
    let words: Vec<u64> = plan.split(' ').map(|word| word.parse().unwrap()).collect();
    let [every, count, window, seed, counts] = words[..] else {
        panic!("a plan has five numbers: {plan}");
    };
    let mix = if every == 1 { Mix::Every } else { Mix::Small };
    let window = window as usize;
    let plan = Plan {
        mix,
        count,
        window,
        seed,
    };
    let token = JoinToken::parse(&std::env::var(JoinToken::VARIABLE).unwrap()).unwrap();
    // SAFETY: the descriptor was inherited for this purpose, and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(token.fd) };
    let job = Arc::new(Job::join(fd, token).unwrap());
    let mut traffic = Traffic::new(job.clone(), 1, plan, counts);
    traffic.run(Traffic::is_over);
    assert_eq!((traffic.loss, traffic.received), (None, count));
    job.leave(1);
}
