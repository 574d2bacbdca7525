//! Requests of the tasks of this host, on their way to the launcher.

use regatta_job::registry::{reply, too_long};
use regatta_wire::control::{Ask, LONGEST};
use regatta_wire::fields::Message;

use super::Agent;
use crate::channel::messages::Report;

impl Agent {
    /// Passes on what the tasks request. A request that does not fit a report is refused here: the launcher would never see it.
    pub(super) fn pass_on_requests(&mut self) {
        let Some(tasks) = &mut self.tasks else { return };
        let (mut reports, mut refusals) = (Vec::new(), Vec::new());
        let following = &mut self.following;
        let ended = tasks.read_requests(|task, bytes| {
            if bytes.len() > LONGEST {
                refusals.extend(refusal(bytes).map(|message| (task, message)));
                return;
            }
            if let Some(following) = following {
                following.follower.local.note_request(task, bytes);
            }
            let bytes = bytes.to_vec();
            reports.push(Report::Asked { task, bytes });
        });
        for (task, message) in refusals {
            tasks.send(task, &message);
        }
        reports.extend(ended.into_iter().map(|task| Report::Hushed { task }));
        reports.iter().for_each(|report| self.send_report(report));
    }
}

/// The answer to a request that is too long; none, if it is one that gets no answer.
fn refusal(request: &[u8]) -> Option<Vec<u8>> {
    let id = Ask::decode(request).ok()?.id()?;
    let mut message = Vec::new();
    reply(id, Err(too_long("the request", request.len()))).encode(&mut message);
    Some(message)
}

#[cfg(test)]
mod tests {
    use regatta_wire::control::{Tell, Why};

    use super::*;

    #[test]
    fn a_request_that_is_too_long_is_refused_by_its_number() {
        let mut request = Vec::new();
        let put = Ask::Put {
            id: 9,
            name: "entry".to_owned(),
            index: None,
            flags: 0,
            value: vec![0; LONGEST],
        };
        put.encode(&mut request);
        assert!(request.len() > LONGEST);
        let message = Tell::decode(&refusal(&request).expect("an answer"));
        let why = Why::Memory;
        assert!(matches!(message, Ok(Tell::Refused { id: 9, why: of, .. }) if of == why));
        assert_eq!(refusal(b"nonsense"), None);
    }
}
