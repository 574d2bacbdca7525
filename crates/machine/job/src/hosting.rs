//! Requests of tasks for hosts: which hosts they may have, and the answer once the outcome of each is known.

use regatta_wire::control::{RequestError, Tell};

use crate::registry::Refused;

/// Maximum number of hosts in one request. A request for more is an error.
const MAX_HOSTS_PER_REQUEST: usize = 4096;

/// One host of a request: identifies the slot of its outcome in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPlace {
    request: u32,
    index: usize,
}

/// An unanswered request.
#[derive(Debug)]
struct HostRequest {
    number: u32,
    /// The task that requests the hosts, and the number of its request.
    by: u32,
    id: u32,
    outcomes: Vec<Option<Result<u32, RequestError>>>,
    /// The first sentence about a host that could not be added.
    sentence: String,
}

impl HostRequest {
    fn answer(&self) -> Option<Tell> {
        let hosts = self.outcomes.iter().copied().collect::<Option<Vec<_>>>()?;
        Some(Tell::Hosted {
            id: self.id,
            hosts,
            sentence: self.sentence.clone(),
        })
    }
}

/// All unanswered requests. Each is answered once, when the outcome of each of its hosts is known: its number in the
/// job, or why it could not be added.
#[derive(Debug, Default)]
pub struct HostRequests {
    open: Vec<HostRequest>,
    next: u32,
}

impl HostRequests {
    /// Records that a task requests `count` hosts, in a request with this number. Returns a slot for each of them.
    pub fn begin(
        &mut self,
        (by, id): (u32, u32),
        count: usize,
    ) -> Result<impl Iterator<Item = HostPlace> + use<>, Refused> {
        if count > MAX_HOSTS_PER_REQUEST {
            return Err((
                RequestError::Argument,
                format!("{count} hosts are too many for one request"),
            ));
        }
        while self.open.iter().any(|one| one.number == self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.open.push(HostRequest {
            number,
            by,
            id,
            outcomes: vec![None; count],
            sentence: String::new(),
        });
        Ok((0..count).map(move |index| HostPlace {
            request: number,
            index,
        }))
    }

    /// Records the outcome of a host.
    pub fn resolve(&mut self, place: HostPlace, outcome: Result<u32, Refused>) {
        let mut open = self.open.iter_mut();
        let Some(request) = open.find(|request| request.number == place.request) else {
            return;
        };
        let outcome = outcome.map_err(|(why, sentence)| {
            if request.sentence.is_empty() {
                request.sentence = sentence;
            }
            why
        });
        if let Some(known) = request.outcomes.get_mut(place.index) {
            *known = Some(outcome);
        }
    }

    /// Takes the answers that are complete, with the tasks that they are for.
    pub fn take_answers(&mut self) -> Vec<(u32, Tell)> {
        let mut answers = Vec::new();
        self.open.retain(|request| match request.answer() {
            Some(answer) => {
                answers.push((request.by, answer));
                false
            }
            None => true,
        });
        answers
    }

    /// Forgets the whole request that a host belongs to. Returns the task that made it and its number.
    pub fn withdraw(&mut self, place: HostPlace) -> Option<(u32, u32)> {
        let mut open = self.open.iter();
        let at = open.position(|request| request.number == place.request)?;
        let request = self.open.remove(at);
        Some((request.by, request.id))
    }
}

/// Facts about a requested host that decide whether it may join the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestedHost<'n> {
    /// The host's name.
    pub name: &'n str,
    /// Whether it is a host of the job, or about to become one.
    pub is_of_job: bool,
    /// Whether it is a host of the virtual machine that the job gets its hosts from, or `None` if the job uses no
    /// machine.
    pub is_of_machine: Option<bool>,
    /// Whether the request is for a second agent on a host that has one.
    pub again: bool,
}

impl RequestedHost<'_> {
    /// Fails with the reason if the job may not have the host.
    pub fn check(&self) -> Result<(), Refused> {
        let name = self.name;
        if self.is_of_job {
            let sentence = format!("the host {name} is already in the job");
            return Err((RequestError::Exists, sentence));
        }
        // The channels of the machine only lead to its own hosts.
        if self.is_of_machine == Some(false) {
            let sentence = format!(
                "{name} is not a host of the job's virtual machine: `regatta add {name}` adds it to the machine and to the job"
            );
            return Err((RequestError::Host, sentence));
        }
        if self.again {
            let sentence = format!("a host can be in a job only once, and {name} is listed twice");
            return Err((RequestError::Exists, sentence));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(why: RequestError, sentence: &str) -> Result<u32, Refused> {
        Err((why, sentence.to_owned()))
    }

    #[test]
    fn a_request_is_answered_once_when_all_of_it_is_known() {
        let mut requests = HostRequests::default();
        let places: Vec<HostPlace> = requests.begin((3, 9), 3).expect("places").collect();
        requests.resolve(places[1], refused(RequestError::Host, "nobody"));
        requests.resolve(places[2], refused(RequestError::System, "no answer"));
        assert!(requests.take_answers().is_empty());
        requests.resolve(places[0], Ok(4));
        let answer = Tell::Hosted {
            id: 9,
            hosts: vec![Ok(4), Err(RequestError::Host), Err(RequestError::System)],
            sentence: "nobody".to_owned(),
        };
        assert_eq!(requests.take_answers(), [(3, answer)]);
        requests.resolve(places[0], Ok(5));
        assert!(requests.take_answers().is_empty());
    }

    #[test]
    fn no_request_has_the_number_of_one_that_is_not_answered() {
        let mut requests = HostRequests::default();
        let first: Vec<HostPlace> = requests.begin((3, 9), 1).expect("places").collect();
        requests.next = 0;
        let second: Vec<HostPlace> = requests.begin((3, 10), 1).expect("places").collect();
        requests.resolve(second[0], Ok(1));
        let answers = requests.take_answers();
        assert!(matches!(answers[..], [(3, Tell::Hosted { id: 10, .. })]));
        assert_eq!(requests.withdraw(first[0]), Some((3, 9)));
    }

    #[test]
    fn a_request_that_is_withdrawn_gets_no_answer_and_others_do() {
        let mut requests = HostRequests::default();
        let first: Vec<HostPlace> = requests.begin((3, 9), 2).expect("places").collect();
        let second: Vec<HostPlace> = requests.begin((3, 10), 1).expect("places").collect();
        assert_eq!(requests.withdraw(first[1]), Some((3, 9)));
        assert_eq!(requests.withdraw(first[0]), None);
        first
            .iter()
            .chain(&second)
            .for_each(|place| requests.resolve(*place, Ok(1)));
        let answers = requests.take_answers();
        assert!(matches!(answers[..], [(3, Tell::Hosted { id: 10, .. })]));
    }

    #[test]
    fn a_request_for_no_host_is_answered_at_once_and_one_for_too_many_is_refused() {
        let mut requests = HostRequests::default();
        assert!(requests.begin((3, 9), MAX_HOSTS_PER_REQUEST + 1).is_err());
        assert!(requests.begin((3, 9), 0).is_ok());
        assert_eq!(requests.take_answers().len(), 1);
    }

    #[test]
    fn a_host_is_of_a_job_once_and_of_its_machine() {
        let host = RequestedHost {
            name: "beta",
            is_of_job: false,
            is_of_machine: None,
            again: false,
        };
        let why = |host: RequestedHost| host.check().map_err(|(why, _)| why);
        assert_eq!(why(host), Ok(()));
        let is_of_machine = Some(true);
        assert_eq!(
            why(RequestedHost {
                is_of_machine,
                ..host
            }),
            Ok(())
        );
        let is_of_machine = Some(false);
        assert_eq!(
            why(RequestedHost {
                is_of_machine,
                ..host
            }),
            Err(RequestError::Host)
        );
        let is_of_job = true;
        let member = RequestedHost {
            is_of_job,
            is_of_machine,
            ..host
        };
        assert_eq!(why(member), Err(RequestError::Exists));
        assert_eq!(
            why(RequestedHost {
                again: true,
                ..host
            }),
            Err(RequestError::Exists)
        );
    }
}
