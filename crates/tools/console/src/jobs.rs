//! Jobs: tasks whose output goes to the console, with all tasks that they start.
//!
//! A job is over when each of its tasks has closed its output. The machine reports the start of a task before the end
//! of the task that has started it, so a job is never over too early.

use std::collections::BTreeMap;
use std::io::Write;

use crate::events::Event;
use crate::machine::{Host, Output};
use crate::tracing::{Heading, Now, Trace};

/// Running jobs.
#[derive(Default)]
pub struct Jobs {
    running: BTreeMap<i32, Job>,
    last: i32,
}

struct Job {
    tasks: BTreeMap<i32, Vec<u8>>,
    file: Option<Box<dyn Write>>,
    /// Whether its output is wanted, and not only its trace.
    heard: bool,
    trace: Option<Trace>,
}

impl Jobs {
    /// Begins a job whose output goes to a file, or to the console if there is none. Returns its number.
    pub fn begin(&mut self, file: Option<Box<dyn Write>>) -> i32 {
        self.last += 1;
        self.put(file, true, None)
    }

    /// Begins a traced job, whose output may be wanted as well. The tag of its events is the number after the returned
    /// one.
    pub fn begin_traced(&mut self, heard: bool, file: Option<Box<dyn Write>>, trace: Trace) -> i32 {
        self.last += 1;
        let number = self.put(file, heard, Some(trace));
        self.last += 1;
        number
    }

    fn put(&mut self, file: Option<Box<dyn Write>>, heard: bool, trace: Option<Trace>) -> i32 {
        let tasks = BTreeMap::new();
        let job = Job {
            tasks,
            file,
            heard,
            trace,
        };
        self.running.insert(self.last, job);
        self.last
    }

    /// Forgets a job of which no task was started.
    pub fn forget(&mut self, job: i32) {
        self.running.remove(&job);
    }

    /// Records a started task, which the machine may not have reported yet.
    pub fn started(&mut self, job: i32, tid: i32) {
        if let Some(job) = self.running.get_mut(&job) {
            job.tasks.entry(tid).or_default();
            if let Some(trace) = &mut job.trace {
                trace.started(tid);
            }
        }
    }

    /// Returns each job's displayed name and its tasks.
    pub fn list(&self) -> impl Iterator<Item = (String, Vec<i32>)> + '_ {
        self.running.iter().map(|(number, job)| {
            let kind = if job.trace.is_some() { 'T' } else { ' ' };
            let tasks = job.tasks.keys().copied().collect();
            (format!("{kind}{number}"), tasks)
        })
    }

    /// Begins the trace of a job. Returns its part for the console.
    pub fn begin_trace(&mut self, number: i32, heading: &Heading, hosts: &[Host]) -> Vec<u8> {
        let job = self.running.get_mut(&number);
        let trace = job.and_then(|job| job.trace.as_mut());
        trace.map_or_else(Vec::new, |trace| trace.begin(number, heading, hosts))
    }

    /// Handles an event of a traced job. Returns its part for the console.
    pub fn handle_event(&mut self, number: i32, event: &Event) -> Vec<u8> {
        let Some(job) = self.running.get_mut(&number) else {
            return Vec::new();
        };
        let trace = job.trace.as_mut();
        let mut told = trace.map_or_else(Vec::new, |trace| trace.handle_event(number, event));
        told.extend(self.finish(number));
        told
    }

    /// Removes the job if it is over. Returns the lines about its end.
    fn finish(&mut self, number: i32) -> Vec<u8> {
        let mut told = Vec::new();
        if let Some(job) = self.running.get_mut(&number).filter(|job| job.is_over()) {
            let flushed = job.file.as_mut().map_or(Ok(()), |file| file.flush());
            if let Err(error) = flushed {
                told.extend(
                    format!("[{number}] the output file was not written: {error}\n").into_bytes(),
                );
            }
            if let Some(trace) = &mut job.trace {
                told.extend(trace.end(number));
            }
            told.extend(format!("[{number}] finished\n").into_bytes());
            self.running.remove(&number);
        }
        told
    }

    /// Handles a notice about a task. Returns its part for the console.
    pub fn handle_output(&mut self, number: i32, tid: i32, what: Output, now: Now) -> Vec<u8> {
        let Some(job) = self.running.get_mut(&number) else {
            return Vec::new();
        };
        let (mut told, lines) = job.lines_of(number, tid, &what);
        if !job.heard {
            told.clear();
        }
        if let Some(file) = &mut job.file {
            if let Err(error) = file.write_all(&told) {
                told =
                    format!("[{number}] writing to the output file failed: {error}\n").into_bytes();
                job.file = None;
            } else {
                told.clear();
            }
        }
        if let Some(trace) = &mut job.trace {
            told.extend(trace.handle_output(number, tid, &what, &lines, now));
        }
        told.extend(self.finish(number));
        told
    }
}

impl Job {
    /// Returns the lines to show for a notice, and the complete lines that the task has written.
    fn lines_of(&mut self, number: i32, tid: i32, what: &Output) -> (Vec<u8>, Vec<String>) {
        let (mut told, mut lines) = (Vec::new(), Vec::new());
        let mut line = |text: &[u8]| {
            told.extend(format!("[{number}:t{tid:x}] ").into_bytes());
            told.extend_from_slice(text);
            if !text.ends_with(b"\n") {
                told.push(b'\n');
            }
        };
        match what {
            Output::Begun => {
                self.tasks.entry(tid).or_default();
            }
            Output::Text(text) => {
                let unfinished = self.tasks.entry(tid).or_default();
                unfinished.extend_from_slice(text);
                let whole = unfinished
                    .iter()
                    .rposition(|byte| *byte == b'\n')
                    .map_or(0, |end| end + 1);
                let text: Vec<u8> = unfinished.drain(..whole).collect();
                for part in text.split_inclusive(|byte| *byte == b'\n') {
                    line(part);
                    lines.push(plain(part));
                }
            }
            Output::End => {
                let unfinished = self.tasks.remove(&tid).unwrap_or_default();
                if !unfinished.is_empty() {
                    line(&unfinished);
                    lines.push(plain(&unfinished));
                }
                line(b"EOF");
            }
        }
        (told, lines)
    }

    fn is_over(&self) -> bool {
        self.tasks.is_empty() && self.trace.as_ref().is_none_or(Trace::is_over)
    }
}

/// Returns a line without its newline.
fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    const A: i32 = 0x40001;
    const B: i32 = 0x40002;

    fn shown(jobs: &mut Jobs, tid: i32, what: Output) -> String {
        String::from_utf8(jobs.handle_output(1, tid, what, (3, 4))).unwrap()
    }

    fn text(text: &str) -> Output {
        Output::Text(text.into())
    }

    #[test]
    fn each_line_has_its_job_and_its_task() {
        let mut jobs = Jobs::default();
        jobs.begin(None);
        shown(&mut jobs, A, Output::Begun);
        assert_eq!(
            shown(&mut jobs, A, text("one\ntwo\nth")),
            "[1:t40001] one\n[1:t40001] two\n"
        );
        assert_eq!(shown(&mut jobs, A, text("ree\n")), "[1:t40001] three\n");
        assert_eq!(shown(&mut jobs, A, text("rest")), "");
        assert_eq!(
            shown(&mut jobs, A, Output::End),
            "[1:t40001] rest\n[1:t40001] EOF\n[1] finished\n"
        );
    }

    #[test]
    fn a_job_is_over_when_those_its_tasks_have_started_are() {
        let mut jobs = Jobs::default();
        jobs.begin(None);
        shown(&mut jobs, A, Output::Begun);
        shown(&mut jobs, B, Output::Begun);
        assert_eq!(shown(&mut jobs, A, Output::End), "[1:t40001] EOF\n");
        assert_eq!(
            jobs.list().collect::<Vec<_>>(),
            [(" 1".to_owned(), vec![B])]
        );
        assert_eq!(
            shown(&mut jobs, B, Output::End),
            "[1:t40002] EOF\n[1] finished\n"
        );
        assert_eq!(jobs.list().count(), 0);
    }

    #[test]
    fn what_is_told_of_no_job_is_nobody_s_affair() {
        let mut jobs = Jobs::default();
        assert_eq!(shown(&mut jobs, A, text("x\n")), "");
        let first = jobs.begin(None);
        jobs.forget(first);
        assert_eq!(jobs.begin(None), 2);
    }

    #[derive(Clone, Default)]
    struct Paper(Rc<RefCell<Vec<u8>>>, bool);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.1 {
                return Err(std::io::Error::other("full"));
            }
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn output_for_a_file_goes_there_and_the_end_is_told_here() {
        let (mut jobs, paper) = (Jobs::default(), Paper::default());
        jobs.begin(Some(Box::new(paper.clone())));
        shown(&mut jobs, A, Output::Begun);
        assert_eq!(shown(&mut jobs, A, text("one\n")), "");
        assert_eq!(shown(&mut jobs, A, Output::End), "[1] finished\n");
        assert_eq!(*paper.0.borrow(), b"[1:t40001] one\n[1:t40001] EOF\n");
    }

    #[test]
    fn a_file_that_takes_no_more_is_told_once() {
        let mut jobs = Jobs::default();
        jobs.begin(Some(Box::new(Paper(Rc::default(), true))));
        shown(&mut jobs, A, Output::Begun);
        assert_eq!(
            shown(&mut jobs, A, text("one\n")),
            "[1] writing to the output file failed: full\n"
        );
        assert_eq!(shown(&mut jobs, A, text("two\n")), "[1:t40001] two\n");
    }
}
