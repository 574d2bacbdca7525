//! Applications in the plan: the problems, the numbers of tasks, and additional launches that count messages.

use super::{Effort, Group, OnePlan, Work};
use crate::operations::{self, Application, Operation, Program, distinct};
use crate::places::places;
use crate::suites::Suite;

/// Number of tasks of an application that is raced by default besides one and two.
const USUAL_CROWDED_TASKS: u32 = 8;

impl OnePlan<'_> {
    /// Adds the applications of a suite, each problem in launches of its own.
    pub fn applications(&self, suite: &'static Suite, groups: &mut Vec<Group>) {
        let takes = (suite.takes)(self.competitor.peer);
        if !self.ground.network.is_local() || !takes {
            return;
        }
        let listed = places(suite);
        for operation in operations::of(suite) {
            let Program::Application(application) = operation.program else {
                continue;
            };
            if !self.wishes.ask(suite, operation) || !self.can(operation) {
                continue;
            }
            let mut here = listed
                .iter()
                .filter(|place| place.operation == operation)
                .peekable();
            match here.peek() {
                Some(_) => here.for_each(|place| {
                    let asked =
                        self.wishes.tasks.is_empty() || self.wishes.tasks.contains(&place.tasks);
                    let usual = match self.wishes.effort {
                        Effort::Quick => &place.bytes[..1],
                        Effort::Normal | Effort::Full => &place.bytes,
                    };
                    let sizes = self.problems(application, usual);
                    if asked && self.fits_application(operation, place.tasks) {
                        self.problems_of(suite, operation, place.tasks, &sizes, groups);
                    }
                }),
                None => {
                    let sizes = self.problems(application, &application.usual(self.wishes.effort));
                    let mut numbers = match self.wishes.tasks.as_slice() {
                        [] => vec![1, 2, USUAL_CROWDED_TASKS],
                        asked => distinct(asked.iter().copied()),
                    };
                    numbers.retain(|tasks| self.fits_application(operation, *tasks));
                    for tasks in numbers {
                        self.problems_of(suite, operation, tasks, &sizes, groups);
                    }
                }
            }
        }
    }

    /// Returns the sizes of problems that were asked for, or else `usual`.
    fn problems(&self, application: &Application, usual: &[u64]) -> Vec<u64> {
        let mut sizes = match self.wishes.bytes.as_slice() {
            [] => usual.to_vec(),
            asked => distinct(asked.iter().copied()),
        };
        sizes.retain(|size| application.problem(*size).is_some());
        sizes
    }

    /// Returns whether this environment runs an application with this many tasks.
    fn fits_application(&self, operation: &Operation, tasks: u32) -> bool {
        let (facts, (least, most)) = (self.competitor.peer.facts(), operation.tasks);
        if facts.one_task {
            return tasks == 1;
        }
        (least..=most).contains(&tasks) && (!self.crowded(tasks) || facts.crowded.is_ok())
    }

    /// Adds an application with one number of tasks: a group for each size, and another one that counts messages if the
    /// suite wants that.
    fn problems_of(
        &self,
        suite: &'static Suite,
        operation: &'static Operation,
        tasks: u32,
        sizes: &[u64],
        groups: &mut Vec<Group>,
    ) {
        let counted = suite.counted && self.competitor.peer.facts().profiles && tasks > 1;
        for &size in sizes {
            let resolved = self.settings(operation, self.crowded(tasks));
            let work = Work::Application(operation, size);
            groups.push(self.group(suite, tasks, work, resolved.clone()));
            if counted {
                let work = Work::Counted(operation, size);
                let group = self.group(suite, tasks, work, resolved);
                groups.push(Group {
                    launches: 1,
                    ..group
                });
            }
        }
    }
}
