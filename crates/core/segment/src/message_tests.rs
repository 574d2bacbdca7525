//! Checks that the messages between tasks and their launcher change only with the segment's version: examples of the
//! encodings, as bytes.

use std::fmt::Write;

use regatta_wire::control::{
    self, Ask, Ending, Event, OutputFormat, RequestError, Spawn, StreamState, Tell, WatchKind,
};
use regatta_wire::fields::Message;
use regatta_wire::join_request::{JoinReply, JoinRequest};

use crate::job::VERSION;
use crate::join_token::JoinToken;

const EXAMPLES: &str = "\
token 313a323a333a343a353a36
enter 010100000001000000700102000000
task 010100000002000000
spawn 010100000001000000700000000001000000020000000000000000000001000000
watch 05010000000402000000
put 0701000000010000006e0102000000030000000100000076
reach 1b010000000100000000000000000000ffff0a000001020000
abort 090000001c0000000001000000
refused 01010000000a0100000073
spawned 0301000000020000000002000000060100000073
event 09010000000102000000030000000209000000
output 0a010000000200000003000000fcffffff0100010000006f00
";

/// Returns a line for each example: its name and its bytes.
fn examples() -> String {
    let mut lines = String::new();
    let mut example = |name: &str, bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(lines, "{name} {hex}");
    };
    fn bytes(message: &impl Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    }
    let token = JoinToken {
        version: 1,
        fd: 2,
        rank: 3,
        size: 4,
        control: Some(5),
        listener: Some(6),
    };
    example("token", token.to_string().as_bytes());
    let enter = JoinRequest::Enter {
        version: 1,
        program: b"p".to_vec(),
        ticket: Some(2),
    };
    example("enter", &bytes(&enter));
    example("task", &bytes(&JoinReply::Task { rank: 1, size: 2 }));
    let spawn = Ask::Spawn {
        id: 1,
        order: Spawn::one_here(b"p".to_vec()),
    };
    example("spawn", &bytes(&spawn));
    let watch = Ask::Watch {
        id: 1,
        what: WatchKind::Tasks,
        subject: 2,
    };
    example("watch", &bytes(&watch));
    let put = Ask::Put {
        id: 1,
        name: "n".to_owned(),
        index: Some(2),
        flags: 3,
        value: b"v".to_vec(),
    };
    example("put", &bytes(&put));
    let reach = Ask::Reach {
        task: 1,
        address: Some(([10, 0, 0, 1], 2).into()),
        silent: None,
    };
    example("reach", &bytes(&reach));
    example("abort", &control::abort_frame(1));
    let refused = Tell::Refused {
        id: 1,
        why: RequestError::State,
        sentence: "s".to_owned(),
    };
    example("refused", &bytes(&refused));
    let spawned = Tell::Spawned {
        id: 1,
        tasks: vec![Ok(2), Err(RequestError::Host)],
        sentence: "s".to_owned(),
    };
    example("spawned", &bytes(&spawned));
    let event = Tell::Event {
        watch: 1,
        event: Event::TaskEnded {
            task: 2,
            host: 3,
            ending: Ending::Signalled(9),
        },
    };
    example("event", &bytes(&event));
    let output = Tell::Output {
        task: 1,
        stream: 2,
        manner: OutputFormat {
            context: 3,
            tag: -4,
            lines: true,
            births: false,
        },
        bytes: b"o".to_vec(),
        then: StreamState::More,
    };
    example("output", &bytes(&output));
    lines
}

#[test]
fn messages_of_tasks_and_launchers_of_this_version_have_these_bytes() {
    let now = examples();
    assert_eq!(
        now, EXAMPLES,
        "what tasks and launchers say to each other has changed: raise VERSION in crates/core/segment/src/job.rs (now {VERSION}) if this is intended, and write these lines into EXAMPLES:\n{now}"
    );
}
