//! Tasks' requests for a host's time, kept until the host answers or is lost.

use regatta_wire::control::RequestError;

use crate::registry::ReplicatedRegistry;

/// A request that a host has not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Question {
    host: u32,
    by: u32,
    id: u32,
}

/// All unanswered requests.
#[derive(Debug, Default)]
pub struct TimeRequests {
    asked: Vec<Question>,
}

impl TimeRequests {
    /// Records that a host is asked the time on behalf of task `by`, whose request has the number `id`.
    pub fn ask(&mut self, host: u32, by: u32, id: u32) {
        self.asked.push(Question { host, by, id });
    }

    /// Passes on a host's answer. An answer without a request is ignored.
    pub fn answered(
        &mut self,
        registry: &mut ReplicatedRegistry,
        (host, by, id): (u32, u32, u32),
        time: u64,
    ) {
        let question = Question { host, by, id };
        if let Some(at) = self.asked.iter().position(|known| *known == question) {
            self.asked.swap_remove(at);
            registry.reply(by, id, Ok(time));
        }
    }

    /// Refuses all requests to a host that is lost.
    pub fn host_lost(&mut self, registry: &mut ReplicatedRegistry, host: u32) {
        for Question { by, id, .. } in self.asked.extract_if(.., |asked| asked.host == host) {
            let sentence = "the host was lost before it reported its time".to_owned();
            registry.reply(by, id, Err((RequestError::Host, sentence)));
        }
    }
}

#[cfg(test)]
mod tests {
    use regatta_wire::control::Tell;

    use super::*;
    use crate::registry::{HostRecord, Registry};

    fn registry() -> ReplicatedRegistry {
        let host = |number| HostRecord {
            number,
            name: format!("h{number}"),
            architecture: "any".to_owned(),
            cores: 1,
            speed: 1,
            alive: true,
        };
        let registry = Registry::new(vec![host(0), host(1)], &[0, 1], b"program");
        ReplicatedRegistry::new(registry, false)
    }

    #[test]
    fn a_question_is_answered_once_and_by_the_host_that_was_asked() {
        let (mut requests, mut registry) = (TimeRequests::default(), registry());
        requests.ask(1, 0, 5);
        for answer in [(0, 0, 5), (1, 1, 5), (1, 0, 6)] {
            requests.answered(&mut registry, answer, 1);
        }
        assert_eq!(registry.take_messages(), []);
        for time in [7, 8] {
            requests.answered(&mut registry, (1, 0, 5), time);
        }
        let done = Tell::Done { id: 5, value: 7 };
        assert_eq!(registry.take_messages(), [(0, done)]);
    }

    #[test]
    fn questions_to_a_lost_host_are_refused_once_and_others_wait() {
        let (mut requests, mut registry) = (TimeRequests::default(), registry());
        for (host, by, id) in [(1, 0, 5), (0, 0, 6), (1, 1, 7)] {
            requests.ask(host, by, id);
        }
        requests.host_lost(&mut registry, 1);
        requests.host_lost(&mut registry, 1);
        let refused = |(to, message): &(u32, Tell)| match message {
            Tell::Refused { id, why, .. } => (*to, *id, *why == RequestError::Host),
            other => panic!("{other:?}"),
        };
        let messages = registry.take_messages();
        let all: Vec<_> = messages.iter().map(refused).collect();
        assert_eq!(all, [(0, 5, true), (1, 7, true)]);
        requests.answered(&mut registry, (0, 0, 6), 9);
        assert_eq!(registry.take_messages().len(), 1);
    }
}
