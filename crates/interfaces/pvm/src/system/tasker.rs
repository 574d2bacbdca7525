//! The tasker: the task that starts the tasks of its host (`pvm_reg_tasker`).
//!
//! Regatta sends the task, as a message to itself, what is to be started (`rg_start` in `regatta.h`). The library
//! converts it to PVM's `SM_STTASK`. The tasker reports an end with `SM_TASKX`, which the library passes to Regatta.

use std::ffi::c_int;

use super::{TASKER, tag};
use crate::life::enrol;
use crate::message::{Body, Reader, codes, error};
use crate::notify::told;
use crate::spawn_environment::{SpawnEnvironment, VARIABLE};
use crate::trace::{self, calls, traced};
use crate::{contexts, mailbox, rg, tid};

/// Context of messages from daemons to tasks that take over their work.
const CONTEXT: i32 = 0;

#[unsafe(no_mangle)]
extern "C" fn pvm_reg_tasker() -> c_int {
    let registered = || -> Result<(), i32> {
        enrol()?;
        contexts::note(CONTEXT);
        let channel = contexts::channel(CONTEXT, tag::STTASK);
        // SAFETY: the call takes plain values only.
        match unsafe { rg::rg_start_others(tag::STTASK & i32::MAX, channel) } {
            rg::OK => mailbox::take_role(TASKER.name),
            rg::ERR_EXISTS => Err(codes::ALREADY),
            rg::ERR_HOST => Err(codes::NOT_IMPL),
            _ => Err(codes::SYS_ERR),
        }
    };
    let registered = || error::result("pvm_reg_tasker", registered().err().unwrap_or(0));
    traced(calls::REG_TASKER, || [], registered, trace::code)
}

/// A task to be started.
#[derive(Debug, PartialEq, Eq)]
pub struct Start<'a> {
    task: i32,
    ticket: i32,
    program: &'a [u8],
    arguments: Vec<&'a [u8]>,
    environment: Vec<&'a [u8]>,
}

/// Number of words before the texts.
const WORDS: usize = 6;

/// Parses a request. Returns `None` if these bytes are not a request.
pub fn read(bytes: &[u8]) -> Option<Start<'_>> {
    let (head, texts) = bytes.split_at_checked(4 * WORDS)?;
    let word = |at: usize| Some(u32::from_ne_bytes(*head.get(4 * at..)?.first_chunk()?));
    if word(0)? != rg::START_MARK {
        return None;
    }
    let mut texts = texts.strip_suffix(b"\0")?.split(|&byte| byte == 0);
    let program = texts.next()?;
    let (arguments, environment) = (word(3)? as usize, word(4)? as usize);
    let all: Vec<&[u8]> = texts.collect();
    if arguments.checked_add(environment)? != all.len() {
        return None;
    }
    let (arguments, environment) = all.split_at(arguments);
    Some(Start {
        task: word(1)? as i32,
        ticket: word(2)? as i32,
        program,
        arguments: arguments.to_vec(),
        environment: environment.to_vec(),
    })
}

/// Makes PVM's message of a request.
pub fn started(start: &Start) -> Result<c_int, i32> {
    let task = tid::of_task(start.task).ok_or(codes::SYS_ERR)?;
    let inherited = start.environment.iter().find_map(|variable| {
        let text = std::str::from_utf8(variable).ok()?;
        SpawnEnvironment::read(text.strip_prefix(VARIABLE)?.strip_prefix('=')?)
    });
    let inherited = inherited.unwrap_or_default();
    let mut body = Body::new()
        .int(task)
        .int(inherited.flags)
        .string(start.program)
        .int(start.arguments.len() as i32 + 1)
        .string(start.program);
    for argument in &start.arguments {
        body = body.string(argument);
    }
    let own = [
        format!("PVMEPID={}", start.ticket),
        format!("PVMCTX={:#x}", inherited.context),
    ];
    // The spawner sets these two for tasks that the daemon starts, with the process id. A tasker gets a ticket instead.
    let replaced = |variable: &&[u8]| {
        let mut names = own.iter().filter_map(|own| own.split_once('='));
        names.any(|(name, _)| {
            let rest = variable.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.first() == Some(&b'='))
        })
    };
    let others = start.environment.iter().copied();
    let others: Vec<&[u8]> = others.filter(|variable| !replaced(variable)).collect();
    body = body.int((own.len() + others.len()) as i32);
    let own = own.iter().map(|variable| variable.as_bytes());
    for variable in own.chain(others) {
        body = body.string(variable);
    }
    told(body, tag::STTASK, CONTEXT)
}

/// Handles the tasker's report that a task has ended.
pub fn has_ended(body: &mut Reader) -> Result<(), i32> {
    let (task, status) =
        (|| Some((tid::task(body.int()?)?, body.int()?)))().ok_or(codes::BAD_MSG)?;
    // SAFETY: the call takes plain numbers. An error about an unknown task is ignored, as a daemon does.
    unsafe { rg::rg_has_ended(task, status) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: [u32; WORDS], texts: &[u8]) -> Vec<u8> {
        let head = words.iter().flat_map(|word| word.to_ne_bytes());
        head.chain(texts.iter().copied()).collect()
    }

    #[test]
    fn a_start_is_read_and_nonsense_is_none() {
        let bytes = said([rg::START_MARK, 7, 9, 2, 1, 0], b"/bin/x\0\0two\0A=1\0");
        let start = read(&bytes).expect("a start");
        assert_eq!((start.task, start.ticket), (7, 9));
        assert_eq!(start.program, b"/bin/x");
        assert_eq!(start.arguments, [&b""[..], b"two"]);
        assert_eq!(start.environment, [b"A=1"]);
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None, "{end}");
        }
        let many = said([rg::START_MARK, 7, 9, u32::MAX, u32::MAX, 0], b"/bin/x\0");
        assert_eq!(read(&many), None);
        assert_eq!(read(&said([0; WORDS], b"\0")), None);
    }
}
