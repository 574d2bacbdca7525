//! How much memory the control groups of this process leave it, and its host has left.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags};

/// A control group whose memory may be limited.
struct Group {
    /// The file with its limit, in bytes.
    limit: CString,
    /// The file with what it uses, in bytes.
    usage: CString,
    /// The file that says what that is.
    kinds: PathBuf,
}

impl Group {
    /// Returns the bytes of files that the kernel keeps in memory and drops when the group needs more.
    fn reclaimable(&self) -> u64 {
        let facts = std::fs::read_to_string(&self.kinds).unwrap_or_default();
        file_cache(&facts)
    }
}

/// Returns the bytes of files in memory that `memory.stat` tells of: with the prefix `total_`, as the older version has them for a group with those
/// below it, or without.
fn file_cache(facts: &str) -> u64 {
    let bytes = |name: &str| -> Option<u64> {
        let line = facts.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    let both = ["active_file ", "inactive_file "].map(|name| {
        let total = bytes(&format!("total_{name}"));
        total.or_else(|| bytes(name)).unwrap_or(0)
    });
    both[0].saturating_add(both[1])
}

/// Returns the bytes that the limits of this process's control groups leave, or `None` if there are no limits. If these are fewer than `wanted`, the
/// files that the kernel would drop from memory count as left. Reads two files of each group, three if little is left; which groups these are is looked
/// up once.
pub(crate) fn room(wanted: u64) -> Option<u64> {
    static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
    let groups = GROUPS.get_or_init(|| {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        groups_of(&own)
    });
    let rooms = groups.iter().filter_map(|group| {
        let limit = number(&group.limit)?;
        let used = number(&group.usage)?;
        let left = limit.saturating_sub(used);
        Some(match left < wanted {
            true => limit.saturating_sub(used.saturating_sub(group.reclaimable())),
            false => left,
        })
    });
    rooms.min()
}

/// Returns the bytes that can be had on this host before the system ends processes for want of memory, or `None` if the system does not tell.
pub(crate) fn left_on_host() -> Option<u64> {
    let facts = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = facts.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some((kib("MemAvailable:")? + kib("SwapFree:").unwrap_or(0)) << 10)
}

/// The groups that `/proc/self/cgroup` names, and those above them, of both versions.
fn groups_of(own: &str) -> Vec<Group> {
    let new = own.lines().find_map(|line| line.strip_prefix("0::"));
    let old = own
        .lines()
        .find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
    let new = new.map(|path| ("/sys/fs/cgroup", path, "memory.max", "memory.current"));
    let old = old.map(|path| {
        let (limit, usage) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
        ("/sys/fs/cgroup/memory", path, limit, usage)
    });
    let mut groups = Vec::new();
    for (root, path, limit, usage) in new.into_iter().chain(old) {
        let group = Path::new(root).join(path.trim_start_matches('/'));
        for group in group
            .ancestors()
            .take_while(|group| group.starts_with(root))
        {
            let file = |name| {
                let path = group.join(name).into_os_string().into_encoded_bytes();
                CString::new(path).ok()
            };
            if let (true, Some(limit), Some(usage)) =
                (group.join(limit).exists(), file(limit), file(usage))
            {
                let kinds = group.join("memory.stat");
                groups.push(Group {
                    limit,
                    usage,
                    kinds,
                });
            }
        }
    }
    groups
}

/// The number in a file; `None` if it says that there is no limit.
fn number(path: &CString) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    let mut text = [0; 32];
    let length = rustix::io::read(&file, &mut text).ok()?;
    std::str::from_utf8(&text[..length])
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_named_and_those_above_them() {
        let groups = groups_of("3:cpu:/a\n0::/\nnonsense\n");
        assert!(groups.len() <= 1, "the root has a limit in some containers");
        assert!(groups_of("").is_empty());
        assert!(groups_of("0::/../../etc\n5:memory:/no/such/group\n").len() <= 2);
    }

    #[test]
    fn files_that_can_be_dropped_are_counted_once() {
        let new = "anon 5\nfile 90\nshmem 20\ninactive_file 40\nactive_file 30\n";
        assert_eq!(file_cache(new), 70);
        let old = "inactive_file 4\nactive_file 3\ntotal_inactive_file 40\ntotal_active_file 30\n";
        assert_eq!(file_cache(old), 70);
        assert_eq!(file_cache("nonsense"), 0);
    }

    #[test]
    fn a_host_has_some_memory_left() {
        assert!(left_on_host().is_some_and(|left| (1 << 20..1 << 45).contains(&left)));
    }

    #[test]
    fn a_file_without_a_number_is_no_limit() {
        let file = |name: &str, text: &str| {
            let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            std::fs::write(&path, text).unwrap();
            let path_as_text = CString::new(path.to_str().unwrap()).unwrap();
            let number = number(&path_as_text);
            std::fs::remove_file(path).unwrap();
            number
        };
        assert_eq!(file("limit-a", "max\n"), None);
        assert_eq!(file("limit-b", "4096\n"), Some(4096));
        assert_eq!(file("limit-c", ""), None);
        assert_eq!(file("limit-d", &"9".repeat(64)), None);
    }
}
