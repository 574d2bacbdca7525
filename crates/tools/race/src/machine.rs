//! The machine on which a race runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::results::Machine;
use crate::speed;

/// Returns a description of this machine. Fields of the race itself (start, seed, ...) keep their defaults.
pub fn describe(compiler: &Path) -> Machine {
    let cpuinfo = read("/proc/cpuinfo");
    Machine {
        cpu: value_of(&cpuinfo, "model name").unwrap_or_default(),
        cores: speed::allowed().len().max(1) as u32,
        threads_per_core: threads_per_core(),
        caches: caches(),
        memory: memory_total(&read("/proc/meminfo")),
        system: system_name(&read("/etc/os-release")),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        virtual_machine: virtual_machine(&cpuinfo),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .trim()
            .to_owned(),
        compiler: compiler_version(compiler),
        ..Machine::default()
    }
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the value after `name :` in a file of such lines.
fn value_of(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory_total(meminfo: &str) -> u64 {
    let kib = value_of(meminfo, "MemTotal").and_then(|v| v.split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn system_name(os_release: &str) -> String {
    let line = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.unwrap_or("unknown").trim_matches('"').to_owned()
}

fn threads_per_core() -> u32 {
    let siblings = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    list_length(siblings.trim()).max(1)
}

/// Returns the number of elements in a list like `0,4-5`.
fn list_length(list: &str) -> u32 {
    let lengths = list
        .split(',')
        .filter_map(|part| match part.split_once('-') {
            Some((first, last)) => Some(last.parse::<u32>().ok()? - first.parse::<u32>().ok()? + 1),
            None => part.parse::<u32>().ok().map(|_| 1),
        });
    lengths.sum()
}

fn caches() -> String {
    let mut found = Vec::new();
    for index in 0..8 {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let level = read(format!("{folder}/level")).trim().to_owned();
        let size = read(format!("{folder}/size")).trim().to_owned();
        let kind = match read(format!("{folder}/type")).trim() {
            "Instruction" | "" => continue,
            "Data" => "d",
            _ => "",
        };
        found.push(format!("L{level}{kind} {}", size.replace('K', " KiB")));
    }
    found.join(", ")
}

fn virtual_machine(cpuinfo: &str) -> String {
    let flagged =
        value_of(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"));
    let vendor = read("/sys/class/dmi/id/sys_vendor");
    match (flagged, vendor.trim()) {
        (false, _) => String::new(),
        (true, "") => "yes".to_owned(),
        (true, vendor) => vendor.to_owned(),
    }
}

fn compiler_version(compiler: &Path) -> String {
    let output = Command::new(compiler).arg("--version").output();
    let text = output
        .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
        .unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_counted() {
        assert_eq!(list_length("0"), 1);
        assert_eq!(list_length("0,4-5"), 3);
        assert_eq!(list_length(""), 0);
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_core() {
        let machine = describe(Path::new("cc"));
        assert!(!machine.kernel.is_empty());
        assert!(machine.cores >= 1);
    }
}
