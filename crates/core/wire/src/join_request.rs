//! Requests to join a resident job: a process that was not started by the job asks to become a task of it.
//!
//! Requests and replies travel as frames ([`crate::framing`]) on a socket whose two ends belong to the same user. The
//! reply with a task's number carries descriptors: the segment, the socket to the launcher and, in a job of several
//! hosts, a listening socket.

use crate::messages;

messages! {
    /// From a process to the launcher.
    pub JoinRequest {
        /// Become a task. `version` is that of the job's segment. With a ticket, the process becomes the task that was
        /// already numbered for it.
        1 Enter { version: u32, program: Vec<u8>, ticket: Option<u32> }
        /// Wait until the job can be joined. The launcher answers by closing the connection.
        2 Await {}
    }
}

messages! {
    /// From the launcher to that process.
    pub JoinReply {
        /// The process is task `rank` of a job that began with `size` tasks.
        1 Task { rank: u32, size: u32 }
        /// The process cannot join.
        2 Refused { sentence: String }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Message;

    #[test]
    fn join_requests_and_replies_round_trip_and_half_of_one_is_none() {
        let request = JoinRequest::Enter {
            version: 3,
            program: b"./master".to_vec(),
            ticket: Some(7),
        };
        let task = JoinReply::Task { rank: 7, size: 1 };
        let refused = JoinReply::Refused {
            sentence: "no".to_owned(),
        };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        assert_eq!(JoinRequest::decode(&bytes).unwrap(), request);
        assert!(JoinRequest::decode(&[]).is_err());
        assert!(JoinRequest::decode(&bytes[..bytes.len() - 1]).is_err());
        for said in [task, refused] {
            let mut bytes = Vec::new();
            said.encode(&mut bytes);
            assert_eq!(JoinReply::decode(&bytes).unwrap(), said);
            assert!(JoinReply::decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
