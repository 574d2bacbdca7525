//! Which tasks are gone, combined from what the replica and every host know.
//!
//! The old launcher may have told some hosts that a task is gone and others not, and the next launcher may know it only
//! from the replica of another host. So the next launcher tells every host again, and enters it into its own table. A
//! host that knows it already ignores the message.

use std::collections::BTreeMap;

use regatta_wire::control::Ending;
use regatta_wire::life::{Cause, TaskState};

use super::Handover;
use crate::Registry;

/// Returns all tasks that some table records as gone, or should, since the registry knows that they ended. Tasks
/// without a cause left in good order. An end that the registry does not know yet is not included: it is still to be
/// handled.
pub(super) fn all_gone(
    registry: &Registry,
    handovers: &[Handover],
) -> BTreeMap<u32, Option<Cause>> {
    let dead = registry.endings();
    // The registry does not know whether a task left. If no table knows it either, a task that exited with 0 has
    // probably left before.
    let mut all: BTreeMap<u32, Option<Cause>> = dead
        .map(|(task, ending)| match ending {
            Ending::Exited(0) => (task, None),
            Ending::Exited(status) => (task, Some(Cause::Exited(status))),
            Ending::Signalled(signal) => (task, Some(Cause::Signalled(signal))),
            Ending::Lost | Ending::Unknown => (task, Some(Cause::Lost)),
        })
        .collect();
    for host in handovers {
        all.extend(host.gone.iter().copied());
        let known = host
            .ended
            .iter()
            .filter(|ended| !registry.is_alive(ended.rank));
        all.extend(known.map(|ended| {
            let left = ended.state == TaskState::Left;
            (ended.rank, (!left).then(|| ended.end.cause()))
        }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{End, Ended};

    fn ended(rank: u32, end: End, state: TaskState) -> Ended {
        let pid = 100 + rank;
        Ended {
            rank,
            pid,
            end,
            state,
        }
    }

    #[test]
    fn a_task_is_gone_if_the_registry_or_any_host_says_so_and_a_host_knows_best_how() {
        let mut registry = Registry::new(Vec::new(), &[0, 1, 2, 3, 4, 5], b"program");
        registry.task_ended(0, End::Lost);
        registry.task_ended(1, End::Exited(0));
        registry.task_ended(2, End::Exited(0));
        registry.task_ended(3, End::Exited(3));
        let own = vec![
            ended(2, End::Exited(0), TaskState::Joined),
            // The registry does not know this end yet.
            ended(5, End::Exited(0), TaskState::Left),
        ];
        let other = vec![(3, None), (4, Some(Cause::Lost))];
        let handovers = [
            Handover {
                ended: own,
                ..Handover::default()
            },
            Handover {
                gone: other,
                ..Handover::default()
            },
        ];
        let all: Vec<_> = all_gone(&registry, &handovers).into_iter().collect();
        let expected = [
            (0, Some(Cause::Lost)),
            (1, None),
            (2, Some(Cause::Exited(0))),
            (3, None),
            (4, Some(Cause::Lost)),
        ];
        assert_eq!(all, expected);
    }
}
