//! The cores that this process may use, in the order in which tasks take them.

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::thread::CpuSet;
use std::os::fd::OwnedFd;

/// Returns the cores in the affinity mask (which a cpuset limits, too), ascending.
pub fn allowed() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(mask) => (0..CpuSet::MAX_CPU)
            .filter(|&core| mask.is_set(core))
            .collect(),
        // There are more processors than a mask holds: return no cores, so that nothing is bound.
        Err(_) => Vec::new(),
    }
}

/// Returns how many tasks can run at once: the number of allowed cores, or fewer if a control group limits the
/// processor time.
pub fn usable() -> usize {
    let cores = allowed().len().max(1);
    let quota = crate::system::cgroup::processor_quota()
        .map_or(cores, |quota| (quota.ceil() as usize).max(1));
    cores.min(quota)
}

/// Returns `cores` with the first hardware thread of every physical core before all second ones.
pub fn spread(cores: &[usize]) -> Vec<usize> {
    if std::fs::read_to_string("/sys/devices/system/cpu/smt/active")
        .is_ok_and(|text| text.trim() != "1")
    {
        return cores.to_vec();
    }
    let (mut order, second): (Vec<_>, Vec<_>) = cores.iter().partition(|&&core| {
        // The first of the siblings that may be used. The list ascends.
        siblings(core)
            .into_iter()
            .find(|sibling| cores.contains(sibling))
            .is_none_or(|first| first == core)
    });
    order.extend(second);
    order
}

/// Returns the hardware threads of the physical core that `core` belongs to, itself included, or an empty list if
/// unknown.
pub fn siblings(core: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    std::fs::read_to_string(file)
        .ok()
        .and_then(|text| parse_list(text.trim()).ok())
        .unwrap_or_default()
}

/// Parses a list of cores as the kernel and users write it: `0,2-5`.
pub fn parse_list(text: &str) -> Result<Vec<usize>, String> {
    let number = |part: &str| {
        part.parse::<usize>()
            .ok()
            .filter(|&core| core < CpuSet::MAX_CPU)
            .ok_or_else(|| format!("`{part}` is not the number of a core; write a list as 0,2-5"))
    };
    let mut cores = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => cores.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first {
                    return Err(format!("the range {part} ends before it begins"));
                }
                cores.extend(first..=last);
            }
        }
    }
    Ok(cores)
}

/// A job's claim to use a core, while this value (or its process) lives.
///
/// Without claims, two jobs started at the same time would both take the first cores and leave the rest idle. The claim
/// is an abstract socket name: it vanishes with its holder and needs no file. If another program takes it, the only
/// effect is that tasks are not bound.
#[derive(Debug)]
pub struct Claim {
    _socket: OwnedFd,
}

impl Claim {
    /// Claims `core`. Returns `None` if another job has claimed it.
    pub fn take(core: usize) -> Option<Self> {
        let address =
            SocketAddrUnix::new_abstract_name(format!("regatta/core/{core}").as_bytes()).ok()?;
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .ok()?;
        rustix::net::bind(&socket, &address).ok()?;
        Some(Self { _socket: socket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        assert_eq!(parse_list("0,2-4"), Ok(vec![0, 2, 3, 4]));
        assert_eq!(parse_list("7"), Ok(vec![7]));
        for wrong in ["", "a", "3-1", "1,,2", "99999", "1-"] {
            assert!(parse_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_core_is_claimed_once() {
        // Far above the cores of any host that runs this test.
        let claim = Claim::take(1_000_003).expect("a free name");
        assert!(Claim::take(1_000_003).is_none());
        drop(claim);
        assert!(Claim::take(1_000_003).is_some());
    }
}
