//! The memory and the number of processes that a job may have.

use regatta_launch::cgroup;
use rustix::process::{Resource, getrlimit};

use super::finding::Finding;
use super::{bytes, file};

const AREA: &str = "limits";
/// Limit on processes below which large jobs are likely to reach it.
const MIN_PROCESSES: u64 = 1024;

pub fn findings() -> Vec<Finding> {
    let mut findings = vec![memory()];
    findings.extend(address_space());
    findings.push(dev_shm());
    findings.push(locked());
    findings.push(processes());
    findings.push(files());
    findings
}

fn memory() -> Finding {
    let total = rustix::system::sysinfo();
    let physical = total.totalram as u64 * u64::from(total.mem_unit);
    match cgroup::memory_limit().filter(|&(limit, _)| limit < physical) {
        Some((limit, file)) => Finding::info(
            AREA,
            "memory",
            format!(
                "{} of {}, by the control group ({}); a job that needs more gets an error",
                bytes(limit),
                bytes(physical),
                file.display()
            ),
        ),
        None => Finding::ok(
            AREA,
            "memory",
            format!("{}, not limited by a control group", bytes(physical)),
        ),
    }
}

/// Returns a finding if the address space is limited: a segment maps address space that it may grow into.
fn address_space() -> Option<Finding> {
    let limit = getrlimit(Resource::As).current?;
    let value = format!(
        "RLIMIT_AS is {}; shared segments can grow less",
        bytes(limit)
    );
    Some(Finding::slow(AREA, "address space", value).next("ulimit -v unlimited"))
}

fn dev_shm() -> Finding {
    const NAME: &str = "/dev/shm";
    match rustix::fs::statvfs("/dev/shm") {
        Ok(status) => Finding::info(
            AREA,
            NAME,
            format!(
                "{}, not used: Regatta's memory is anonymous (other libraries need it)",
                bytes(status.f_blocks * status.f_frsize)
            ),
        ),
        Err(_) => Finding::info(
            AREA,
            NAME,
            "not mounted, not used: Regatta's memory is anonymous (other libraries need it)",
        ),
    }
}

fn locked() -> Finding {
    let limit = getrlimit(Resource::Memlock)
        .current
        .map_or("unlimited".to_owned(), bytes);
    Finding::info(
        AREA,
        "locked memory",
        format!("RLIMIT_MEMLOCK {limit}; nothing is locked"),
    )
}

fn processes() -> Finding {
    let number = |path: &str| file(path).and_then(|text| text.parse::<u64>().ok());
    let root = rustix::process::geteuid().is_root();
    let limits = [
        (
            number("/proc/sys/kernel/pid_max"),
            "kernel.pid_max".to_owned(),
            "sysctl -w kernel.pid_max=NUMBER (as root)",
        ),
        (
            getrlimit(Resource::Nproc).current.filter(|_| !root),
            "RLIMIT_NPROC".to_owned(),
            "ulimit -u NUMBER",
        ),
        (
            cgroup::process_limit().map(|(limit, _)| limit),
            "the control group's pids.max".to_owned(),
            "containers: --pids-limit; services: TasksMax=",
        ),
    ];
    let strictest = limits
        .into_iter()
        .filter_map(|(limit, name, next)| Some((limit?, name, next)))
        .min();
    match strictest {
        Some((limit, name, next)) if limit < MIN_PROCESSES => {
            Finding::slow(AREA, "processes", format!("at most {limit}, by {name}")).next(next)
        }
        Some((limit, name, _)) => {
            Finding::ok(AREA, "processes", format!("at most {limit}, by {name}"))
        }
        None => Finding::ok(AREA, "processes", "not limited"),
    }
}

fn files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let show = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    let value = format!(
        "RLIMIT_NOFILE {}, can be raised to {}; labelled output needs 2 per task",
        show(limit.current),
        show(limit.maximum)
    );
    Finding::ok(AREA, "open files", value)
}
