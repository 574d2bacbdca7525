//! A running program: its output is read while it runs, it can be typed to, and every wait has a time limit.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Time limit for a wait; longer than any step of an example takes.
const AWAIT_TIMEOUT: Duration = Duration::from_secs(180);

/// All output of a program so far.
#[derive(Default)]
pub struct Words {
    pub out: String,
    pub err: String,
    /// Number of streams (standard output and error) that have ended.
    ended: u32,
}

#[derive(Default)]
struct Heard {
    words: Mutex<Words>,
    changed: Condvar,
}

/// A running program, which is killed when dropped.
pub struct Running {
    child: Child,
    input: Option<ChildStdin>,
    heard: Arc<Heard>,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let heard = Arc::new(Heard::default());
        listen(child.stdout.take().expect("its output"), &heard, |words| {
            &mut words.out
        });
        listen(child.stderr.take().expect("its errors"), &heard, |words| {
            &mut words.err
        });
        Running {
            input: child.stdin.take(),
            child,
            heard,
        }
    }

    /// Types a text.
    pub fn type_in(&mut self, text: &str) {
        if let Some(input) = &mut self.input {
            // If the program has ended, the write fails. Its output is checked later.
            let _ = input
                .write_all(text.as_bytes())
                .and_then(|()| input.flush());
        }
    }

    /// Closes the program's standard input.
    pub fn hush(&mut self) {
        self.input = None;
    }

    /// Waits until the output satisfies `is_said`. Returns `false` after the time limit.
    pub fn has_printed(&self, is_said: impl Fn(&Words) -> bool) -> bool {
        self.has_printed_within(AWAIT_TIMEOUT, is_said)
    }

    /// Like `has_printed`, with this time limit.
    pub fn has_printed_within(&self, limit: Duration, is_said: impl Fn(&Words) -> bool) -> bool {
        let words = self
            .heard
            .words
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .heard
            .changed
            .wait_timeout_while(words, limit, |words| !is_said(words) && words.ended < 2);
        is_said(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Waits for the end of the program. Returns its status and its output, or `None` after the time limit.
    pub fn end(&mut self) -> Option<(Option<i32>, Words)> {
        if !self.has_printed(|words| words.ended == 2) {
            return None;
        }
        let status = self.child.wait().expect("its end");
        Some((status.code(), self.words()))
    }

    /// Returns the output so far.
    pub fn words(&self) -> Words {
        let words = self
            .heard
            .words
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Words {
            out: words.out.clone(),
            err: words.err.clone(),
            ended: words.ended,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Collects a stream's output until its end.
fn listen(
    mut from: impl Read + Send + 'static,
    heard: &Arc<Heard>,
    part: fn(&mut Words) -> &mut String,
) {
    let heard = Arc::clone(heard);
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        loop {
            let count = from.read(&mut bytes).unwrap_or(0);
            let mut words = heard.words.lock().unwrap_or_else(PoisonError::into_inner);
            part(&mut words).push_str(&String::from_utf8_lossy(&bytes[..count]));
            words.ended += u32::from(count == 0);
            heard.changed.notify_all();
            if count == 0 {
                return;
            }
        }
    });
}
