//! Hosters: tasks that start the agents of hosts in the launcher's place. Keeps the requests to them, and checks their
//! reports. Pure.
//!
//! ```text
//! task                                   launcher
//! Hoster        I start hosts        >                    PVM's hoster registers
//!                                    <   StartHosts       when hosts are requested: their numbers, a command for each
//! HostsStarted  what they printed    >                    for each a contact line (`contact_line.rs`), or a reason
//!                                        calls each agent (`called_agent.rs`)
//! ```
//!
//! The task may take any time for a report, and gets further requests meanwhile. If it ends, or reports neither a line
//! nor a reason, the host has not been started. A task that has unregistered still reports on its earlier requests. A
//! report about anything that was not requested is refused, and changes nothing.

use regatta_launch::host_starter::Refused;
use regatta_wire::control::{HostStart, HostStarted, RequestError, Tell};

use crate::contact_line::ContactLine;

/// The requests to hosters.
#[derive(Default)]
pub(crate) struct Hosters {
    /// The registered task, and the id of its request, which messages to it carry.
    registered: Option<(u32, u32)>,
    /// Requests without a report: the request's number, and the task.
    open: Vec<(u32, u32)>,
    next: u32,
}

impl Hosters {
    /// Registers a task as the hoster, with the id for messages to it (`watch`); `None` unregisters it. Fails if
    /// another task is registered.
    pub(crate) fn register(&mut self, task: u32, watch: Option<u32>) -> Result<(), Refused> {
        let other = self.registered.is_some_and(|(other, _)| other != task);
        match watch {
            Some(_) if other => {
                let sentence = "another task already starts hosts";
                Err((RequestError::Exists, sentence.to_owned()))
            }
            None if other || self.registered.is_none() => Err((
                RequestError::Task,
                "this task does not start hosts".to_owned(),
            )),
            _ => {
                self.registered = watch.map(|watch| (task, watch));
                Ok(())
            }
        }
    }

    /// Returns whether a hoster is registered.
    pub(crate) fn is_registered(&self) -> bool {
        self.registered.is_some()
    }

    /// Requests hosts. Returns the number of the request, the task, and the message to it. Returns `None` if there is
    /// no hoster, or if the list is empty.
    pub(crate) fn begin(&mut self, hosts: Vec<HostStart>) -> Option<(u32, u32, Tell)> {
        let (task, watch) = self.registered.filter(|_| !hosts.is_empty())?;
        let request = self.next;
        self.next = self.next.wrapping_add(1);
        self.open.push((request, task));
        let told = Tell::StartHosts {
            watch,
            request,
            hosts,
        };
        Some((request, task, told))
    }

    /// Closes a request when its task reports. Fails if the request was not sent to this task.
    pub(crate) fn close(&mut self, request: u32, by: u32) -> Result<(), Refused> {
        let at = self.open.iter().position(|&open| open == (request, by));
        let nothing = "there is no request with this number, or it has been answered";
        let at = at.ok_or_else(|| (RequestError::Argument, nothing.to_owned()))?;
        self.open.remove(at);
        Ok(())
    }

    /// Removes tasks that have ended. Returns the requests that will not be reported on, and their tasks.
    pub(crate) fn forget_ended(&mut self, is_alive: impl Fn(u32) -> bool) -> Vec<(u32, u32)> {
        self.registered.take_if(|(task, _)| !is_alive(*task));
        let lost = self.open.extract_if(.., |(_, task)| !is_alive(*task));
        lost.collect()
    }
}

/// Returns whether the reports are about all hosts of a request, and about no others.
pub(crate) fn is_about(asked: &[u32], reports: &[HostStarted]) -> bool {
    let reported = |number: &u32| reports.iter().any(|report| report.host == *number);
    asked.iter().all(reported) && reports.iter().all(|report| asked.contains(&report.host))
}

/// Returns the contact line of a host's agent, from the report of the task that has started it.
pub(crate) fn outcome(
    task: u32,
    name: &str,
    report: Option<&HostStarted>,
) -> Result<ContactLine, Refused> {
    if let Some(why) = report.and_then(|report| report.refused) {
        let sentence = format!("task {task}, which starts hosts, cannot start {name}");
        return Err((why, sentence));
    }
    let line = report.map_or("", |report| &report.line);
    ContactLine::read(line).ok_or_else(|| {
        // Shorten the line: it may contain a key, which must not get into a log.
        let line: String = line.chars().take(40).collect();
        let sentence = format!(
            "the host {name} was not started: task {task}, which starts hosts, got this answer there: {line}"
        );
        (RequestError::System, sentence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(host: u32) -> HostStart {
        HostStart {
            host,
            manner: String::new(),
            login: "beta".to_owned(),
            command: "sh".to_owned(),
        }
    }

    fn report(host: u32, refused: Option<RequestError>, line: &str) -> HostStarted {
        HostStarted {
            host,
            refused,
            line: line.to_owned(),
        }
    }

    fn why<T>(outcome: Result<T, Refused>) -> Option<RequestError> {
        outcome.err().map(|(why, _)| why)
    }

    #[test]
    fn one_task_at_a_time_starts_hosts() {
        let mut hosters = Hosters::default();
        assert_eq!(why(hosters.register(3, None)), Some(RequestError::Task));
        assert_eq!(hosters.begin(vec![host(1)]), None);
        assert_eq!(why(hosters.register(3, Some(7))), None);
        assert_eq!(
            why(hosters.register(4, Some(8))),
            Some(RequestError::Exists)
        );
        assert_eq!(why(hosters.register(4, None)), Some(RequestError::Task));
        assert_eq!(why(hosters.register(3, None)), None);
        assert!(!hosters.is_registered());
    }

    #[test]
    fn a_request_is_reported_on_once_by_the_task_that_it_was_put_to() {
        let mut hosters = Hosters::default();
        hosters.register(3, Some(7)).expect("it is the only one");
        assert_eq!(hosters.begin(Vec::new()), None);
        let (request, task, told) = hosters.begin(vec![host(1)]).expect("a request");
        assert!(matches!(told, Tell::StartHosts { watch: 7, .. }) && task == 3);
        let (second, ..) = hosters.begin(vec![host(2)]).expect("another");
        assert_eq!(why(hosters.close(request, 4)), Some(RequestError::Argument));
        // It may still report after it has unregistered.
        hosters.register(3, None).expect("it was registered");
        assert_eq!(why(hosters.close(request, 3)), None);
        assert_eq!(why(hosters.close(request, 3)), Some(RequestError::Argument));
        assert!(hosters.forget_ended(|_| true).is_empty());
        assert_eq!(hosters.forget_ended(|task| task != 3), [(second, 3)]);
    }

    #[test]
    fn reports_are_about_all_hosts_of_a_request_and_no_others() {
        let reports = [report(1, None, ""), report(2, None, "")];
        assert!(is_about(&[2, 1], &reports));
        assert!(!is_about(&[1], &reports) && !is_about(&[1, 2, 3], &reports));
    }

    #[test]
    fn a_host_was_started_if_a_contact_line_says_so() {
        let line = ContactLine::new(Vec::new(), 7).expect("a line");
        let good = report(1, None, &line.text());
        assert_eq!(outcome(3, "beta", Some(&good)), Ok(line.clone()));
        let refused = report(1, Some(RequestError::Denied), &line.text());
        assert_eq!(
            why(outcome(3, "beta", Some(&refused))),
            Some(RequestError::Denied)
        );
        assert_eq!(why(outcome(3, "beta", None)), Some(RequestError::System));
        let long = report(1, None, &format!("ddpro<2316> secret{}", "x".repeat(99)));
        let (_, sentence) = outcome(3, "beta", Some(&long)).expect_err("no line");
        assert!(!sentence.contains(&"x".repeat(30)), "{sentence}");
    }
}
