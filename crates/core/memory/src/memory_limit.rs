//! The memory that the control groups of this process leave to it, and that its host has left.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags};

/// A control group whose memory may be limited.
struct Group {
    /// Path of the file with its limit, in bytes.
    limit: CString,
    /// Path of the file with its usage, in bytes.
    usage: CString,
    /// Path of the file with the kinds of its usage.
    kinds: PathBuf,
}

impl Group {
    /// Returns the bytes of cached files, which the kernel drops when the group needs more memory.
    fn reclaimable(&self) -> u64 {
        let facts = std::fs::read_to_string(&self.kinds).unwrap_or_default();
        file_cache(&facts)
    }
}

/// Returns the bytes of cached files from a `memory.stat`: with the prefix `total_`, which in version 1 includes the
/// groups below, if there are such lines, otherwise without it.
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

/// Returns the bytes that the limits of this process's control groups leave, or `None` if there are no limits. If these
/// are fewer than `wanted`, cached files that the kernel would drop count as free. Reads two files of each group, or
/// three if little is left; the groups are determined only once.
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

/// Returns the bytes that can be allocated on this host before the kernel kills processes for lack of memory, or `None`
/// if that is unknown.
pub(crate) fn left_on_host() -> Option<u64> {
    let facts = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = facts.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some((kib("MemAvailable:")? + kib("SwapFree:").unwrap_or(0)) << 10)
}

/// Returns the groups in `/proc/self/cgroup` and their ancestors, of both versions.
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

/// Returns the number in a file, or `None` if it says that there is no limit.
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
