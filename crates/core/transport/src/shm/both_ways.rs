//! The footprint of messages through pipes that two tasks send to each other.
//!
//! The best footprint in one direction depends on that of the other direction: if both tasks send at once, a pipe
//! that rotates over 1 MiB evicts a narrow one from the caches of both cores. Two cores of a Zen 5 that share an L3
//! exchange 64 KiB in 3.9 us if both pipes are narrow, in 5.4 if both are wide, and in 10 to 13 if they differ. Two
//! tasks that learn independently end with both wide, or with one direction non-temporal: from that state, narrow
//! looks bad to each of them alone.
//!
//! So the task with the lower number learns for both. Each of its messages carries its footprint, and the other task
//! sends with the same footprint as long as it receives messages. The footprint that the other task learns itself is
//! used only while messages flow in one direction.

use std::collections::hash_map::Entry;

use regatta_engine::Peer;
use regatta_wire::Route;
use rustc_hash::FxHashMap;

use crate::footprint::Footprint;

/// Number of messages in a row without one in return after which they count as one-way.
const MAX_UNANSWERED_MESSAGES: u32 = 8;
/// Index of a message's footprint in its route; 0 there means none.
const FOOTPRINT_AT: usize = 8;
/// Index in a route of the flag that the message does not fit into a narrow pipe: another footprint may be best for
/// such messages.
const IS_LONG_AT: usize = 9;

/// Writes a message's footprint into its route.
pub(super) fn say(route: &mut Route, footprint: Footprint, long: bool) {
    route[FOOTPRINT_AT] = 1 + footprint as u8;
    route[IS_LONG_AT] = long as u8;
}

/// Returns the footprint and the length flag in a message's route. Returns `None` if there is no valid footprint: the
/// other task may have written anything.
fn said(route: &Route) -> Option<(Footprint, bool)> {
    let all = [Footprint::Narrow, Footprint::Wide, Footprint::NonTemporal];
    let footprint = all
        .into_iter()
        .find(|&one| 1 + one as u8 == route[FOOTPRINT_AT])?;
    Some((footprint, route[IS_LONG_AT] == 1))
}

/// The footprints of messages received from tasks with lower numbers, separately for short and long ones.
#[derive(Debug, Default)]
pub(super) struct BothWays(FxHashMap<(Peer, bool), Came>);

#[derive(Debug)]
struct Came {
    footprint: Footprint,
    /// Number of messages that were sent in return since then.
    since: u32,
}

impl BothWays {
    /// Records a message that task `me` receives.
    pub(super) fn came(&mut self, me: Peer, from: Peer, route: &Route) {
        if from > me {
            return;
        }
        if let Some((footprint, long)) = said(route) {
            let came = Came {
                footprint,
                since: 0,
            };
            self.0.insert((from, long), came);
        }
    }

    /// Returns the footprint of the next message to a task, if that task determines it.
    pub(super) fn of_next(&self, to: Peer, long: bool) -> Option<Footprint> {
        self.0.get(&(to, long)).map(|came| came.footprint)
    }

    /// Records a message to a task.
    pub(super) fn goes(&mut self, to: Peer, long: bool) {
        if let Entry::Occupied(mut came) = self.0.entry((to, long)) {
            came.get_mut().since += 1;
            if came.get().since == MAX_UNANSWERED_MESSAGES {
                came.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(footprint: Footprint, long: bool) -> Route {
        let mut route = Route::default();
        say(&mut route, footprint, long);
        route
    }

    #[test]
    fn the_task_with_the_higher_number_sends_as_it_is_sent_to() {
        let mut both = BothWays::default();
        both.goes(0, true);
        assert_eq!(both.of_next(0, true), None);
        for footprint in [Footprint::Wide, Footprint::NonTemporal, Footprint::Narrow] {
            both.came(1, 0, &route(footprint, true));
            assert_eq!(both.of_next(0, true), Some(footprint));
            assert_eq!(both.of_next(0, false), None, "short ones are apart");
            assert_eq!(both.of_next(2, true), None, "another task");
        }
        let mut lower = BothWays::default();
        lower.came(0, 1, &route(Footprint::Wide, true));
        assert_eq!(lower.of_next(1, true), None);
    }

    #[test]
    fn messages_that_get_no_answer_have_a_footprint_of_their_own() {
        let mut both = BothWays::default();
        both.came(1, 0, &route(Footprint::Wide, false));
        for _ in 0..MAX_UNANSWERED_MESSAGES {
            assert_eq!(both.of_next(0, false), Some(Footprint::Wide));
            both.goes(0, false);
        }
        assert_eq!(both.of_next(0, false), None);
        both.came(1, 0, &route(Footprint::Narrow, false));
        assert_eq!(both.of_next(0, false), Some(Footprint::Narrow));
    }

    #[test]
    fn nonsense_says_nothing() {
        let mut both = BothWays::default();
        for code in [0, 4, 255] {
            let mut route = Route::default();
            route[FOOTPRINT_AT] = code;
            both.came(1, 0, &route);
            assert_eq!(both.of_next(0, false), None);
        }
    }
}
