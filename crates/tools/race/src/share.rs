//! The race's share of the processors, beside other programs on the machine.
//!
//! A neighbour that is always busy takes half of a core from a task on that core, in pieces of milliseconds. That says
//! nothing about a library, and does not affect all libraries alike: one that yields while it waits gives the neighbour
//! more time than one that sleeps. Linux does not treat all launchers alike either: it shares processors between
//! sessions first, and Hydra gives each task a session of its own.
//!
//! Therefore the race enters a group of the kernel's `cpu` controller with all processes that it starts. Within the
//! group all processes are equal, and the group has the maximum weight, so a neighbour gets about a hundredth. This
//! needs a controller of version 1 that this process may write to, as root may. Without it the race runs in its
//! original group. The new group is below the original one, so limits on that still apply.

use std::fs;
use std::path::{Path, PathBuf};

/// The weight of the group. A single program has the weight 1024.
const GREATEST: &str = "262144";
/// Prefix of the names of races' groups.
const BEGINNING: &str = "regatta-race-";
/// The list of a group's processes. Writing a process id to it moves that process into the group.
const PROCESSES: &str = "cgroup.procs";

/// The note in the results of a race that had a group.
pub const NOTE: &str = "the race and its programs were a group of processes with the greatest weight, so that other programs on this machine took about one percent of a core from them";

/// The race's group. Dropping it moves this process back and removes the group.
pub struct Share {
    before: PathBuf,
    group: PathBuf,
}

impl Share {
    /// Moves this process into a new group, which processes that it starts inherit. Returns `None` where that is not
    /// possible.
    pub fn take() -> Option<Share> {
        let before = here(
            &fs::read_to_string("/proc/self/mounts").ok()?,
            &fs::read_to_string("/proc/self/cgroup").ok()?,
        )?;
        remove_leftovers(&before);
        let group = before.join(format!("{BEGINNING}{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        // From here on, dropping `share` removes the group.
        let share = Share { before, group };
        fs::write(share.group.join("cpu.shares"), GREATEST).ok()?;
        enter(&share.group).ok()?;
        Some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // A group that still contains processes cannot be removed. The next race tries again.
        let _ = enter(&self.before);
        let _ = fs::remove_dir(&self.group);
    }
}

fn enter(group: &Path) -> std::io::Result<()> {
    fs::write(group.join(PROCESSES), std::process::id().to_string())
}

/// Returns the group of this process under the `cpu` controller, from the kernel's lists of mounts and of groups.
fn here(mounts: &str, groups: &str) -> Option<PathBuf> {
    let has_cpu = |list: &str| list.split(',').any(|one| one == "cpu");
    let mounted = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup" && has_cpu(options)).then_some(folder)
    })?;
    let group = groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        has_cpu(controllers).then_some(group)
    })?;
    Some(Path::new(mounted).join(group.trim_start_matches('/')))
}

/// Removes the groups of races that were killed. Only groups without processes can be removed.
fn remove_leftovers(before: &Path) {
    for entry in fs::read_dir(before).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(BEGINNING) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_cpu_controller_is_found() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n";
        let groups = "5:cpuset:/\n3:cpu,cpuacct:/docker/1\n0::/\n";
        let found = here(mounts, groups);
        assert_eq!(found, Some(PathBuf::from("/sys/fs/cgroup/cpu/docker/1")));
    }

    #[test]
    fn a_machine_without_that_controller_has_no_such_group() {
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(here(mounts, "0::/user.slice\n"), None);
    }

    #[test]
    fn what_a_race_starts_is_in_its_group_and_nothing_is_left_of_that() {
        let said = || {
            let mut cat = std::process::Command::new("cat");
            let output = cat.arg("/proc/self/cgroup").output();
            String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
        };
        let before = said();
        if let Some(share) = Share::take() {
            let group = share.group.clone();
            assert!(said().contains(BEGINNING), "{}", said());
            drop(share);
            assert!(!group.exists());
        }
        assert_eq!(said(), before);
    }
}
