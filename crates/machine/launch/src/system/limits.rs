//! Limits of this host that a large job can reach, and how to raise each.

use regatta_program::Refusal;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::system::cgroup;

/// Number of tasks from which on limits are checked before starting. For fewer tasks, reading the limits costs more
/// than it gains.
const MIN_CHECKED_TASKS: u32 = 64;
/// Descriptors that the launcher needs in addition to those for the tasks' output.
const SPARE_FILES: u64 = 64;

/// Fails if this host cannot hold the job, before anything is started.
pub(crate) fn check(tasks: u32) -> Result<(), Refusal> {
    if tasks < MIN_CHECKED_TASKS {
        return Ok(());
    }
    check_by(tasks, &process_limits())
}

fn check_by(tasks: u32, limits: &[Limit]) -> Result<(), Refusal> {
    let wanted = u64::from(tasks);
    match limits.iter().find(|limit| limit.value < wanted) {
        None => Ok(()),
        Some(limit) => Err(Refusal::of_regatta(format!(
            "{tasks} tasks cannot run here: {} allows {} processes{}. Ask for fewer tasks, or raise it: {}",
            limit.name,
            limit.value,
            if limit.remaining { " more" } else { "" },
            limit.remedy
        ))),
    }
}

/// Returns the refusal for a process or thread other than a task that the kernel did not create. `what` is what cannot
/// be done without it.
pub fn no_process(what: &str, error: &std::io::Error) -> Refusal {
    let limits = process_limits();
    let nearest = limits.iter().min_by_key(|limit| limit.value);
    let again = error.raw_os_error() == Some(Errno::AGAIN.raw_os_error());
    Refusal::of_regatta(match nearest.filter(|_| again) {
        Some(limit) => format!(
            "{what}, because the kernel denies this user more processes or threads ({error}); the nearest limit is {}, which allows {}{}. End processes, or raise it: {}",
            limit.name,
            limit.value,
            if limit.remaining { " more" } else { "" },
            limit.remedy
        ),
        None => format!("{what}: {error}"),
    })
}

/// Returns a zeroed buffer of this size. Fails with a sentence instead of aborting if there is no memory, for example
/// under a limit on the address space.
pub(crate) fn buffer(bytes: usize) -> Result<Vec<u8>, Refusal> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| {
        Refusal::of_regatta(format!(
            "the launcher cannot allocate {bytes} bytes; raise the limit of its address space (ulimit -v), or end processes"
        ))
    })?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

/// Returns the refusal for the task that the kernel created no process for, after `started` others.
pub(crate) fn explain(errno: Errno, started: u32) -> Refusal {
    explain_by(errno, started, &process_limits())
}

fn explain_by(errno: Errno, started: u32, limits: &[Limit]) -> Refusal {
    let culprit = match errno {
        Errno::NOMEM => {
            return Refusal::of_regatta(format!(
                "after {started} tasks the kernel has no memory for another process; end processes, or raise the memory limit (`regatta doctor` shows it)"
            ));
        }
        // The strictest limit is the likely cause. If it counts all processes of the user, it can be reached although
        // its number is larger than that of this job.
        Errno::AGAIN => limits.iter().min_by_key(|limit| limit.value),
        _ => None,
    };
    Refusal::of_regatta(match culprit {
        Some(limit) => format!(
            "after {started} tasks the kernel denies more processes ({errno}); the nearest limit is {}, which allows {}{}. Ask for fewer tasks, or raise it: {}",
            limit.name,
            limit.value,
            if limit.remaining { " more" } else { "" },
            limit.remedy
        ),
        None => format!("after {started} tasks the kernel denies more processes: {errno}"),
    })
}

/// What the launcher needs open files for.
#[derive(Clone, Copy)]
pub(crate) enum Files {
    /// This many tasks whose output it labels or turns into JSON.
    Labelled(u32),
    /// This many tasks.
    Tasks(u32),
    /// This many hosts.
    Hosts(u32),
}

impl Files {
    /// Returns the number of tasks or hosts, their description, and what the user can do to need fewer.
    fn words(self) -> (u32, String, &'static str) {
        let count = crate::words::count;
        match self {
            Files::Labelled(tasks) => (
                tasks,
                format!("{} with labelled output", count(tasks as usize, "task")),
                "run without --label and --json",
            ),
            Files::Tasks(tasks) => (tasks, count(tasks as usize, "task"), "ask for fewer tasks"),
            Files::Hosts(hosts) => (hosts, count(hosts as usize, "host"), "name fewer hosts"),
        }
    }
}

/// Makes room for `each` descriptors of the launcher for each task or host. Returns the limit to restore for tasks, if
/// it had to be raised.
pub(crate) fn make_room(files: Files, each: u32) -> Result<Option<Rlimit>, Refusal> {
    let before = getrlimit(Resource::Nofile);
    let Some(needed) = wanted(files, each, &before)? else {
        return Ok(None);
    };
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(needed),
            ..before
        },
    )
    .map_err(|errno| {
        Refusal::of_regatta(format!(
            "the limit RLIMIT_NOFILE cannot be raised to {needed}: {errno}"
        ))
    })?;
    Ok(Some(before))
}

/// Returns the limit that must be set for `each` descriptors per task or host, or `None` if there is room.
fn wanted(files: Files, each: u32, before: &Rlimit) -> Result<Option<u64>, Refusal> {
    let (number, whose, less) = files.words();
    let needed = u64::from(each) * u64::from(number) + SPARE_FILES;
    if before.current.is_none_or(|limit| limit >= needed) {
        return Ok(None);
    }
    if before.maximum.is_some_and(|limit| limit < needed) {
        return Err(Refusal::of_regatta(format!(
            "{whose} need {needed} open files of the launcher, and the limit RLIMIT_NOFILE allows {}; {less}, or raise it: ulimit -Hn {needed} (as root), or LimitNOFILE= of the service",
            before.maximum.unwrap_or_default()
        )));
    }
    Ok(Some(needed))
}

struct Limit {
    name: String,
    value: u64,
    /// Whether `value` is the number of processes left, instead of the total.
    remaining: bool,
    remedy: String,
}

fn process_limits() -> Vec<Limit> {
    let mut limits = Vec::new();
    for (file, name) in [
        ("/proc/sys/kernel/pid_max", "kernel.pid_max"),
        ("/proc/sys/kernel/threads-max", "kernel.threads-max"),
    ] {
        if let Some(value) = std::fs::read_to_string(file)
            .ok()
            .and_then(|text| text.trim().parse().ok())
        {
            let remedy = format!("sysctl -w {name}=NUMBER (as root)");
            limits.push(Limit {
                name: format!("the kernel's setting {name}"),
                value,
                remaining: false,
                remedy,
            });
        }
    }
    if let Some((value, file)) = cgroup::processes_left() {
        let remedy = format!(
            "write a larger number into {} (containers: --pids-limit; services: TasksMax=)",
            file.display()
        );
        limits.push(Limit {
            name: "the control group's pids.max".to_owned(),
            value,
            remaining: true,
            remedy,
        });
    }
    // The limit per user does not apply to root.
    let per_user = getrlimit(Resource::Nproc).current;
    if let Some(value) = per_user.filter(|_| !rustix::process::geteuid().is_root()) {
        let remedy = "ulimit -u NUMBER, or /etc/security/limits.conf".to_owned();
        limits.push(Limit {
            name: "the limit RLIMIT_NPROC of this user".to_owned(),
            value,
            remaining: false,
            remedy,
        });
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(name: &str, value: u64, remaining: bool) -> Limit {
        Limit {
            name: name.to_owned(),
            value,
            remaining,
            remedy: format!("raise {name}"),
        }
    }

    #[test]
    fn a_job_that_just_fits_every_limit_is_not_refused() {
        let limits = [limit("pid_max", 100, false), limit("pids.max", 90, true)];
        assert_eq!(check_by(90, &limits), Ok(()));
        let refused = check_by(91, &limits).expect_err("one too many").sentence;
        assert!(
            refused.contains("pids.max allows 90 processes more")
                && refused.ends_with("raise pids.max"),
            "{refused}"
        );
    }

    #[test]
    fn the_strictest_limit_is_named_though_its_number_is_larger_than_the_jobs() {
        let limits = [limit("pid_max", 4000, false), limit("NPROC", 3000, false)];
        let said = explain_by(Errno::AGAIN, 7, &limits).sentence;
        assert!(
            said.contains("the nearest limit is NPROC, which allows 3000."),
            "{said}"
        );
    }

    #[test]
    fn no_limit_of_processes_is_named_where_memory_or_something_else_is_lacking() {
        let limits = [limit("NPROC", 1, false)];
        for (errno, word) in [
            (Errno::NOMEM, "memory"),
            (Errno::PERM, "denies more processes"),
        ] {
            let said = explain_by(errno, 7, &limits).sentence;
            assert!(said.contains(word) && !said.contains("NPROC"), "{said}");
        }
    }

    #[test]
    fn the_limit_of_open_files_is_raised_only_when_it_must_be_and_as_far_as_it_may() {
        let before = |current, maximum| Rlimit { current, maximum };
        let needed = 3 * 100 + SPARE_FILES;
        let wanted = |before| wanted(Files::Tasks(100), 3, &before);
        assert_eq!(wanted(before(Some(needed), Some(needed))), Ok(None));
        assert_eq!(wanted(before(None, None)), Ok(None));
        assert_eq!(
            wanted(before(Some(needed - 1), Some(needed))),
            Ok(Some(needed))
        );
        assert_eq!(wanted(before(Some(64), None)), Ok(Some(needed)));
        let refused = wanted(before(Some(64), Some(needed - 1)));
        let refused = refused.expect_err("more than may be had").sentence;
        assert!(
            refused.contains(&format!("ulimit -Hn {needed}")),
            "{refused}"
        );
    }
}
