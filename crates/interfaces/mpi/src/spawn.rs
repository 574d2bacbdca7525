//! Starting processes as tasks of the engine. Processes that are started together share one MPI_COMM_WORLD, whatever
//! commands they run.

use std::ffi::{CStr, CString, c_char, c_int};

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator::{self, Communicator, LeaderExchange, Made, internal_messages};
use crate::error::{Error, Result};
use crate::info::Hints;

/// A command, and the number of processes to run it.
pub struct Command {
    /// The program.
    pub program: CString,
    /// Its arguments.
    pub arguments: Vec<CString>,
    /// Maximum number of processes.
    pub count: c_int,
    /// The hints on where and how to start it.
    pub hints: Hints,
}

/// The started tasks, the index of the command of each, and an error code for each process that was requested.
#[derive(Default)]
struct Started {
    tasks: Vec<c_int>,
    applications: Vec<c_int>,
    codes: Vec<c_int>,
    /// The error if fewer processes were started than required.
    failed: Option<Error>,
}

/// Starts processes for a communicator. Only the process with rank `root` has the commands. Any process may pass the
/// error of an invalid argument instead; then all fail. Returns an error code for each process to be started, even if
/// the call fails, and the intercommunicator with the started processes.
pub fn spawn(
    comm: &Communicator,
    root: c_int,
    given: Result<Vec<Command>>,
) -> (Vec<c_int>, Result<Made>) {
    let mut codes = Vec::new();
    let (given, commands) = match given {
        Ok(commands) => (Ok(()), commands),
        Err(error) => (Err(error), Vec::new()),
    };
    let count: usize = commands.iter().map(|it| it.count.max(0) as usize).sum();
    let made = communicator::connect(comm, root, given, || {
        let started = start_all(&commands);
        codes = started.codes;
        if let Some(error) = started.failed {
            started.tasks.iter().for_each(|&task| kill(task));
            codes.fill(ERR_SPAWN);
            let reason = error.text();
            let text = format!("not all processes could be started, so none was: {reason}");
            return Err(Error::new(ERR_SPAWN, text));
        }
        let told = tell(&started.tasks, &comm.local, &started.applications);
        if told.is_err() {
            started.tasks.iter().for_each(|&task| kill(task));
            codes.fill(ERR_SPAWN);
        }
        told.map(|()| LeaderExchange::fresh(started.tasks))
    });
    if comm.rank == root && codes.len() < count {
        codes.resize(count, ERR_SPAWN);
    }
    (share(comm, root, codes), made)
}

/// Distributes the codes to all processes.
fn share(comm: &Communicator, root: c_int, codes: Vec<c_int>) -> Vec<c_int> {
    internal_messages::broadcast(comm.group, root, codes).unwrap_or_default()
}

fn kill(task: c_int) {
    // SAFETY: the call takes a number and no pointers.
    unsafe { rg::rg_kill(task) };
}

fn start_all(commands: &[Command]) -> Started {
    let mut all = Started::default();
    for (command, application) in commands.iter().zip(0..) {
        start(command, application, &mut all);
    }
    all
}

/// Returns the minimum number of processes that the hint `soft` allows: a list of numbers and of ranges a:b or a:b:c.
fn least(hints: &Hints, count: c_int) -> c_int {
    let Some(soft) = hints.text(c"soft") else {
        return count;
    };
    let firsts = soft.split(',').filter_map(|range| {
        let ends = range.split(':').take(2);
        ends.filter_map(|end| end.trim().parse::<c_int>().ok())
            .min()
    });
    firsts.min().map_or(count, |least| least.clamp(0, count))
}

/// Returns whether a name that the program passes refers to this host, whatever its name in the job is.
fn is_own(host: &CStr) -> bool {
    let mut own: [c_char; MAX_PROCESSOR_NAME as usize] = [0; MAX_PROCESSOR_NAME as usize];
    // SAFETY: the length excludes the last byte of the array, which stays 0.
    unsafe { libc::gethostname(own.as_mut_ptr(), own.len() - 1) };
    // SAFETY: the array is NUL-terminated.
    let own = unsafe { CStr::from_ptr(own.as_ptr()) };
    [c"localhost", c"127.0.0.1", c"::1", own].contains(&host)
}

fn start(command: &Command, application: c_int, all: &mut Started) {
    let hints = &command.hints;
    let mut arguments: Vec<*const c_char> =
        command.arguments.iter().map(|it| it.as_ptr()).collect();
    arguments.push(std::ptr::null());
    // SAFETY: the call has no arguments and no preconditions.
    let own = unsafe { rg::rg_tid() };
    let variable = CString::new(format!("{}={own}", communicator::PARENT_VARIABLE));
    let variable = variable.unwrap_or_default();
    let environment = [variable.as_ptr(), std::ptr::null()];
    let pointer = |key: &CStr| hints.get(key).map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all-zero bytes are a valid value: numbers, and pointers that may be null.
    let mut options: rg::SpawnOptions = unsafe { std::mem::zeroed() };
    options.host = match hints.get(c"host") {
        Some(host) if is_own(host) => c".".as_ptr(),
        _ => pointer(c"host"),
    };
    options.search = pointer(c"path");
    options.architecture = pointer(c"arch");
    options.directory = pointer(c"wdir");
    options.environment = environment.as_ptr();
    let count = command.count.max(0);
    let mut tasks = vec![0; count as usize];
    let mut started = 0;
    // SAFETY: all texts are NUL-terminated and outlive the call, and the array has `count` elements.
    let code = unsafe {
        rg::rg_spawn(
            command.program.as_ptr(),
            arguments.as_ptr().cast(),
            &options,
            count,
            tasks.as_mut_ptr(),
            &mut started,
        )
    };
    let started = started.clamp(0, count);
    if started < least(hints, count) {
        let reason = Error::of_engine(code);
        all.failed = all.failed.take().or(Some(reason));
    }
    tasks.truncate(started as usize);
    all.tasks.append(&mut tasks);
    let before = all.codes.len();
    all.codes.resize(before + started as usize, SUCCESS);
    all.codes.resize(before + count as usize, ERR_SPAWN);
    all.applications.resize(all.tasks.len(), application);
}

/// Sends each started process its MPI_COMM_WORLD, its parents, and the index of its command.
fn tell(tasks: &[c_int], parents: &[c_int], applications: &[c_int]) -> Result {
    for (&task, &application) in tasks.iter().zip(applications) {
        let words = communicator::parent_message(tasks, parents, application);
        internal_messages::send(
            internal_messages::CHANNEL,
            task,
            communicator::PARENT_TAG,
            &words,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_hints_allow_fewer_processes() {
        let mut hints = Hints::default();
        assert_eq!(least(&hints, 4), 4);
        hints.set(c"soft", c"2:4, 8");
        assert_eq!(least(&hints, 4), 2);
        hints.set(c"soft", c"9");
        assert_eq!(least(&hints, 4), 4);
    }
}
