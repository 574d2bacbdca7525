//! Checks which of the user's wishes can be met: the numbers of tasks that operations take, and the environments that
//! lack an ability that an operation needs.

use anyhow::{Result, bail};

use crate::discover::Competitor;
use crate::network::Network;
use crate::operations::{self, Kind, Operation, TASKS_OF_A_LAUNCH};
use crate::plan::Wishes;

/// Maximum number of operations that a note names; it counts the rest.
const MAX_NAMED_OPERATIONS: usize = 4;

/// Fails if one of these numbers of tasks is not valid for the operations asked for.
pub fn check_tasks(names: &[String], tasks: &[u32]) -> Result<()> {
    let asked = || names.iter().filter_map(|name| operations::find(name));
    let (least, most) = TASKS_OF_A_LAUNCH;
    let takes = |(least, most): (u32, u32), number: u32| (least..=most).contains(&number);
    let fits = |number: u32| match names.is_empty() {
        true => takes(TASKS_OF_A_LAUNCH, number),
        false => takes(TASKS_OF_A_LAUNCH, number) || asked().all(|one| takes(one.tasks, number)),
    };
    match tasks.iter().find(|number| !fits(**number)) {
        Some(1) => bail!(
            "one task is possible only for spawn and for the nodes of a host: name such operations with --operation"
        ),
        Some(number) => bail!(
            "{number} tasks are possible only for spawn and notify, the other operations take {least} to {most}: name them with --operation"
        ),
        None => Ok(()),
    }
}

/// Returns notes of what is left out between this many hosts because the tasks cannot be split evenly among them.
pub fn uneven_notes(wishes: &Wishes, hosts: u32) -> Vec<String> {
    let uneven = |tasks: &u32| !tasks.is_multiple_of(hosts);
    let asked = wishes.tasks.iter().filter(|tasks| uneven(tasks)).map(|tasks| {
        format!("{tasks} tasks cannot be distributed evenly over {hosts} hosts: their points are omitted")
    });
    let fixed = operations::all().filter(|one| is_asked(wishes, one));
    let fixed = fixed.filter_map(|one| Some((one.name, one.exactly?)));
    let fixed = fixed.filter(|(_, tasks)| uneven(tasks)).map(|(name, tasks)| {
        format!("{name} takes {tasks} tasks, which cannot be distributed evenly over {hosts} hosts: it is omitted")
    });
    asked.chain(fixed).collect()
}

/// Returns notes of the environments that are left out of operations asked for, with the reasons. Operations that are
/// not raced have no note.
pub fn notes(competitors: &[Competitor], wishes: &Wishes, network: Network) -> Vec<String> {
    let mut out: Vec<(Vec<&str>, &str, Vec<&str>)> = Vec::new();
    let mut notes = Vec::new();
    for operation in operations::all().filter(|one| is_asked(wishes, one)) {
        if !network.is_local() {
            let note = format!("{} is raced on one host only", operation.name);
            notes.extend(is_of_one_host(operation).then_some(note));
            continue;
        }
        // A program of one task is not expected where tasks communicate.
        let lacking = competitors
            .iter()
            .filter(|one| !one.peer.facts().one_task)
            .filter_map(|one| Some((one.peer.lacks(operation.need)?, one.name.as_str())));
        let mut here: Vec<(&str, Vec<&str>)> = Vec::new();
        for (why, name) in lacking {
            match here.iter_mut().find(|one| one.0 == why) {
                Some(one) => one.1.push(name),
                None => here.push((why, vec![name])),
            }
        }
        for (why, names) in here {
            // A suite on request may have many such operations, so they share a note.
            let alike = |one: &&mut (Vec<&str>, &str, Vec<&str>)| {
                operation.is_on_request() && (one.1, &one.2) == (why, &names)
            };
            match out.iter_mut().find(alike) {
                Some(one) => one.0.push(operation.name),
                None => out.push((vec![operation.name], why, names)),
            }
        }
    }
    notes.extend(out.iter().map(|(operations, why, names)| {
        let verb = if operations.len() == 1 { "is" } else { "are" };
        let mut operations = operations.clone();
        let more = operations.len().saturating_sub(MAX_NAMED_OPERATIONS);
        operations.truncate(MAX_NAMED_OPERATIONS);
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let operations = operations.join(", ") + &more;
        format!(
            "{operations} {verb} raced without {}: {why}",
            names.join(", ")
        )
    }));
    notes
}

fn is_of_one_host(operation: &Operation) -> bool {
    matches!(operation.kind, Kind::Spawn | Kind::Notify)
}

fn is_asked(wishes: &Wishes, operation: &Operation) -> bool {
    operation.suites.iter().any(|suite| match suite.on_request {
        true => wishes.ask(suite, operation),
        false => wishes.want_suite(suite) && wishes.want_operation(operation),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::tests::competitor;
    use crate::peers::interfaces::NX;
    use crate::peers::limit::Limit;
    use crate::peers::serial::Serial;
    use crate::plan::Effort;

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
    fn what_cannot_be_dealt_evenly_is_named() {
        let wishes = Wishes {
            suites: names(&["hosts"]),
            operations: names(&["one-to-one", "barrier"]),
            tasks: vec![4, 6],
            bytes: vec![],
            effort: Effort::Quick,
            launches: None,
            budget: None,
        };
        let told = uneven_notes(&wishes, 4);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("6 tasks cannot be distributed evenly over 4 hosts"));
        assert!(told[1].starts_with("one-to-one takes 2 tasks"));
        assert_eq!(uneven_notes(&wishes, 2), Vec::<String>::new());
    }

    #[test]
    fn who_cannot_is_named_with_the_reason() {
        let competitors = [competitor("limit", &Limit), competitor("regatta-nx", &NX)];
        let mut wishes = Wishes {
            suites: vec![],
            operations: names(&["notify"]),
            tasks: vec![],
            bytes: vec![],
            effort: Effort::Quick,
            launches: None,
            budget: None,
        };
        let told = notes(&competitors[..1], &wishes, Network::Local);
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with("notify is raced without limit: "),
            "{told:?}"
        );
        wishes.operations = names(&["barrier"]);
        assert!(notes(&competitors, &wishes, Network::Local).is_empty());
        let serial = [competitor("serial", &Serial)];
        assert!(notes(&serial, &wishes, Network::Local).is_empty());
        wishes.operations = Vec::new();
        wishes.suites = names(&["pvm"]);
        let told = notes(&competitors[1..], &wishes, Network::Local);
        assert!(
            told[0].contains("ping-pong-asynchronous, ping-pong-blocking-pack-raw")
                && told[0].contains("are raced without regatta-nx: "),
            "{told:?}"
        );
    }
}
