//! The processors that tasks may use, and the jobs that share them.

use regatta_launch::{cgroup, cores};

use super::finding::Finding;
use super::{bytes, file};

const AREA: &str = "cores";

pub fn findings() -> Vec<Finding> {
    let allowed = cores::allowed();
    let mut findings = vec![Finding::info(AREA, "processor", model()), usable(&allowed)];
    findings.push(sharing(&allowed));
    findings.extend(caches(&allowed));
    findings.extend(governor(&allowed));
    findings
}

fn model() -> String {
    let text = file("/proc/cpuinfo").unwrap_or_default();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let name = value("model name")
        .or_else(|| value("Model"))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let guest =
        value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    if guest {
        format!("{name}, in a virtual machine: its cores may migrate, so repeat measurements")
    } else {
        name
    }
}

fn usable(allowed: &[usize]) -> Finding {
    let online =
        file("/sys/devices/system/cpu/online").and_then(|list| cores::parse_list(&list).ok());
    let online = online.map_or(allowed.len(), |list| list.len());
    let numbers = regatta_launch::words::numbers(allowed);
    let mut value = format!("{} of {online} (cores {numbers})", allowed.len());
    let quota = cgroup::processor_quota();
    if let Some(quota) = quota {
        value += &format!(", and a control group limits them to the time of {quota:.1}");
    }
    let usable = cores::usable();
    value += &format!(
        "; a job of up to {} a core for each task; in a larger job tasks share cores and wait by sleeping",
        if usable == 1 {
            "1 task has".to_owned()
        } else {
            format!("{usable} tasks has")
        }
    );
    match quota.filter(|&quota| quota < allowed.len() as f64) {
        Some(_) => Finding::slow(AREA, "usable", value).next(
            "raise the limit (containers: --cpus; services: CPUQuota=), or ask for fewer tasks",
        ),
        None if usable == 1 => Finding::slow(AREA, "usable", value)
            .next("give the machine a second core: tasks share the only one"),
        None => Finding::ok(AREA, "usable", value),
    }
}

fn sharing(allowed: &[usize]) -> Finding {
    let shared: Vec<usize> = allowed
        .iter()
        .copied()
        .filter(|&core| {
            cores::siblings(core)
                .iter()
                .any(|&other| other != core && allowed.contains(&other))
        })
        .collect();
    if shared.is_empty() {
        return Finding::ok(
            AREA,
            "hardware threads",
            "one per core: tasks do not share the units of a core",
        );
    }
    let value = format!(
        "cores {} come in pairs that share their units (SMT); tasks are placed on different pairs first",
        regatta_launch::words::numbers(&shared)
    );
    Finding::info(AREA, "hardware threads", value)
}

/// Returns the finding about the data caches of the first core, and whether all allowed cores share the last level.
fn caches(allowed: &[usize]) -> Option<Finding> {
    let first = allowed.first()?;
    let mut found = Vec::new();
    let mut together = None;
    for index in 0..8 {
        let cache = |name: &str| {
            file(format!(
                "/sys/devices/system/cpu/cpu{first}/cache/index{index}/{name}"
            ))
        };
        let (Some(level), Some(kind), Some(size)) = (cache("level"), cache("type"), cache("size"))
        else {
            continue;
        };
        if kind == "Instruction" {
            continue;
        }
        let kib = size
            .trim_end_matches('K')
            .parse::<u64>()
            .unwrap_or_default();
        found.push(format!("L{level} {}", bytes(kib << 10)));
        together = cache("shared_cpu_list").and_then(|list| cores::parse_list(&list).ok());
    }
    let all = together?
        .iter()
        .filter(|core| allowed.contains(core))
        .count()
        == allowed.len();
    let value = found.join(", ");
    Some(if all {
        Finding::ok(
            AREA,
            "caches",
            format!("{value}; all usable cores share the last level"),
        )
    } else {
        Finding::info(
            AREA,
            "caches",
            format!(
                "{value}; the usable cores do not all share the last level, so some pairs are slower"
            ),
        )
    })
}

fn governor(allowed: &[usize]) -> Option<Finding> {
    let governor = file(format!(
        "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor",
        allowed.first()?
    ))?;
    Some(if governor == "powersave" {
        Finding::slow(
            AREA,
            "frequency",
            "governor powersave: the first messages after a pause are slow",
        )
        .next("cpupower frequency-set -g performance (as root)")
    } else {
        Finding::info(AREA, "frequency", format!("governor {governor}"))
    })
}
