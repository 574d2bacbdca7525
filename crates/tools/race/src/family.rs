//! Tasks that start others and hear of their ends: the operations `spawn` and `notify`.
//!
//! One task is launched and starts the others itself, so these are launches of their own: the number of tasks
//! is how many are started (`spawn`), or how many there are with the watcher (`notify`).

use anyhow::{Result, bail};

use crate::discover::Competitor;
use crate::network::Network;
use crate::plan::{Effort, Wishes};
use crate::settings::Family;

/// One task starts so many others, until each has joined and answered.
pub const SPAWN: &str = "spawn";
/// A watcher hears of the death of a task.
pub const NOTIFY: &str = "notify";

/// Numbers of tasks that operations between tasks of one launch take.
const TASKS_OF_A_LAUNCH: std::ops::RangeInclusive<u32> = 2..=64;

/// Operations that one task can do beside the one that is launched.
const ALONE: [&str; 5] = [
    SPAWN,
    "host-node-recv",
    "host-node-send",
    "host-node-exchange",
    "host-broadcast",
];

/// Can tasks of this family do that here?
pub fn takes_part(family: Family, operation: &str) -> Result<(), &'static str> {
    match (family, operation) {
        (Family::Limit, _) => Err("there is no library that keeps track of tasks"),
        (Family::RegattaNx | Family::RegattaExpress, _) => {
            Err("its programs start tasks as nodes only, which host-broadcast and its like do")
        }
        (Family::OpenMpi | Family::Mpich | Family::Mpich4 | Family::RegattaMpi, NOTIFY) => {
            Err("MPI has no call that tells of the end of a task")
        }
        (Family::Mpich4, _) => Err("its MPI_Comm_spawn fails (\"Error in spawn call\")"),
        _ => Ok(()),
    }
}

/// Numbers of tasks unless others are asked for. Only a full race has time for 100 where that takes 3 to 14 s.
pub fn usual(family: Family, operation: &str, effort: Effort) -> &'static [u32] {
    let mpi = matches!(family, Family::OpenMpi | Family::Mpich | Family::Mpich4);
    match (operation, effort) {
        (NOTIFY, Effort::Quick) => &[2],
        (NOTIFY, _) => &[2, 32],
        (_, Effort::Quick | Effort::Normal) if mpi => &[1, 10],
        _ => &[1, 10, 100],
    }
}

/// Are these numbers of tasks what each operation asked for can do?
pub fn check_tasks(operations: &[String], tasks: &[u32]) -> Result<()> {
    let only = |wanted: &[&str]| {
        !operations.is_empty()
            && operations
                .iter()
                .all(|name| wanted.contains(&name.as_str()))
    };
    let misfit = tasks.iter().find(|number| match number {
        1 => !only(&ALONE),
        _ => !TASKS_OF_A_LAUNCH.contains(number) && !only(&[SPAWN, NOTIFY]),
    });
    match misfit {
        Some(1) => bail!(
            "one task is a number only for spawn and for the nodes of a host: name such operations with --operation"
        ),
        Some(number) => bail!(
            "{number} tasks are a number only for spawn and notify, the others take {} to {}: name them with --operation",
            TASKS_OF_A_LAUNCH.start(),
            TASKS_OF_A_LAUNCH.end()
        ),
        None => Ok(()),
    }
}

/// The peers that are left out of these operations, and why; none where they are not raced.
pub fn notes(competitors: &[Competitor], wishes: &Wishes, network: Network) -> Vec<String> {
    let asked = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
    let mut notes = Vec::new();
    for operation in [SPAWN, NOTIFY] {
        if !asked(&wishes.suites, "start") || !asked(&wishes.operations, operation) {
            continue;
        }
        if !network.is_local() {
            notes.push(format!("{operation} is raced on one host only"));
            continue;
        }
        let mut out: Vec<(&str, Vec<&str>)> = Vec::new();
        for competitor in competitors {
            let Err(why) = takes_part(competitor.family, operation) else {
                continue;
            };
            match out.iter_mut().find(|(reason, _)| *reason == why) {
                Some((_, names)) => names.push(&competitor.name),
                None => out.push((why, vec![&competitor.name])),
            }
        }
        let sentence = |(why, names): (&str, Vec<&str>)| {
            format!("{operation} is raced without {}: {why}", names.join(", "))
        };
        notes.extend(out.into_iter().map(sentence));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn numbers_of_tasks_must_fit_every_operation_asked_for() {
        assert!(check_tasks(&[], &[2, 64]).is_ok());
        assert!(check_tasks(&names(&["spawn"]), &[1, 100]).is_ok());
        assert!(check_tasks(&names(&["spawn", "host-node-send"]), &[1]).is_ok());
        assert!(check_tasks(&names(&["spawn", "notify"]), &[2, 100]).is_ok());
        for (operations, tasks) in [
            (names(&[]), 1),
            (names(&["barrier", "spawn"]), 100),
            (names(&["notify"]), 1),
        ] {
            let error = check_tasks(&operations, &[2, tasks])
                .unwrap_err()
                .to_string();
            assert!(error.contains("--operation"), "{error}");
        }
    }

    #[test]
    fn who_cannot_is_named_with_the_reason() {
        let found = crate::discover::discover(std::path::Path::new("/nonexistent"));
        let limit: Vec<Competitor> = found
            .competitors
            .into_iter()
            .filter(|c| c.name == "limit")
            .collect();
        let mut wishes = Wishes {
            suites: vec![],
            operations: names(&["notify"]),
            tasks: vec![],
            bytes: vec![],
            effort: Effort::Quick,
            launches: None,
            budget: None,
        };
        let told = notes(&limit, &wishes, Network::Local);
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with("notify is raced without limit: "),
            "{told:?}"
        );
        wishes.operations = names(&["barrier"]);
        assert!(notes(&limit, &wishes, Network::Local).is_empty());
    }
}
