//! The context of the numbers: the environments with their settings, the machine, and the rules.

use super::appearance::{self, LIMIT, Look};
use super::page;
use super::text::{date, digits, duration, html};
use crate::collect::UNSTEADY;
use crate::duet::ratio::TIE;
use crate::results::{Environment, Machine, Results};

/// Returns the section of versions and settings.
pub fn environments(results: &Results, looks: &[Look]) -> String {
    let body: String = results
        .environments
        .iter()
        .map(|environment| one(environment, looks))
        .collect();
    let lead = "<p>The same program text ran on all of them. A setting is listed if it differs from the library's own \
                default.</p>\n";
    page::section(
        "environments",
        "Environments",
        &format!("{lead}<div class=\"cards\">\n{body}</div>\n"),
    )
}

fn one(environment: &Environment, looks: &[Look]) -> String {
    let look = looks.iter().find(|look| look.name == environment.name);
    let (label, color) = look.map_or(("", "gray"), |look| (look.label.as_str(), look.color));
    let settings: String = environment
        .settings
        .iter()
        .map(|s| {
            let why: Vec<String> = [&s.when, &s.reason]
                .into_iter()
                .filter(|t| !t.is_empty())
                .map(|t| html(t))
                .collect();
            format!(
                "<li><code>{}</code><span class=\"sub\">{}</span></li>",
                html(&s.setting),
                why.join("; ")
            )
        })
        .collect();
    let settings = match (settings.is_empty(), environment.name == LIMIT) {
        (false, _) => format!("<ul>{settings}</ul>"),
        (true, true) => {
            "<p class=\"sub\">What the hardware allows, without a message-passing library.</p>"
                .into()
        }
        (true, false) => "<p class=\"sub\">No setting changed.</p>".into(),
    };
    let library = if environment.library.is_empty() {
        String::new()
    } else {
        format!(
            "<p class=\"path\"><code>{}</code></p>",
            html(&environment.library)
        )
    };
    let short = appearance::short(&environment.version);
    let told = match environment.version.as_str() {
        "" => String::new(),
        whole if Some(whole) == short => String::new(),
        whole => format!("<p class=\"sub\">{}</p>", html(whole)),
    };
    format!(
        "<div class=\"card\"><h3><i style=\"background:{color}\"></i>{} <small>{}</small></h3>{told}{library}{settings}</div>\n",
        html(label),
        html(short.unwrap_or_default()),
    )
}

/// Returns the known facts about the machine and the race, each with its name.
pub fn facts(machine: &Machine) -> Vec<(&'static str, String)> {
    let known = |text: &str, otherwise: &str| {
        if text.is_empty() {
            otherwise.to_owned()
        } else {
            text.to_owned()
        }
    };
    let [low, high] = machine.line_ns_range.map(digits);
    let facts = [
        ("Processor", machine.cpu.clone()),
        ("Cores allowed", machine.cores.to_string()),
        ("Threads per core", machine.threads_per_core.to_string()),
        ("Caches", machine.caches.clone()),
        (
            "Memory",
            format!("{} GiB", digits(machine.memory as f64 / f64::from(1 << 30))),
        ),
        ("System", machine.system.clone()),
        ("Kernel", machine.kernel.clone()),
        (
            "Virtual machine",
            known(&machine.virtual_machine, "none, bare metal"),
        ),
        (
            "Frequency governor",
            known(&machine.governor, "not stated by the kernel"),
        ),
        ("Compiler", machine.compiler.clone()),
        (
            "Cache line, one way",
            format!(
                "{} ns, 5\u{a0}% to 95\u{a0}%: {low} to {high} ns",
                digits(machine.line_ns)
            ),
        ),
        (
            "Reading the clock",
            match machine.clock_ns {
                // Applications do not measure it.
                0.0 => String::new(),
                ns => format!("{} ns", digits(ns)),
            },
        ),
        ("Started", date(machine.started)),
        ("Lasted", duration(machine.seconds)),
        ("Command", known(&machine.command, "not recorded")),
        ("Seed of the order", machine.seed.to_string()),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    known.collect()
}

/// Returns the section of the machine and the conditions of the race.
pub fn machine(machine: &Machine) -> String {
    let rows: String = facts(machine)
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", html(value)))
        .collect();
    page::section(
        "machine",
        "Machine",
        &format!("<dl class=\"facts\">\n{rows}</dl>\n"),
    )
}

/// Returns the section of the measuring method.
pub fn method(results: &Results) -> String {
    let measured = || results.rows.iter().filter(|row| row.measured());
    let launches: Vec<u32> = measured().map(|row| row.launches).collect();
    let launches = match (launches.iter().min(), launches.iter().max()) {
        (Some(least), Some(most)) if least == most => format!("{least} for every point here"),
        (Some(least), Some(most)) => format!("{least} to {most} for each point here"),
        _ => "none here".into(),
    };
    let rules = [
        format!("The unit of repetition is a <em>launch</em> of the program ({launches}), because the placement of a process and its memory differs between launches. A point is the median over launches of each launch's median."),
        "Launches of different environments are interleaved in a shuffled order, so that a slow minute of the machine \
         affects all of them."
            .into(),
        format!(
            "The speed of the machine (the time of a cache line one way) is measured before and after every launch. Launches in which it was more than {}\u{a0}% off the race's median are omitted if enough others remain; the rows are flagged.",
            (UNSTEADY * 100.0).round()
        ),
        "Each launch warms up until its times are stable, then times batches of operations: the clock is read before and after a batch, not inside it, and the cost of reading it is subtracted."
            .into(),
        "Processes are pinned in the same way in every environment; payloads are checked.".into(),
        "Environments whose tasks can wait outside their library <em>take turns</em> (duet benchmarking): the jobs of all run at the same time, and each gets slices of some milliseconds, in a new random order in each round, while the others sleep; the median of a slice's parts is its time. The ratio of two slices of one round is the sample, so disturbances of the machine affect both; intervals come from a bootstrap over launches, and rounds within them."
            .into(),
        format!(
            "Intervals of medians are 95\u{a0}% confidence intervals by ranks, with no assumption about the distribution. A verdict goes by the \
             interval of the ratio: a <em>tie</em> if neither takes 5\u{a0}% longer ({:.3} to {}), ahead or behind if it lies on one side of 1, and \
             <em>not decided</em> otherwise.",
            TIE[0], TIE[1]
        ),
        "The 99\u{a0}% quantile is over all samples, where a sample is the mean of one batch.".into(),
        "No averages of ratios are shown: the verdict counts headlines, and a pattern shows the range of its points. The table marks missing and failed rows."
            .into(),
        "<em>limit</em> is an upper bound measured in the same race: a cache line sent back and forth between two cores, and copies of memory."
            .into(),
        "Bandwidth is the size over the time one way. Lines connect sizes, never numbers of tasks. A message of 0 bytes is shown separately at the left of the logarithmic axis."
            .into(),
        "The papers' points are drawn as printed, in the units of today; a word is 4 bytes. They were measured on other \
         machines, by other methods: they show the progress of the field and prove nothing about a library."
            .into(),
    ];
    let rules: String = rules
        .iter()
        .map(|rule| format!("<li>{rule}</li>\n"))
        .collect();
    page::section(
        "method",
        "Method",
        &format!("<ul class=\"rules\">\n{rules}</ul>\n"),
    )
}
