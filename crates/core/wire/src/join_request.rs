//! Requests to join a job that stays: a process that nobody of the job has started asks to become a task of it.
//!
//! Requests and replies travel as frames ([`crate::framing`]) on a socket whose two ends belong to one user. With a task's
//! number come descriptors: the segment, the socket to the launcher and, in a job of several hosts, a listening socket.

use crate::messages;

messages! {
    /// From a process to the launcher.
    pub JoinRequest {
        /// It asks to become a task, and speaks this version of the job's segment. With a ticket: the task that has a
        /// number already.
        1 Enter { version: u32, program: Vec<u8>, ticket: Option<u32> }
        /// It wants to know when the job can be joined. The answer is that the connection ends.
        2 Await {}
    }
}

messages! {
    /// From the launcher to that process.
    pub JoinReply {
        /// It is this task, of a job that began with so many.
        1 Task { rank: u32, size: u32 }
        /// It cannot be.
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
