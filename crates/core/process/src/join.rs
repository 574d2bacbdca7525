//! Becoming a task, and leaving.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use regatta_engine::{Engine, Error, Loans, Result, Settings};
use regatta_memory::biased::Refusal;
use regatta_memory::uncancelled::Uncancelled;
use regatta_segment::job::{Job, JobError, JoinToken};
use regatta_transport::footprint::Policy;
use regatta_transport::paths::Paths;
use rustc_hash::FxHashMap;

use crate::ancestors;
use crate::fork;
use crate::in_vain::InVain;
use crate::launcher_socket::Control;
use crate::pace::Pace;
use crate::state::{PROCESS, Process, enter, outside, refused};

/// Joins the job whose join token this process has, or creates a world of one. A second call does nothing.
pub fn init() -> Result<()> {
    init_or(true, join_without_token)
}

/// Joins the job whose join token this process has. If that token was used before, enters the job with this name instead; `start` says whether to
/// start that job if it does not exist. A second call does nothing.
pub fn enter_job(name: &str, start: bool) -> Result<()> {
    init_or(false, || match crate::step::find()? {
        Some(step) => crate::step::join(&step),
        None => crate::resident::join(name, start),
    })
}

fn init_or(again: bool, otherwise: impl FnOnce() -> Result<Joined>) -> Result<()> {
    let _whole = Uncancelled::begin();
    fork::watch();
    let joined = join(again, otherwise);
    if joined.is_err() {
        fork::unwatch();
    }
    joined
}

/// The join token in the environment was used. It is valid once: if a caller tries it `again`, joining fails with an error.
static USED: AtomicBool = AtomicBool::new(false);

fn join(again: bool, otherwise: impl FnOnce() -> Result<Joined>) -> Result<()> {
    let mut place = PROCESS.lock().map_err(refused)?;
    if place.is_some() {
        return Ok(());
    }
    let settings = settings()?;
    let mut is_apart = false;
    let Joined {
        job,
        rank,
        control,
        listener,
    } = match std::env::var(JoinToken::VARIABLE) {
        Ok(text) if !USED.swap(true, Ordering::Relaxed) || again => match join_with_token(&text) {
            // A program that a task has started by itself is not a task of the job.
            Err(_) if ancestors::include_task(JoinToken::VARIABLE, &text) => {
                is_apart = true;
                otherwise()?
            }
            joined => joined?,
        },
        _ => otherwise()?,
    };
    let world = job
        .membership(rank)
        .map_err(|corrupt| join_error(corrupt.into()))?;
    // Not a task of another launcher, which has other tasks beside it.
    let has_token = !is_apart && std::env::var_os(JoinToken::VARIABLE).is_some();
    let alone = control.is_none() && world.count == 1 && !has_token;
    job.keep_from_children();
    let job = Arc::new(job);
    let paths = open_paths(&job, rank, listener)?;
    crate::abort::joined(rank);
    regatta_connection::last_thread::notice_end();
    *place = Some(Process {
        first: world.first,
        pace: Pace::new(job.tasks_per_core(), rank, adapts()?),
        fencing: paths.fencing(),
        engine: Engine::new(paths, settings),
        job,
        callbacks: FxHashMap::default(),
        next_callback: 1,
        in_vain: InVain::default(),
        last_source: 0,
        given_up: FxHashMap::default(),
        heard: 0,
        copies: 0,
        spare: Vec::new(),
        control: control.map(Control::new),
        alone,
    });
    Ok(())
}

/// Creates this task's transport according to the settings in the environment.
fn open_paths(job: &Arc<Job>, rank: u32, listener: Option<OwnedFd>) -> Result<Paths> {
    let mut paths = Paths::new(job.clone(), rank, listener).map_err(|error| {
        Error::System(format!(
            "connections to other hosts cannot be set up: {error}"
        ))
    })?;
    paths.finish_by(crate::state::go_on);
    paths.choose_footprints(footprints()?);
    if let Some(records) = records_per_key()? {
        paths.change_keys_after(records);
    }
    if wants_bypasses()? {
        paths.want_bypasses();
    }
    Ok(paths)
}

/// Returns whether this process is between init and finalize.
pub fn is_initialized() -> bool {
    match PROCESS.lock() {
        Ok(place) => place.is_some(),
        // The interrupted call has the engine.
        Err(Refusal::Reentered) => true,
        Err(Refusal::Shut) => false,
    }
}

/// Leaves in good order. Pending requests are dropped; messages that were sent can still be received. If this returns [`Error::Launcher`], the task
/// has left, too.
pub fn finalize() -> Result<()> {
    let _whole = Uncancelled::begin();
    // Without a launcher no process reports which tasks have ended, so do not wait for any.
    let launcher = match crate::leave::deliver_all(true) {
        Err(error @ Error::Launcher(_)) => Err(error),
        delivered => Ok(delivered?),
    };
    // From here on no thread can enter: a call after the other tasks know that this one has left could undo the leaving.
    let taken = PROCESS.lock().map_err(refused)?.take();
    let mut process = taken.ok_or_else(outside)?;
    let me = process.engine.me();
    process.fencing.ask_senders(false);
    process.engine.leave();
    process.engine.transport_mut().let_go_of_loans();
    process.job.leave(me);
    crate::step::leave();
    crate::notice::stop(&process.job, me);
    // The memory is unmapped when the last thread that holds the job has dropped it.
    drop(process);
    fork::unwatch();
    launcher
}

/// Sets whether this task may end in any way, as if it had left at this call. If `may_end`, waits until everything sent so far has arrived.
/// Otherwise the task must leave again before it ends.
pub fn set_may_end(may_end: bool) -> Result<()> {
    let _whole = Uncancelled::begin();
    if may_end {
        crate::leave::deliver_all(false)?;
    }
    let held = enter()?;
    held.job.set_may_end(held.engine.me(), may_end);
    Ok(())
}

pub(crate) fn join_error(error: JobError) -> Error {
    match error {
        JobError::Memory(_) => Error::Memory(error.to_string()),
        JobError::Version { .. } => Error::Version(error.to_string()),
        _ => Error::Launcher(error.to_string()),
    }
}

/// Returns a duplicate of an inherited descriptor that is closed by exec, since a child of this task is not this task.
fn inherited(number: i32) -> Result<OwnedFd> {
    // SAFETY: fcntl accepts any descriptor number; the result is checked.
    let fd = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if fd < 0 {
        let what = format!("descriptor {number} is not open");
        return Err(join_error(JobError::JoinToken(what)));
    }
    // SAFETY: the descriptor was just duplicated, so no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn close_on_exec(number: i32) {
    // SAFETY: this accesses no memory. No other code in this process uses the inherited descriptor, and setting the flag would do no harm if it did.
    unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// The job and the connections of a process that has become a task.
pub(crate) struct Joined {
    pub(crate) job: Job,
    pub(crate) rank: u32,
    pub(crate) control: Option<OwnedFd>,
    pub(crate) listener: Option<OwnedFd>,
}

fn join_with_token(text: &str) -> Result<Joined> {
    if let Some((name, ticket)) = crate::resident::ticket(text) {
        return crate::resident::join_with_ticket(name, Some(ticket), false);
    }
    let token = JoinToken::parse(text).map_err(join_error)?;
    let control = token.control.map(inherited).transpose()?;
    let listener = token.listener.map(inherited).transpose()?;
    let job = Job::join(inherited(token.fd)?, token).map_err(join_error)?;
    let numbers = [Some(token.fd), token.control, token.listener];
    numbers.into_iter().flatten().for_each(close_on_exec);
    Ok(Joined {
        job,
        rank: token.rank,
        control,
        listener,
    })
}

/// Joins without a token of Regatta: alone, or as a task of another launcher that is supported.
fn join_without_token() -> Result<Joined> {
    if !may_be_alone()? {
        if let Some(found) = regatta_foreign::of_several(&regatta_foreign::environment) {
            return Err(Error::Launcher(found.sentence()));
        }
        if let Some(step) = crate::step::find()? {
            return crate::step::join(&step);
        }
    }
    let job = Job::create(1).map_err(join_error)?;
    job.join_alone().map_err(join_error)?;
    Ok(Joined {
        job,
        rank: 0,
        control: None,
        listener: None,
    })
}

/// Returns whether the user allows a process of another launcher to be a world of one.
fn may_be_alone() -> Result<bool> {
    match std::env::var(regatta_foreign::SINGLETON).as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("refuse") => Ok(false),
        Ok("allow") => Ok(true),
        other => Err(Error::Argument(format!(
            "REGATTA_SINGLETON={:?} is not valid; write refuse (the default) or allow: it decides whether a process that another launcher started may run alone",
            other.unwrap_or("not text")
        ))),
    }
}

fn settings() -> Result<Settings> {
    let mut settings = Settings::default();
    if let Ok(text) = std::env::var("REGATTA_BUFFER") {
        settings.buffer = bytes(&text).ok_or_else(|| {
            Error::Argument(format!(
                "REGATTA_BUFFER={text:?} is not a size; write for example 64M or 1G"
            ))
        })?;
    }
    Ok(settings)
}

/// Returns whether the task detects other programs on its core. If not, it assumes that the core is its own.
fn adapts() -> Result<bool> {
    match std::env::var("REGATTA_WAIT").as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("adapt") => Ok(true),
        Ok("spin") => Ok(false),
        other => Err(Error::Argument(format!(
            "REGATTA_WAIT={:?} is not valid; write adapt (the default), or spin if each task has a core of its own",
            other.unwrap_or("not text")
        ))),
    }
}

/// Returns how much shared memory the paths on this host rotate over.
fn footprints() -> Result<Policy> {
    match std::env::var("REGATTA_FOOTPRINT").as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("learn") => Ok(Policy::Learn),
        Ok("narrow") => Ok(Policy::Narrow),
        Ok("wide") => Ok(Policy::Wide),
        Ok("non-temporal") => Ok(Policy::NonTemporal),
        other => Err(Error::Argument(format!(
            "REGATTA_FOOTPRINT={:?} is not valid; write learn (the default), narrow, wide or non-temporal",
            other.unwrap_or("not text")
        ))),
    }
}

/// Returns whether small messages to other hosts may bypass TCP/IP where possible.
fn wants_bypasses() -> Result<bool> {
    match std::env::var("REGATTA_BYPASS").as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("use") => Ok(true),
        Ok("off") => Ok(false),
        other => Err(Error::Argument(format!(
            "REGATTA_BYPASS={:?} is not valid; write use (the default) or off: it decides whether small messages to other hosts may bypass TCP/IP",
            other.unwrap_or("not text")
        ))),
    }
}

/// Returns the number of records after which an encrypted connection changes its keys. `None` for the maximum that a key may seal.
fn records_per_key() -> Result<Option<u64>> {
    let Ok(text) = std::env::var("REGATTA_RECORDS_PER_KEY") else {
        return Ok(None);
    };
    let records = text.trim().parse().map_err(|_| {
        Error::Argument(format!(
            "REGATTA_RECORDS_PER_KEY={text:?} is not a number of records; write for example 1000000"
        ))
    })?;
    Ok(Some(records))
}

/// Parses a size with an optional suffix k, m or g.
fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, shift) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 10),
        'm' | 'M' => (&text[..text.len() - 1], 20),
        'g' | 'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes() {
        assert_eq!(bytes("64M"), Some(64 << 20));
        assert_eq!(bytes("100"), Some(100));
        assert_eq!(bytes("1g"), Some(1 << 30));
        assert_eq!(bytes("x"), None);
        assert_eq!(bytes(""), None);
        assert_eq!(bytes("99999999999999999999G"), None);
    }
}
