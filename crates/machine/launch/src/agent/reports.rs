//! Reports about the tasks of this host, sent to the launcher.

use regatta_job::registry::{reply, too_long};
use regatta_wire::control::{Ask, MAX_REQUEST_BYTES};
use regatta_wire::fields::Message;

use super::Agent;
use crate::channel::messages::{Order, Report};

impl Agent {
    /// Sends all reports, and records what the next launcher may need. A request that does not fit into a report is
    /// refused here, since the launcher would never receive it.
    pub(super) fn pass_on_reports(&mut self) {
        while let Some(report) = self.worker.next_report() {
            let following = self.following.as_mut();
            let local = following.map(|following| &mut following.follower.local);
            match &report {
                Report::Asked { task, bytes } if bytes.len() > MAX_REQUEST_BYTES => {
                    let (task, refusal) = (*task, refusal(bytes).into_iter());
                    refusal.for_each(|bytes| self.worker.obey(Order::Tell { task, bytes }));
                    continue;
                }
                Report::Asked { task, bytes } => {
                    local
                        .into_iter()
                        .for_each(|it| it.note_request(*task, bytes));
                }
                Report::Ended { task } => {
                    local.into_iter().for_each(|it| it.note_ended(*task));
                }
                Report::Caught { piece } if piece.route.is_none() => {
                    self.window.borrow_mut().sent(piece.bytes.len());
                }
                _ => {}
            }
            self.send_report(&report);
        }
    }
}

/// Returns the refusal of a request that is too long, or `None` if the request gets no answer.
fn refusal(request: &[u8]) -> Option<Vec<u8>> {
    let id = Ask::decode(request).ok()?.id()?;
    let mut message = Vec::new();
    reply(id, Err(too_long("the request", request.len()))).encode(&mut message);
    Some(message)
}

#[cfg(test)]
mod tests {
    use regatta_wire::control::{RequestError, Tell};

    use super::*;

    #[test]
    fn a_request_that_is_too_long_is_refused_by_its_number() {
        let mut request = Vec::new();
        let put = Ask::Put {
            id: 9,
            name: "entry".to_owned(),
            index: None,
            flags: 0,
            value: vec![0; MAX_REQUEST_BYTES],
        };
        put.encode(&mut request);
        assert!(request.len() > MAX_REQUEST_BYTES);
        let message = Tell::decode(&refusal(&request).expect("an answer"));
        let why = RequestError::Memory;
        assert!(matches!(message, Ok(Tell::Refused { id: 9, why: of, .. }) if of == why));
        assert_eq!(refusal(b"nonsense"), None);
    }
}
