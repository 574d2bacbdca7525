//! The limits that control groups set for this process, in version 1 and version 2.
//!
//! A limit applies to a group and everything below it, so the strictest one up to the root counts.

use std::path::{Path, PathBuf};

/// A value of a control file in the group of this process or one above it.
#[derive(Debug)]
pub struct Value {
    /// The control file.
    pub file: PathBuf,
    /// Its text, without the newline.
    pub text: String,
}

/// Returns the processor time that this process may use, in processors, if it is limited.
pub fn processor_quota() -> Option<f64> {
    let version_2 = values(None, "cpu.max").into_iter().filter_map(|value| {
        let (quota, period) = value.text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    let version_1 = values(Some("cpu"), "cpu.cfs_quota_us")
        .into_iter()
        .filter_map(|value| {
            let quota = value
                .text
                .parse::<f64>()
                .ok()
                .filter(|&quota| quota > 0.0)?;
            let period =
                std::fs::read_to_string(value.file.with_file_name("cpu.cfs_period_us")).ok()?;
            Some(quota / period.trim().parse::<f64>().ok()?)
        });
    version_2.chain(version_1).min_by(f64::total_cmp)
}

/// Returns the bytes of memory that this process may use, if they are limited, and the control file with the limit.
pub fn memory_limit() -> Option<(u64, PathBuf)> {
    /// Version 1 writes "no limit" as a number near 2^63.
    const UNLIMITED: u64 = 1 << 60;
    smallest(
        values(None, "memory.max")
            .into_iter()
            .chain(values(Some("memory"), "memory.limit_in_bytes")),
    )
    .filter(|&(limit, _)| limit < UNLIMITED)
}

/// Returns the number of processes that this group may have, if it is limited, and the control file with the limit.
pub fn process_limit() -> Option<(u64, PathBuf)> {
    smallest(
        values(None, "pids.max")
            .into_iter()
            .chain(values(Some("pids"), "pids.max")),
    )
}

/// Returns how many more processes the strictest group allows now, and the file that limits them.
pub fn processes_left() -> Option<(u64, PathBuf)> {
    values(None, "pids.max")
        .into_iter()
        .chain(values(Some("pids"), "pids.max"))
        .filter_map(|value| {
            let limit: u64 = value.text.parse().ok()?;
            let used = std::fs::read_to_string(value.file.with_file_name("pids.current")).ok()?;
            Some((limit.saturating_sub(used.trim().parse().ok()?), value.file))
        })
        .min()
}

fn smallest(values: impl Iterator<Item = Value>) -> Option<(u64, PathBuf)> {
    values
        .filter_map(|value| Some((value.text.parse().ok()?, value.file)))
        .min()
}

/// Returns the values of `file` in the group of this process and those above it, in the hierarchy of `controller`
/// (version 1) or the unified one.
fn values(controller: Option<&str>, file: &str) -> Vec<Value> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some(group) = group_path(&groups, controller) else {
        return Vec::new();
    };
    let Some((root, top)) = mount_point(&mounts, controller) else {
        return Vec::new();
    };
    // In a container the mount may show only a part of the hierarchy: the path begins below its root, or is unknown.
    let below = group
        .strip_prefix(root)
        .unwrap_or(group)
        .trim_start_matches('/');
    let own = Path::new(top).join(below);
    own.ancestors()
        .take_while(|folder| folder.starts_with(top))
        .filter_map(|folder| {
            let file = folder.join(file);
            let text = std::fs::read_to_string(&file).ok()?.trim().to_owned();
            Some(Value { file, text })
        })
        .collect()
}

/// Returns the path of this process in `/proc/self/cgroup`, whose lines are `hierarchy:controllers:path`.
fn group_path<'t>(groups: &'t str, controller: Option<&str>) -> Option<&'t str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let ours = match controller {
            None => controllers.is_empty(),
            Some(name) => controllers.split(',').any(|controller| controller == name),
        };
        ours.then_some(path)
    })
}

/// Returns the root and the mount point of a hierarchy in `/proc/self/mountinfo`.
fn mount_point<'t>(mounts: &'t str, controller: Option<&str>) -> Option<(&'t str, &'t str)> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, place) = (mount.next()?, mount.next()?);
        let mut kind = kind.split(' ');
        let (name, _, options) = (kind.next()?, kind.next()?, kind.next()?);
        let ours = match controller {
            None => name == "cgroup2",
            Some(controller) => {
                name == "cgroup" && options.split(',').any(|option| option == controller)
            }
        };
        ours.then_some((root, place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_controller() {
        let groups = "4:memory:/job/7\n1:cpu,cpuacct:/\n0::/unified\n";
        assert_eq!(group_path(groups, Some("memory")), Some("/job/7"));
        assert_eq!(group_path(groups, Some("cpuacct")), Some("/"));
        assert_eq!(group_path(groups, None), Some("/unified"));
        assert_eq!(group_path(groups, Some("pids")), None);
    }

    #[test]
    fn a_mount_is_found_by_its_controller() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                      31 25 0:27 /box /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";
        assert_eq!(
            mount_point(mounts, None),
            Some(("/", "/sys/fs/cgroup/unified"))
        );
        assert_eq!(
            mount_point(mounts, Some("cpu")),
            Some(("/box", "/sys/fs/cgroup/cpu"))
        );
    }
}
