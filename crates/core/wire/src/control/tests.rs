//! Messages decode to what was encoded, and no bytes make a decoder panic.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::fields::Message;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..20)
}

fn why() -> impl Strategy<Value = RequestError> {
    prop::sample::select(RequestError::ALL.to_vec())
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::Any),
        Just(Place::Here),
        any::<String>().prop_map(Place::Host),
        any::<String>().prop_map(Place::Architecture),
        any::<String>().prop_map(Place::Elsewhere),
    ]
}

prop_compose! {
    fn manner()(context: u32, tag: i32, lines: bool, births: bool) -> OutputFormat {
        OutputFormat { context, tag, lines, births }
    }
}

fn output() -> impl Strategy<Value = Output> {
    prop_oneof![
        Just(Output::AsMine),
        Just(Output::Job),
        manner().prop_map(Output::Me),
        (any::<u32>(), manner()).prop_map(|(to, manner)| Output::Task(Route { to, manner })),
    ]
}

fn then() -> impl Strategy<Value = StreamState> {
    prop_oneof![
        Just(StreamState::More),
        Just(StreamState::Ended),
        Just(StreamState::Closed)
    ]
}

prop_compose! {
    fn spawn()(
        program in bytes(), arguments in vec(bytes(), 0..4), count: u32, place in place(), search in option::of(bytes()),
        directory in option::of(bytes()), environment in vec((bytes(), bytes()), 0..4),
        output in output(), orphans: bool, on_behalf in option::of(any::<u32>()),
        through in option::of(bytes()),
    ) -> Spawn {
        Spawn { program, arguments, count, place, search, directory, environment, output, orphans, through, on_behalf }
    }
}

prop_compose! {
    fn group()(
        name: String, members in vec(option::of(any::<u32>()), 0..4), waiting in vec(any::<u32>(), 0..4), wanted: u32,
    ) -> GroupInfo {
        GroupInfo { name, members, waiting, wanted }
    }
}

prop_compose! {
    fn host_start()(
        host: u32, manner: String, login: String, command: String,
    ) -> HostStart {
        HostStart { host, manner, login, command }
    }
}

prop_compose! {
    fn host_started()(
        host: u32, refused in option::of(why()), line: String,
    ) -> HostStarted {
        HostStarted { host, refused, line }
    }
}

fn ask() -> impl Strategy<Value = Ask> {
    let id = any::<u32>();
    prop_oneof![
        (id, spawn()).prop_map(|(id, order)| Ask::Spawn { id, order }),
        (id, any::<u32>(), any::<i32>(), any::<bool>()).prop_map(|(id, task, signal, end)| {
            Ask::Signal {
                id,
                task,
                signal,
                end,
            }
        }),
        (id, any::<u32>()).prop_map(|(id, subject)| Ask::Watch {
            id,
            what: WatchKind::HostLost,
            subject
        }),
        (
            id,
            any::<String>(),
            option::of(any::<u32>()),
            any::<u32>(),
            bytes()
        )
            .prop_map(|(id, name, index, flags, value)| Ask::Put {
                id,
                name,
                index,
                flags,
                value
            }),
        (id, any::<String>(), any::<u32>(), any::<u64>()).prop_map(|(id, name, index, amount)| {
            Ask::Add {
                id,
                name,
                index,
                amount,
            }
        }),
        (id, any::<String>(), any::<u32>()).prop_map(|(id, group, count)| Ask::Meet {
            id,
            group,
            count
        }),
        (id, any::<u32>()).prop_map(|(task, bytes)| Ask::Taken { task, bytes }),
        (
            id,
            any::<Option<([u8; 4], u16)>>(),
            option::of(any::<u32>())
        )
            .prop_map(|(task, address, silent)| Ask::Reach {
                task,
                address: address.map(Into::into),
                silent
            }),
        (id, vec(any::<String>(), 0..4), option::of(any::<String>())).prop_map(
            |(id, hosts, terminal)| Ask::AddHosts {
                id,
                hosts,
                terminal
            }
        ),
        (id, vec(any::<String>(), 0..4)).prop_map(|(id, hosts)| Ask::RemoveHosts { id, hosts }),
        (id, any::<String>()).prop_map(|(id, text)| Ask::HostFile {
            id,
            text,
            terminal: None
        }),
        id.prop_map(|id| Ask::Starter { id }),
        id.prop_map(|id| Ask::Groups { id }),
        (id, any::<u32>()).prop_map(|(id, status)| Ask::Abort { id, status }),
        (id, any::<bool>()).prop_map(|(id, on)| Ask::Hoster { id, on }),
        (id, any::<u32>(), vec(host_started(), 0..4))
            .prop_map(|(id, request, hosts)| { Ask::HostsStarted { id, request, hosts } }),
        (id, any::<u32>()).prop_map(|(id, host)| Ask::Clock { id, host }),
        (id, any::<u32>(), any::<i32>()).prop_map(|(id, task, status)| Ask::Ended {
            id,
            task,
            status
        }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (any::<u32>(), any::<u32>(), any::<i32>()).prop_map(|(task, host, status)| {
            Event::TaskEnded {
                task,
                host,
                ending: Ending::Exited(status),
            }
        }),
        (
            any::<u32>(),
            any::<u32>(),
            option::of(any::<u32>()),
            bytes()
        )
            .prop_map(|(task, host, parent, program)| Event::TaskCame {
                task,
                host,
                parent,
                program
            }),
        (any::<u32>(), any::<String>()).prop_map(|(host, name)| Event::HostLost { host, name }),
    ]
}

fn tell() -> impl Strategy<Value = Tell> {
    let id = any::<u32>();
    prop_oneof![
        (
            (id, any::<u32>(), any::<u32>()),
            bytes(),
            vec(bytes(), 0..4),
            vec((bytes(), bytes()), 0..4)
        )
            .prop_map(|((watch, task, ticket), program, arguments, environment)| {
                Tell::Start {
                    watch,
                    task,
                    ticket,
                    program,
                    arguments,
                    environment,
                }
            }),
        (id, any::<u32>(), vec(host_start(), 0..4)).prop_map(|(watch, request, hosts)| {
            Tell::StartHosts {
                watch,
                request,
                hosts,
            }
        }),
        (id, why(), any::<String>()).prop_map(|(id, why, sentence)| Tell::Refused {
            id,
            why,
            sentence
        }),
        (
            id,
            vec(
                prop_oneof![any::<u32>().prop_map(Ok), why().prop_map(Err)],
                0..9
            )
        )
            .prop_map(|(id, tasks)| Tell::Spawned {
                id,
                tasks,
                sentence: String::new()
            }),
        (id, vec(option::of(any::<u32>()), 0..9))
            .prop_map(|(id, tasks)| Tell::Members { id, tasks }),
        (id, vec(option::of(any::<u32>()), 0..9), any::<u64>())
            .prop_map(|(id, tasks, barrier)| Tell::Met { id, tasks, barrier }),
        (id, vec(group(), 0..3)).prop_map(|(id, groups)| Tell::Groups { id, groups }),
        (id, event()).prop_map(|(watch, event)| Tell::Event { watch, event }),
        (
            id,
            vec(
                prop_oneof![any::<u32>().prop_map(Ok), why().prop_map(Err)],
                0..9
            ),
            any::<String>()
        )
            .prop_map(|(id, hosts, sentence)| Tell::Hosted {
                id,
                hosts,
                sentence
            }),
        (id, any::<String>()).prop_map(|(task, sentence)| Tell::GiveUp { task, sentence }),
        (id, option::of(any::<u32>()), manner()).prop_map(|(task, parent, manner)| Tell::Born {
            task,
            parent,
            manner
        }),
        (id, 0..2_u32, manner(), bytes(), then()).prop_map(
            |(task, stream, manner, bytes, then)| Tell::Output {
                task,
                stream,
                manner,
                bytes,
                then
            }
        ),
    ]
}

#[test]
fn the_frame_of_an_abort_is_that_of_its_message() {
    let (id, status) = (0, 0x0102_0304);
    let mut frame = Vec::new();
    crate::framing::put(&Ask::Abort { id, status }, &mut frame).unwrap();
    assert_eq!(abort_frame(status)[..], frame);
}

fn encoded(message: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

proptest! {
    #[test]
    fn what_was_said_is_heard(ask in ask(), tell in tell()) {
        prop_assert_eq!(Ask::decode(&encoded(&ask)), Ok(ask));
        prop_assert_eq!(Tell::decode(&encoded(&tell)), Ok(tell));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..80)) {
        if let Ok(ask) = Ask::decode(&bytes) {
            prop_assert_eq!(encoded(&ask), &bytes[..]);
        }
        if let Ok(tell) = Tell::decode(&bytes) {
            prop_assert_eq!(encoded(&tell), &bytes[..]);
        }
    }

    #[test]
    fn damage_is_noticed_or_says_something_else(ask in ask(), at: prop::sample::Index, bit in 0_u8..8) {
        let mut bytes = encoded(&ask);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        if let Ok(other) = Ask::decode(&bytes) {
            prop_assert_ne!(other, ask);
        }
    }
}
