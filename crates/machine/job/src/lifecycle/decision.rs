//! Decisions about the end of a job that also bind the next launcher.

use std::time::Duration;

use regatta_wire::fields;

use super::{Action, Lifecycle};
use crate::end::Failure;

/// The decisions so far. They are part of the registry, so every replica has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decision {
    /// The exit status so far.
    pub status: u32,
    /// The failure that determined the status, if one did.
    pub first_failure: Option<Failure>,
    /// The signal after which the job must end within the grace period, or 0 if there was none.
    pub asked: u32,
    /// Whether everything is being ended.
    pub is_ending: bool,
}
fields!(Decision {
    status,
    first_failure,
    asked,
    is_ending
});

impl Lifecycle {
    /// Returns the decisions so far, or `None` if they are not for the other hosts, which may go on with the job
    /// without this one.
    pub fn decision(&self) -> Option<Decision> {
        (!self.left_to_others).then(|| Decision {
            status: u32::from(self.status),
            first_failure: self.first_failure(),
            asked: self.asked.map_or(0, |signal| signal as u32),
            is_ending: self.is_ending(),
        })
    }

    /// Adopts what the previous launcher had decided. The grace period after a failure, or after a request to end,
    /// starts again.
    pub fn adopt(&mut self, now: Duration, decision: Decision, actions: &mut Vec<Action>) {
        if let Some(failure) = decision.first_failure {
            self.first_failed(now, failure);
        }
        if decision.asked != 0 {
            self.ask_to_end(now, decision.asked as i32);
        }
        if decision.status != 0 {
            self.status = decision.status as u8;
        }
        if decision.is_ending {
            self.kill(now, actions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::End;
    use crate::lifecycle::{OnFailure, Policy};

    const NOW: Duration = Duration::from_secs(5);
    const GRACE: Duration = Duration::from_secs(10);

    fn lifecycle() -> Lifecycle {
        let policy = Policy {
            on_failure: OnFailure::Stop,
            grace: GRACE,
            timeout: None,
            resident: false,
        };
        Lifecycle::new(policy, 2).resumed(2, 2, 0)
    }

    #[test]
    fn the_next_launcher_ends_the_job_after_a_failure_with_the_status_of_that() {
        let failure = Failure {
            rank: 0,
            pid: 100,
            end: End::Exited(7),
        };
        let mut before = lifecycle();
        before.first_failed(NOW, failure);
        let decision = before.decision().expect("for the others");
        let (mut next, mut actions) = (lifecycle(), Vec::new());
        next.adopt(NOW, decision, &mut actions);
        assert_eq!((next.status(), next.is_ending()), (7, false));
        next.tick(NOW + GRACE, &mut actions);
        assert!(next.is_ending());
        assert_eq!(next.decision().map(|decision| decision.status), Some(7));
    }

    #[test]
    fn the_next_launcher_ends_a_job_that_was_asked_to_end() {
        let (mut before, mut actions) = (lifecycle(), Vec::new());
        before.signal(NOW, libc::SIGTERM, false, &mut actions);
        let mut next = lifecycle();
        next.adopt(NOW, before.decision().expect("a decision"), &mut actions);
        assert_eq!(next.deadline(), before.deadline());
        next.tick(NOW + GRACE, &mut actions);
        assert_eq!((next.is_ending(), next.status()), (true, 143));
    }

    /// A status set by the take-over itself stays, in whatever order the two happen.
    #[test]
    fn a_decision_of_nothing_leaves_the_status_as_it_is() {
        let (mut next, mut actions) = (lifecycle(), Vec::new());
        next.host_lost(NOW, "h0 is lost", &[(0, 100)], &[], |_| false, &mut actions);
        next.adopt(NOW, Decision::default(), &mut actions);
        assert_eq!(next.status(), 137);
    }

    #[test]
    fn an_end_that_has_begun_goes_on_unless_the_job_was_left_to_others() {
        let (mut before, mut actions) = (lifecycle(), Vec::new());
        before.halt(NOW, &mut actions);
        let mut next = lifecycle();
        next.adopt(NOW, before.decision().expect("a decision"), &mut actions);
        assert!(next.is_ending());
        let mut left = lifecycle();
        left.give_up(NOW, 1, &mut actions);
        assert_eq!(left.decision(), None);
    }
}
