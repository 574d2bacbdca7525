//! Messages are decoded to what was encoded, and no bytes make a decoder panic.

use crate::tasks::bind::Share;
use proptest::collection::vec;
use proptest::prelude::*;

use regatta_job::End;
use regatta_job::failover::Candidate;
use regatta_job::hosts::Interface;

use super::*;
use regatta_segment::job::TaskState;
use regatta_wire::control::{Output, OutputFormat, Place};

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u16; 8]>().prop_map(|words| std::net::Ipv6Addr::from(words).to_canonical()),
    ]
}

fn socket() -> impl Strategy<Value = SocketAddr> {
    (address(), any::<u16>()).prop_map(SocketAddr::from)
}

fn cause() -> impl Strategy<Value = Cause> {
    prop_oneof![
        any::<i32>().prop_map(Cause::Exited),
        any::<i32>().prop_map(Cause::Signalled),
        Just(Cause::Lost),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        any::<i32>().prop_map(End::Exited),
        (any::<i32>(), any::<bool>()).prop_map(|(signal, core)| End::Signalled { signal, core }),
        Just(End::Lost),
    ]
}

fn bind() -> impl Strategy<Value = Bind> {
    prop_oneof![
        Just(Bind::Auto),
        Just(Bind::Free),
        Just(Bind::Core),
        vec(0..1000_usize, 0..5).prop_map(Bind::List),
    ]
}

fn preparation() -> impl Strategy<Value = Preparation> {
    let words = vec(bytes(), 0..4);
    let environment = vec((bytes(), bytes()), 0..4);
    let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), any::<bool>());
    let key = any::<[u8; 32]>().prop_map(|mut key| Key::taken(&mut key));
    (
        vec(any::<u32>(), 0..9),
        address(),
        words,
        environment,
        bytes(),
        bind(),
        numbers,
        key,
    )
        .prop_map(
            |(
                host_of,
                address,
                arguments,
                environment,
                directory,
                bind,
                (here, window, silence, trusted),
                key,
            )| {
                Preparation {
                    here,
                    host_of,
                    key,
                    trusted,
                    address,
                    program: directory.clone(),
                    arguments,
                    environment,
                    directory,
                    bind,
                    share: Share {
                        before: window / 3,
                        others: silence / 2,
                    },
                    window,
                    most: window ^ silence,
                    silence,
                    unreachable: trusted.then_some(window),
                    join_name: format!("job{silence}"),
                }
            },
        )
}

fn route() -> impl Strategy<Value = Route> {
    (
        any::<u32>(),
        any::<u32>(),
        any::<i32>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(to, context, tag, lines, births)| Route {
            to,
            manner: OutputFormat {
                context,
                tag,
                lines,
                births,
            },
        })
}

fn refused() -> impl Strategy<Value = Option<(RequestError, String)>> {
    proptest::option::of(".{0,9}".prop_map(|sentence| (RequestError::Program, sentence)))
}

fn world() -> impl Strategy<Value = World> {
    let places = vec((any::<u32>(), proptest::option::of(socket())), 0..4);
    let parent = proptest::option::of(any::<u32>());
    let request = proptest::option::of(any::<(u32, u32)>());
    (any::<u32>(), parent, request, places).prop_map(|(first, parent, request, places)| World {
        first,
        parent,
        request,
        places,
    })
}

fn succession() -> impl Strategy<Value = SuccessionOrder> {
    let candidate = (any::<u32>(), ".{0,9}", ".{0,9}").prop_map(|(number, name, run)| Candidate {
        number,
        name,
        run,
    });
    (".{0,9}", ".{0,9}", vec(candidate, 0..4)).prop_map(|(launcher, name, candidates)| {
        SuccessionOrder {
            launcher,
            name,
            candidates,
        }
    })
}

fn failover() -> impl Strategy<Value = FailoverPlan> {
    let numbers = any::<(u32, u32, u32, bool, bool)>();
    let timeout = proptest::option::of(any::<u64>());
    let interface = proptest::option::of(".{0,9}");
    (".{0,9}", ".{0,9}", numbers, timeout, interface).prop_map(
        |(job, machine, (grace, form, connect, goes_on, verbose), timeout, interface)| {
            FailoverPlan {
                job,
                machine,
                goes_on,
                grace,
                timeout,
                form,
                connect,
                interface,
                verbose,
            }
        },
    )
}

fn order() -> impl Strategy<Value = Order> {
    let target =
        (any::<u32>(), any::<u16>(), vec(address(), 0..4)).prop_map(|(host, port, candidates)| {
            Target {
                host,
                port,
                candidates,
            }
        });
    prop_oneof![
        vec(target, 0..3).prop_map(|targets| Order::Probe { targets }),
        preparation().prop_map(|job| Order::Prepare { job }),
        vec(socket(), 0..5).prop_map(|addresses| Order::Start { addresses }),
        (any::<u32>(), proptest::option::of(cause()))
            .prop_map(|(rank, cause)| Order::Gone { rank, cause }),
        any::<i32>().prop_map(|signal| Order::Signal { signal }),
        any::<u32>().prop_map(|bytes| Order::Credit { bytes }),
        bytes().prop_map(|bytes| Order::Input { bytes }),
        Just(Order::Beat {}),
        Just(Order::Stop {}),
        (any::<u32>(), bytes()).prop_map(|(task, bytes)| Order::Tell { task, bytes }),
        (any::<u32>(), any::<i32>()).prop_map(|(task, signal)| Order::SignalTask { task, signal }),
        (
            any::<u32>(),
            any::<u32>(),
            bytes(),
            vec(bytes(), 0..3),
            proptest::option::of(route())
        )
            .prop_map(
                |(spawn, count, program, arguments, route)| Order::PrepareSpawn {
                    spawn,
                    count,
                    route,
                    order: Spawn {
                        orphans: count > 5,
                        through: (count > 7).then(|| b"gdb".to_vec()),
                        on_behalf: (count > 6).then_some(count),
                        search: (count > 3).then(|| program.clone()),
                        output: route.map_or(Output::Job, |route| Output::Me(route.manner)),
                        directory: (count > 7).then(|| program.clone()),
                        environment: vec![(program.clone(), program.clone())],
                        place: Place::Here,
                        program,
                        arguments,
                        count,
                    },
                }
            ),
        (any::<u32>(), any::<u32>()).prop_map(|(by, bytes)| Order::Taken { by, bytes }),
        world().prop_map(|world| Order::Enter { world }),
        failover().prop_map(|plan| Order::Failover { plan }),
        succession().prop_map(|order| Order::Succession { order }),
        (any::<bool>(), bytes(), any::<bool>()).prop_map(|(change, bytes, last)| Order::Copy {
            change,
            bytes,
            last
        }),
        any::<(u32, u64)>().prop_map(|(tasks, changes)| Order::Lead { tasks, changes }),
        (any::<u32>(), any::<u32>()).prop_map(|(by, id)| Order::Clock { by, id }),
        any::<[u32; 3]>().prop_map(|[spawn, first, count]| Order::StartSpawn {
            share: SpawnedTasks {
                spawn,
                first,
                count
            }
        }),
        (any::<u32>(), any::<u32>()).prop_map(|(rank, stream)| Order::Deaf { rank, stream }),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    let interface = (".{0,8}", address()).prop_map(|(name, address)| Interface { name, address });
    let hello = (
        any::<u32>(),
        ".{0,20}",
        vec(interface, 0..3),
        proptest::option::of(address()),
        any::<u16>(),
        any::<Token>(),
    )
        .prop_map(|(cores, host, candidates, launcher, port, token)| Hello {
            cores,
            allowed: vec![cores, port.into()],
            architecture: host.clone(),
            host,
            candidates,
            launcher,
            port,
            token,
        })
        .boxed();
    let sight =
        (any::<u32>(), address(), any::<Token>()).prop_map(|(host, address, token)| Sight {
            host,
            address,
            token,
        });
    let state = prop_oneof![
        Just(TaskState::Expected),
        Just(TaskState::Joined),
        Just(TaskState::Left),
        Just(TaskState::Dead)
    ]
    .boxed();
    let ended =
        (any::<u32>(), any::<u32>(), end(), state.clone()).prop_map(|(rank, pid, end, state)| {
            Ended {
                rank,
                pid,
                end,
                state,
            }
        });
    let numbers = || vec(any::<u32>(), 0..4);
    let known = (
        hello.clone(),
        any::<(u32, u32, u32)>(),
        vec(world(), 0..3),
        numbers(),
        vec(any::<(u32, u32)>(), 0..4),
        vec(ended, 0..3),
        vec(any::<(u32, u32)>(), 0..4),
        vec((any::<u32>(), proptest::option::of(cause())), 0..4),
        (vec(any::<(u32, u32)>(), 0..4), numbers()),
    )
        .prop_map(
            |(
                hello,
                (tasks, starts, asked),
                worlds,
                unstarted,
                running,
                ended,
                received,
                gone,
                (open_streams, silent),
            )| {
                let handover = Handover {
                    host: 0,
                    tasks,
                    worlds,
                    unstarted,
                    running,
                    ended,
                    received,
                    gone,
                    requests: Vec::new(),
                    open_streams,
                    silent,
                };
                let state = AgentState {
                    hello,
                    starts,
                    handover,
                };
                Report::State { state, asked }
            },
        );
    prop_oneof![
        known,
        bytes().prop_map(|bytes| Report::Copy { bytes }),
        hello.prop_map(|hello| Report::Hello { hello }),
        any::<(u32, u32, u64)>().prop_map(|(by, id, time)| Report::Clock { by, id, time }),
        vec(sight, 0..3).prop_map(|seen| Report::Probed { seen }),
        vec((any::<u32>(), socket()), 0..4).prop_map(|addresses| Report::Prepared { addresses }),
        (any::<u32>(), ".{0,30}")
            .prop_map(|(status, sentence)| Report::Refused { status, sentence }),
        (any::<u32>(), any::<u32>()).prop_map(|(rank, pid)| Report::Started { rank, pid }),
        (any::<u32>(), any::<u32>(), bytes()).prop_map(|(rank, stream, bytes)| Report::Output {
            rank,
            stream,
            bytes
        }),
        (any::<u32>(), any::<u32>(), end(), state).prop_map(|(rank, pid, end, state)| {
            let task = Ended {
                rank,
                pid,
                end,
                state,
            };
            Report::Ended { task }
        }),
        ".{0,30}".prop_map(|names| Report::Strays { names }),
        any::<u32>().prop_map(|starts| Report::Settled { starts }),
        (any::<u32>(), bytes()).prop_map(|(task, bytes)| Report::Asked { task, bytes }),
        (
            any::<u32>(),
            vec(proptest::option::of(socket()), 0..4),
            refused()
        )
            .prop_map(|(spawn, addresses, refused)| Report::SpawnPrepared {
                spawn,
                addresses,
                refused
            }),
        (any::<u32>(), refused()).prop_map(|(first, refused)| Report::Entered { first, refused }),
        (any::<u32>(), any::<u32>(), refused())
            .prop_map(|(task, pid, refused)| Report::SpawnStarted { task, pid, refused }),
        any::<u32>().prop_map(|bytes| Report::Taken { bytes }),
        ".{0,30}".prop_map(|why| Report::Farewell { why }),
        Just(Report::Beat {}),
    ]
}

fn comes_back<M: Message + PartialEq + std::fmt::Debug>(message: &M) -> Result<(), TestCaseError> {
    let mut encoded = Vec::new();
    message.encode(&mut encoded);
    let decoded = M::decode(&encoded);
    prop_assert_eq!(decoded.as_ref(), Ok(message));
    // A part of a message is no message, nor is a message with trailing bytes.
    for length in 0..encoded.len() {
        prop_assert!(M::decode(&encoded[..length]).is_err());
    }
    encoded.push(0);
    prop_assert!(M::decode(&encoded).is_err());
    Ok(())
}

proptest! {
    #[test]
    fn orders_come_back(order in order()) {
        comes_back(&order)?;
    }

    #[test]
    fn reports_come_back(report in report()) {
        comes_back(&report)?;
    }

    #[test]
    fn nothing_panics(bytes in vec(any::<u8>(), 0..400)) {
        let _ = Order::decode(&bytes);
        let _ = Report::decode(&bytes);
    }

    /// Damage to a real message is detected, or results in another message. It never makes a decoder allocate for bytes
    /// that do not exist.
    #[test]
    fn damage_is_harmless(order in order(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut encoded = Vec::new();
        order.encode(&mut encoded);
        let at = at.index(encoded.len());
        encoded[at] = byte;
        let _ = Order::decode(&encoded);
    }
}
