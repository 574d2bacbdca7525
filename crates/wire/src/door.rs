//! What is said at the door of a job that stays: a process that nobody of the job has started asks to become a task of it.
//!
//! Both travel as frames ([`crate::frames`]) on a socket whose two ends belong to one user. With a welcome come descriptors:
//! the segment, the socket to the launcher and, in a job of several hosts, a listening socket.

use crate::messages;

messages! {
    /// From a process to the launcher.
    pub Knock {
        /// It asks to become a task, and speaks this version of the job's segment. With a ticket: the task that has a
        /// number already.
        1 Enter { version: u32, program: Vec<u8>, ticket: Option<u32> }
        /// It wants to know when the door is open. The answer is that the connection ends.
        2 Await {}
    }
}

messages! {
    /// From the launcher to that process.
    pub Welcome {
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
    fn words_at_the_door_round_trip_and_half_of_one_is_no_word() {
        let knock = Knock::Enter {
            version: 3,
            program: b"./master".to_vec(),
            ticket: Some(7),
        };
        let welcome = Welcome::Task { rank: 7, size: 1 };
        let refused = Welcome::Refused {
            sentence: "no".to_owned(),
        };
        let mut bytes = Vec::new();
        knock.encode(&mut bytes);
        assert_eq!(Knock::decode(&bytes).unwrap(), knock);
        assert!(Knock::decode(&[]).is_err());
        assert!(Knock::decode(&bytes[..bytes.len() - 1]).is_err());
        for said in [welcome, refused] {
            let mut bytes = Vec::new();
            said.encode(&mut bytes);
            assert_eq!(Welcome::decode(&bytes).unwrap(), said);
            assert!(Welcome::decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
