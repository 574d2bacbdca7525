//! The task that starts hosts: `pvm_reg_hoster`.
//!
//! Regatta sends the task, as a message to itself, the hosts to be started (`rg_start_hosts` in `regatta.h`). The
//! library converts it to PVM's `SM_STHOST`. The hoster answers with `SM_STHOSTACK`: for each host a line that the
//! command has printed, or the name of an error. The library passes this to Regatta. As on PVM a hoster runs on the
//! first host, answers with the wait id of the request, and unregisters by registering again. PVM's daemon would wait
//! forever after an invalid answer; here such hosts count as not started.

use std::ffi::{CString, c_char, c_int};

use super::{HOSTER, tag};
use crate::life::enrol;
use crate::message::{Body, Reader, codes, error};
use crate::notify::told_with;
use crate::trace::{self, calls, traced};
use crate::{contexts, mailbox, rg, tid};

/// Context of messages from daemons to tasks that take over their work.
const CONTEXT: i32 = 0;
/// Beginning of the line of a host that was started.
const STARTED: &[u8] = b"ddpro<";

#[unsafe(no_mangle)]
extern "C" fn pvm_reg_hoster() -> c_int {
    let registered = || -> Result<(), i32> {
        enrol()?;
        if let Some(index) = mailbox::role(HOSTER.name)? {
            // SAFETY: the call has no arguments.
            unsafe { rg::rg_end_hosting() };
            return mailbox::delete(HOSTER.name, index);
        }
        contexts::note(CONTEXT);
        let channel = contexts::channel(CONTEXT, tag::STHOST);
        // SAFETY: the call takes plain values only.
        match unsafe { rg::rg_begin_hosting(tag::STHOST & i32::MAX, channel) } {
            rg::OK => mailbox::take_role(HOSTER.name),
            rg::ERR_EXISTS => Err(codes::ALREADY),
            rg::ERR_HOST => Err(codes::HOSTER_NOT_MASTER),
            _ => Err(codes::SYS_ERR),
        }
    };
    let registered = || error::result("pvm_reg_hoster", registered().err().unwrap_or(0));
    traced(calls::REG_HOSTER, || [], registered, trace::code)
}

/// Hosts to be started.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    request: u32,
    hosts: Vec<Host<'a>>,
}

/// One of the hosts, with the texts for PVM's message.
#[derive(Debug, PartialEq, Eq)]
struct Host<'a> {
    number: i32,
    options: &'a [u8],
    login: &'a [u8],
    command: &'a [u8],
}

/// Number of words before the list of hosts.
const WORDS: usize = 4;
/// Number of texts per host.
const TEXTS: usize = 3;

/// Parses a request. Returns `None` if these bytes are not a request.
pub fn read(bytes: &[u8]) -> Option<Wanted<'_>> {
    let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(4 * at..)?.first_chunk()?));
    if word(0)? != rg::HOSTS_MARK {
        return None;
    }
    let count = word(2)? as usize;
    let front = WORDS.checked_add(count)?.checked_mul(4)?;
    let texts = bytes.get(front..)?.strip_suffix(b"\0")?;
    let texts: Vec<&[u8]> = texts.split(|&byte| byte == 0).collect();
    if texts.len() != count.checked_mul(TEXTS)? {
        return None;
    }
    let mut hosts = Vec::with_capacity(count);
    for (at, texts) in texts.chunks_exact(TEXTS).enumerate() {
        let &[options, login, command] = texts else {
            return None;
        };
        hosts.push(Host {
            number: word(WORDS + at)? as i32,
            options,
            login,
            command,
        });
    }
    Some(Wanted {
        request: word(1)?,
        hosts,
    })
}

/// Returns the wait id of a request. Requests count from 0, and 0 is the wait id of messages without one.
fn wid(request: u32) -> i32 {
    request.wrapping_add(1) as i32
}

/// Makes PVM's message of a request. The command is followed by one for Windows, which is empty, and by the name of the
/// virtual machine.
pub fn wanted(wanted: &Wanted) -> Result<c_int, i32> {
    let machine = std::env::var("PVM_VMID").unwrap_or_default();
    let mut body = Body::new().int(wanted.hosts.len() as i32);
    for host in &wanted.hosts {
        body = body
            .int(tid::of_daemon(host.number))
            .string(host.options)
            .string(host.login)
            .string(host.command)
            .string("")
            .string(&machine);
    }
    told_with(wid(wanted.request), body, tag::STHOST, CONTEXT)
}

/// Passes the hoster's report to Regatta, which refuses it from a task that is not the hoster or was not asked.
pub fn have_started(wid: i32, body: &mut Reader) -> Result<(), i32> {
    let answers = answers(body).unwrap_or_default();
    let (mut hosts, mut reasons, mut lines) = (Vec::new(), Vec::new(), Vec::<CString>::new());
    for (host, answer) in answers {
        hosts.push(host);
        reasons.push(reason(answer));
        lines.push(CString::new(answer).unwrap_or_default());
    }
    let texts: Vec<*const c_char> = lines.iter().map(|line| line.as_ptr()).collect();
    let request = (wid as u32).wrapping_sub(1);
    // SAFETY: all lists have `hosts.len()` entries, and the texts are NUL-terminated.
    unsafe {
        rg::rg_hosts_started(
            request,
            hosts.len() as c_int,
            hosts.as_ptr(),
            reasons.as_ptr(),
            texts.as_ptr(),
        )
    };
    Ok(())
}

/// Returns the numbers of the hosts and the answer for each.
fn answers<'a>(body: &mut Reader<'a>) -> Option<Vec<(i32, &'a [u8])>> {
    let count = body.count()?;
    let mut all = Vec::new();
    for _ in 0..count {
        let (daemon, answer) = (body.int()?, body.string()?);
        // Skip a tid that cannot be a host's.
        all.extend(tid::host(daemon).map(|host| (host, answer)));
    }
    Some(all)
}

/// Converts an answer to Regatta's code. An unknown text means that the host could not be started.
fn reason(answer: &[u8]) -> c_int {
    if answer.starts_with(STARTED) {
        return rg::OK;
    }
    match answer {
        b"PvmNoHost" => rg::ERR_HOST,
        b"PvmDupHost" => rg::ERR_EXISTS,
        b"PvmBadParam" => rg::ERR_ARGUMENT,
        b"PvmDenied" => rg::ERR_DENIED,
        b"PvmNoFile" => rg::ERR_PROGRAM,
        b"PvmNoMem" | b"PvmOutOfRes" => rg::ERR_MEMORY,
        b"PvmDSysErr" => rg::ERR_STATE,
        _ => rg::ERR_SYSTEM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[u32], texts: &[u8]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        words.chain(texts.iter().copied()).collect()
    }

    #[test]
    fn hosts_are_read_and_nonsense_is_none() {
        let mark = rg::HOSTS_MARK;
        let bytes = said(&[mark, 7, 2, 0, 3, 4], b"\0joe@b\0go\0ms\0c\0run it\0");
        let wanted = read(&bytes).expect("hosts");
        assert_eq!((wanted.request, wanted.hosts.len()), (7, 2));
        let second = &wanted.hosts[1];
        assert_eq!((second.number, second.options), (4, &b"ms"[..]));
        assert_eq!(wanted.hosts[0].login, b"joe@b");
        assert_eq!(second.command, b"run it");
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None, "{end}");
        }
        assert_eq!(read(&said(&[mark, 7, u32::MAX, 0], b"\0")), None);
        assert_eq!(read(&said(&[0; 6], b"\0\0\0\0\0\0")), None);
    }

    #[test]
    fn answers_are_lines_or_names_of_errors() {
        let line = "ddpro<2316> arch<LINUX64> key<x>";
        let body = Body::new().int(2).int(0x80000).string(line);
        let bytes = body.int(0xc0000).string("PvmDupHost").into_vec();
        let all = answers(&mut Reader::new(&bytes)).expect("answers");
        assert_eq!(all, [(1, line.as_bytes()), (2, &b"PvmDupHost"[..])]);
        assert_eq!(
            (reason(all[0].1), reason(all[1].1)),
            (rg::OK, rg::ERR_EXISTS)
        );
        assert_eq!(reason(b"what?"), rg::ERR_SYSTEM);
        assert_eq!(answers(&mut Reader::new(&bytes[..bytes.len() - 4])), None);
    }

    #[test]
    fn no_request_has_the_number_of_a_message_without_one() {
        assert_eq!((wid(0), wid(6)), (1, 7));
    }
}
