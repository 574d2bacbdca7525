//! Tests of the decoders, and of the safety of the vote, with random inputs.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use regatta_wire::fields::{Rest, Short};

use crate::ballot::{Acceptor, Ballot, Proposal, Vote};
use crate::datagram::{Body, Head, Page, decode, encode};
use crate::{Change, Event, Facts, HostId, Input, Lineage, Membership, Output, Roll, Settings};

fn host() -> impl Strategy<Value = HostId> {
    (any::<SocketAddr>(), any::<u32>(), any::<u16>())
        .prop_map(|(address, session, nonce)| HostId::new(address, session, nonce))
}

fn facts() -> impl Strategy<Value = Facts> {
    (".{0,16}", any::<u16>(), "[a-z0-9_]{0,9}").prop_map(|(name, cores, architecture)| Facts {
        name,
        cores,
        architecture,
    })
}

fn lineage() -> impl Strategy<Value = Lineage> {
    any::<(u16, u16, u32, u32)>().prop_map(Lineage::any)
}

fn change() -> impl Strategy<Value = Change> {
    let hosts = || prop::collection::vec(host(), 0..20);
    (hosts(), hosts(), prop::option::of(lineage())).prop_map(|(removed, added, fork)| Change {
        removed,
        added,
        fork,
    })
}

fn ballot() -> impl Strategy<Value = Ballot> {
    (any::<u32>(), host()).prop_map(|(round, by)| Ballot { round, by })
}

fn vote() -> impl Strategy<Value = Vote> {
    prop_oneof![
        ballot().prop_map(Vote::Prepare),
        (ballot(), prop::option::of((ballot(), change())))
            .prop_map(|(at, accepted)| Vote::Promise(at, accepted)),
        (ballot(), change()).prop_map(|(at, change)| Vote::Accept(at, change)),
        ballot().prop_map(Vote::Accepted),
        ballot().prop_map(Vote::Refused),
        Just(Vote::Doubt),
    ]
}

fn page() -> impl Strategy<Value = Page> {
    let hosts = prop::collection::vec((host(), any::<u32>(), prop::option::of(facts())), 0..10);
    let words = any::<[u32; 4]>();
    (words, hosts).prop_map(|([epoch, next, total, first], hosts)| Page {
        epoch,
        next,
        total,
        first,
        hosts: Short(hosts),
    })
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        host().prop_map(Body::Bye),
        host().prop_map(Body::Hail),
        (host(), host(), any::<u16>()).prop_map(|(by, host, incarnation)| Body::Accused {
            by,
            host,
            incarnation
        }),
        prop::collection::vec((host(), any::<u16>()), 0..40)
            .prop_map(|suspects| Body::Suspects(Short(suspects))),
        host().prop_map(Body::Taken),
        (host(), any::<u32>(), any::<u32>()).prop_map(|(by, epoch, page)| Body::Behind {
            by,
            epoch,
            page
        }),
        (any::<u32>(), prop::collection::vec(change(), 0..3)).prop_map(|(epoch, changes)| {
            Body::Changes {
                epoch,
                changes: Short(changes),
            }
        }),
        page().prop_map(Body::Page),
        host().prop_map(Body::Ask),
        (host(), facts()).prop_map(|(host, facts)| Body::Facts(host, facts)),
        (host(), any::<u32>(), vote()).prop_map(|(by, epoch, vote)| Body::Vote { by, epoch, vote }),
    ]
}

fn head(machine: u32, epoch: u32) -> Head {
    Head {
        machine,
        lineage: Lineage::default(),
        epoch,
        is_on_roll: true,
        live: true,
    }
}

fn numbered(port: u16) -> HostId {
    HostId::new(SocketAddr::from(([10, 0, 0, 1], port)), 1, 0)
}

proptest! {
    #[test]
    fn what_is_written_is_read(machine: u32, lineage in lineage(), epoch: u32, is_on_roll: bool, live: bool, body in body()) {
        let head = Head { machine, lineage, epoch, is_on_roll, live };
        let bytes = encode(head, &body);
        prop_assert_eq!(decode(&bytes), Ok((head, body)));
    }

    #[test]
    fn a_datagram_cut_short_is_refused(body in body(), cut in 1..200usize) {
        let bytes = encode(head(1, 2), &body);
        prop_assert!(decode(&bytes[..bytes.len().saturating_sub(cut)]).is_err());
    }

    #[test]
    fn a_host_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), body in body()) {
        let own = numbered(1);
        let mut member = Membership::new(own, Facts::default(), Settings::default(), 1, Duration::ZERO);
        member.handle(Duration::ZERO, Input::CreateMachine);
        let swim = Body::Swim(Rest(bytes.clone()));
        for bytes in [&bytes, &encode(head(0, 9), &swim), &encode(head(0, 1), &body)] {
            let from = numbered(2).address();
            member.handle(Duration::from_millis(1), Input::Datagram { from, bytes });
            while member.poll().is_some() {}
        }
    }

    /// Two hosts propose to five at the same time, with every message randomly lost or late: what one has decided, the
    /// other cannot undo.
    #[test]
    fn a_vote_has_one_outcome(order in prop::collection::vec((0..2usize, 0..5usize, any::<bool>()), 0..120), rounds in any::<[u8; 2]>()) {
        let hosts: Vec<HostId> = (1..=5).map(numbered).collect();
        let roll = Roll::founded(&hosts);
        let mut acceptors: Vec<Acceptor> = (0..5).map(|_| Acceptor::default()).collect();
        let wish = |who: usize| Change { removed: vec![hosts[4 - who]], added: Vec::new(), fork: None };
        let ballot = |who: usize| Ballot { round: 1 + u32::from(rounds[who] % 2), by: hosts[who] };
        let mut proposals = [0, 1].map(|who| Proposal::new(ballot(who), wish(who)));
        let mut decided: Vec<Change> = Vec::new();
        let quorum = |votes: &HashSet<HostId>| roll.is_quorum(votes.len(), votes.contains(&hosts[0]));
        for (who, whom, arrives) in order {
            let answer = acceptors[whom].answer(&proposals[who].question());
            if let Some(answer) = answer.filter(|_| arrives) {
                proposals[who].count(hosts[whom], answer);
                if proposals[who].is_decided(quorum) {
                    decided.push(proposals[who].change().clone());
                }
            }
        }
        prop_assert!(decided.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn a_roll_is_the_same_whoever_follows_it(changes in prop::collection::vec(change(), 0..6)) {
        let first = Roll::founded(&[numbered(1), numbered(2)]);
        let (mut a, mut b) = (first.clone(), first);
        for change in &changes {
            a.advance(change);
        }
        for change in &changes {
            b.advance(change);
            b = Roll::adopted(b.lineage(), b.epoch(), b.arrivals(), b.entries().to_vec());
        }
        prop_assert_eq!(a, b);
    }
}

/// Facts are sent separately, and may be received before their host is known and after it is gone.
#[test]
fn a_host_is_described_only_while_it_is_there() {
    let (own, other) = (numbered(1), numbered(2));
    let facts = || Facts {
        name: "other".to_owned(),
        ..Facts::default()
    };
    let mut member = Membership::new(
        own,
        Facts::default(),
        Settings::default(),
        1,
        Duration::ZERO,
    );
    let take = |member: &mut Membership, body: Body| {
        let bytes = encode(
            Head {
                lineage: member.roll().lineage(),
                ..head(0, 1)
            },
            &body,
        );
        let (from, bytes) = (other.address(), bytes.as_slice());
        member.handle(Duration::from_millis(1), Input::Datagram { from, bytes });
        let outputs = std::iter::from_fn(|| member.poll());
        outputs
            .filter_map(|output| match output {
                Output::Event(
                    event @ (Event::HostUp(_) | Event::Described(..) | Event::Left(_)),
                ) => Some(event),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    member.handle(Duration::ZERO, Input::CreateMachine);
    assert_eq!(take(&mut member, Body::Facts(other, facts())), []);
    let joined = Change {
        removed: Vec::new(),
        added: vec![other],
        fork: None,
    };
    let changes = Body::Changes {
        epoch: 1,
        changes: Short(vec![joined]),
    };
    assert_eq!(
        take(&mut member, changes),
        [Event::HostUp(other), Event::Described(other, facts())]
    );
    assert_eq!(take(&mut member, Body::Bye(other)), [Event::Left(other)]);
    assert_eq!(take(&mut member, Body::Facts(other, facts())), []);
}

#[test]
fn any_two_quorums_meet() {
    for count in 1..=9u16 {
        let hosts: Vec<HostId> = (1..=count).map(numbered).collect();
        let roll = Roll::founded(&hosts);
        let is_quorum = |set: u32| roll.is_quorum(set.count_ones() as usize, set & 1 == 1);
        for a in (0..1u32 << count).filter(|set| is_quorum(*set)) {
            for b in (0..1u32 << count).filter(|set| is_quorum(*set)) {
                assert_ne!(a & b, 0, "of {count}: {a:b} and {b:b}");
            }
        }
    }
}

/// Returns a number as encoded in datagrams.
fn word(value: u8) -> Vec<u8> {
    vec![value, 0, 0, 0]
}

/// Returns the bytes of [`numbered`].
fn id(port: u8) -> Vec<u8> {
    let address = [&[0; 10][..], &[0xff, 0xff, 10, 0, 0, 1], &[port, 0]];
    [address.concat(), vec![0, 0], word(1)].concat()
}

/// Returns a lineage and its bytes.
fn fork() -> (Lineage, Vec<u8>) {
    let bytes = [vec![1, 0, 2, 0], word(3), word(4)].concat();
    (Lineage::any((1, 2, 3, 4)), bytes)
}

/// Returns bodies and their bytes.
fn written() -> Vec<(Body, Vec<u8>)> {
    let (by, host, epoch) = (numbered(7), numbered(8), 9);
    let ballot = Ballot { round: 1, by };
    let change = Change {
        removed: vec![host],
        added: vec![by],
        fork: Some(fork().0),
    };
    let facts = Facts {
        name: "ab".to_owned(),
        cores: 2,
        architecture: "x".to_owned(),
    };
    let hosts = Short(vec![(host, 5, Some(facts))]);
    let (next, total, first) = (2, 3, 4);
    let page = Page {
        epoch,
        next,
        total,
        first,
        hosts,
    };
    let vote = Vote::Promise(ballot, Some((ballot, change)));
    let words = [word(9), word(2), word(3), word(4)].concat();
    let described = b"\x01\x02\0\x02ab\x01x".to_vec();
    let ballots = [word(1), id(7), word(1), id(7)].concat();
    let changed = [vec![1, 1], id(8), id(7), vec![1], fork().1].concat();
    vec![
        (Body::Swim(Rest(vec![1, 2])), vec![0, 1, 2]),
        (
            Body::Behind { by, epoch, page: 2 },
            [vec![3], id(7), word(9), word(2)].concat(),
        ),
        (
            Body::Suspects(Short(vec![(host, 4)])),
            [vec![10, 1], id(8), vec![4, 0]].concat(),
        ),
        (
            Body::Page(page),
            [vec![5], words, vec![1], id(8), word(5), described].concat(),
        ),
        (
            Body::Vote { by, epoch, vote },
            [vec![8], id(7), word(9), vec![2], ballots, changed].concat(),
        ),
    ]
}

/// Hosts with the same protocol version must agree about every byte: a change of the format requires a new version.
#[test]
fn datagrams_of_this_version_have_these_bytes() {
    let (lineage, bytes) = fork();
    let head = Head {
        lineage,
        ..head(5, 6)
    };
    let front = [b"R\x03".to_vec(), word(5), bytes, word(6), vec![3]].concat();
    for (body, bytes) in written() {
        assert_eq!(
            encode(head, &body),
            [front.clone(), bytes].concat(),
            "raise VERSION in crates/machine/membership/src/datagram.rs if this is intended"
        );
    }
}
