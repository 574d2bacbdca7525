//! The library as the console's [`Machine`].

use std::time::{SystemTime, UNIX_EPOCH};

use crate::events;
use crate::machine::{Answer, Class, Code, Entry, Host, Machine, Notice, Order, Output, Task};
use crate::options;

use super::calls::{self, Calls, Message};
use super::{HOST_ADDED_TAG, Library};

impl Machine for Library {
    fn tid(&self) -> i32 {
        self.tid
    }

    fn version(&self) -> String {
        self.calls.version()
    }

    fn explain(&self, code: Code) -> String {
        self.calls.explain(code)
    }

    fn hosts(&mut self) -> Answer<(i32, Vec<Host>)> {
        self.calls.hosts()
    }

    fn add(&mut self, lines: &[String]) -> Answer<Vec<Answer<i32>>> {
        let answers = self.calls.add(lines);
        let added = answers.iter().flatten().filter_map(|answer| answer.ok());
        self.own_additions.extend(added);
        answers
    }

    fn delete(&mut self, names: &[String]) -> Answer<Vec<Answer<()>>> {
        self.calls.delete(names)
    }

    fn host_state(&mut self, name: &str) -> Answer<()> {
        self.calls.host_state(name)
    }

    fn tasks(&mut self, host: i32) -> Answer<Vec<Task>> {
        self.calls.tasks(host)
    }

    fn task_state(&mut self, tid: i32) -> Answer<()> {
        self.calls.task_state(tid)
    }

    fn spawn(&mut self, order: &Order) -> Answer<Vec<Answer<i32>>> {
        // The output of a task without a job here goes to the machine's log.
        let (reader, tag) = order.job.map_or((0, 0), |job| (self.tid, job));
        self.calls.set_option(options::OUTPUT_TID, reader);
        self.calls.set_option(options::OUTPUT_CODE, tag);
        let (reader, tag) = match order.traced {
            true => (reader, tag + 1),
            false => (0, 0),
        };
        self.calls.set_option(options::TRACE_TID, reader);
        self.calls.set_option(options::TRACE_CODE, tag);
        if order.traced {
            self.traced.insert(tag, tag - 1);
        }
        self.calls
            .spawn(&order.program, order.flags, &order.place, order.count)
    }

    fn kill(&mut self, tid: i32) -> Answer<()> {
        self.calls.kill(tid)
    }

    fn signal(&mut self, tid: i32, signal: i32) -> Answer<()> {
        self.calls.signal(tid, signal)
    }

    fn lasting(&mut self) -> Answer<Vec<i32>> {
        self.calls.lasting()
    }

    fn halt(&mut self) -> Answer<()> {
        self.calls.halt()
    }

    fn names(&mut self, pattern: &str) -> Answer<Vec<Class>> {
        self.calls.names(pattern)
    }

    fn put(&mut self, name: &str, flags: i32, value: i32) -> Answer<i32> {
        self.calls.put(name, flags, value)
    }

    fn forget(&mut self, name: &str, entry: Entry) -> Answer<()> {
        self.calls.forget(name, entry.index, entry.flags)
    }

    fn option(&mut self, option: i32) -> i32 {
        self.calls.option(option)
    }

    fn set_option(&mut self, option: i32, value: i32) -> i32 {
        self.calls.set_option(option, value)
    }

    fn set_trace_mask(&mut self, mask: &str) -> Answer<()> {
        self.calls.set_trace_mask(mask)
    }

    fn tickle(&mut self, words: &[i32]) -> Answer<Vec<i32>> {
        self.calls.tickle(words)
    }

    fn dump(&mut self) {
        calls::memory();
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    }

    fn set_variable(&mut self, name: &str, value: &str) {
        calls::set_variable(name, value);
    }

    fn now(&self) -> (i32, i32) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        (now.as_secs() as i32, now.subsec_micros() as i32)
    }

    fn news(&mut self) -> Option<Notice> {
        loop {
            if let Some(news) = self.waiting.pop_front() {
                return Some(news);
            }
            let message = match self.calls.receive() {
                Ok(message) => message?,
                Err(_) => return Some(Notice::Ended),
            };
            // A message that cannot be decoded is ignored: any task can send one to the console.
            if let Ok(Some(news)) = self.read(&message) {
                return Some(news);
            }
        }
    }
}

/// Codes used instead of a length in the machine's messages about tasks.
const NO_MORE: i32 = 0;
const BEGUN: [i32; 2] = [-1, -2];

impl Library {
    fn read(&mut self, message: &Message) -> Answer<Option<Notice>> {
        if message.tag == HOST_ADDED_TAG {
            let count = self.calls.number()?.max(0);
            let mut tids = (0..count)
                .map(|_| self.calls.number())
                .collect::<Answer<Vec<_>>>()?;
            tids.retain(|tid| !self.own_additions.contains(tid));
            return Ok(Some(Notice::Added(tids)).filter(|_| count > 0));
        }
        if let Some(&job) = self.traced.get(&message.tag) {
            let events = self.events.read(&mut Pieces {
                calls: &self.calls,
                length: message.length,
            });
            let news = events.into_iter().map(|event| Notice::Event { job, event });
            self.waiting.extend(news);
            return Ok(None);
        }
        let (tid, length) = (self.calls.number()?, self.calls.number()?);
        let what = match length {
            NO_MORE => Output::End,
            length if BEGUN.contains(&length) => Output::Begun,
            length => match usize::try_from(length) {
                Ok(length) if length <= message.length => Output::Text(self.calls.bytes(length)?),
                _ => return Ok(None),
            },
        };
        let job = message.tag;
        Ok(Some(Notice::Job { job, tid, what }))
    }
}

/// The contents of a message.
struct Pieces<'a> {
    calls: &'a Calls,
    length: usize,
}

impl events::Pieces for Pieces<'_> {
    fn number(&mut self) -> Answer<i32> {
        self.calls.number()
    }

    fn bytes(&mut self, count: usize) -> Answer<Vec<u8>> {
        match count <= self.length {
            true => self.calls.bytes(count),
            false => Err(Code::BAD_MESSAGE),
        }
    }
}
