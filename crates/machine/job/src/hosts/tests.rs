use std::net::IpAddr;
use std::time::Duration;

use super::*;

mod random;

const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);
const START: Duration = Duration::ZERO;

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn program() -> Program {
    Program {
        identity: "1 (here)".to_owned(),
        machine: "Linux here".to_owned(),
    }
}

fn arrivals() -> Arrivals {
    Arrivals::new(program(), None, 7)
}

fn expected(name: &str, admission: Admission) -> Expected {
    Expected {
        name: name.to_owned(),
        command: format!("ssh {name} sh"),
        number: None,
        is_called: false,
        admission,
    }
}

/// Returns the greeting of a host with this identity and these addresses, the likeliest first.
fn hello(identity: &str, addresses: &[u8]) -> Hello {
    let interface = |&last: &u8| Interface {
        name: format!("eth{last}"),
        address: ip(last),
    };
    Hello {
        cores: 2,
        allowed: vec![0, 1],
        architecture: "here".to_owned(),
        host: identity.to_owned(),
        candidates: addresses.iter().map(interface).collect(),
        launcher: None,
        port: 9,
        token: [addresses.first().copied().unwrap_or(0); 16],
    }
}

fn greeting(identity: &str, addresses: &[u8]) -> Input {
    Input::Greeting(Box::new(hello(identity, addresses)), Vec::new())
}

fn ready() -> Input {
    Input::Line(format!("{READY} 1 (here)"))
}

fn effects(arrivals: &mut Arrivals) -> Vec<Effect> {
    std::iter::from_fn(|| arrivals.poll()).collect()
}

fn feed(arrivals: &mut Arrivals, id: u32, inputs: impl IntoIterator<Item = Input>) {
    for input in inputs {
        arrivals.handle(START, id, input);
    }
}

/// Returns the only cause for which a host is lost in these effects.
fn cause(effects: &[Effect], id: u32) -> Departure {
    let mut causes = effects.iter().filter_map(|effect| match effect {
        Effect::Lost(lost, why) if *lost == id => Some(why.clone()),
        _ => None,
    });
    let cause = causes.next().expect("a cause");
    assert_eq!(causes.next(), None);
    cause
}

/// Returns two hosts, and this one as the third, that have sent their greetings with these addresses.
fn begun(admission: Admission, addresses: [&[u8]; 3]) -> Arrivals {
    let mut arrivals = arrivals();
    for (name, addresses) in ["a", "b"].into_iter().zip(addresses) {
        let id = arrivals.expect(START, expected(name, admission));
        arrivals.tick(START);
        feed(
            &mut arrivals,
            id,
            [Input::Opened, ready(), greeting(name, addresses)],
        );
    }
    arrivals.expect_own(expected("own", admission), hello("own", addresses[2]));
    assert!(arrivals.is_settled() && arrivals.failure().is_none());
    assert_eq!(effects(&mut arrivals), [Effect::Open(0), Effect::Open(1)]);
    arrivals
}

/// Lets every host see all the addresses that it looks for and for which `sees` returns true. Returns how many hosts
/// were asked.
fn look(arrivals: &mut Arrivals, sees: impl Fn(u32, IpAddr) -> bool) -> usize {
    let asked = effects(arrivals);
    for effect in &asked {
        let Effect::Ask(by, Question::Probe(targets)) = effect else {
            panic!("{effect:?}");
        };
        let mut sights = Vec::new();
        for target in targets {
            for &address in target
                .candidates
                .iter()
                .filter(|address| sees(*by, **address))
            {
                let hellos: Vec<(u32, &Hello)> = arrivals.hellos().collect();
                let token = hellos
                    .iter()
                    .find(|(id, _)| *id == target.host)
                    .expect("it")
                    .1
                    .token;
                sights.push(Sight {
                    host: target.host,
                    address,
                    token,
                });
            }
        }
        arrivals.handle(START, *by, Input::Answer(Answer::Probed(sights)));
    }
    asked.len()
}

#[test]
fn a_host_that_comes_alone_is_prepared_at_its_address_and_joins_under_the_next_number() {
    let mut arrivals = arrivals();
    let id = arrivals.expect(
        START,
        expected("a", Admission::told(ARRIVAL_TIMEOUT, ip(2))),
    );
    arrivals.tick(START);
    feed(
        &mut arrivals,
        id,
        [Input::Opened, ready(), greeting("a", &[1, 2])],
    );
    let question = Question::Prepare {
        number: 7,
        address: Some(ip(2)),
        ranks: Vec::new(),
    };
    assert_eq!(
        effects(&mut arrivals),
        [Effect::Open(id), Effect::Ask(id, question)]
    );
    feed(
        &mut arrivals,
        id,
        [Input::Answer(Answer::Prepared(Vec::new()))],
    );
    assert_eq!(effects(&mut arrivals), [Effect::Joined(id, 7)]);
    assert_eq!((arrivals.deadline(), arrivals.new_number()), (None, 8));
}

#[test]
fn a_host_that_was_told_of_is_opened_again_while_it_may_not_know_us_and_a_requested_one_is_not() {
    let no_shell = || Input::Closed("no shell".to_owned());
    let trouble = || Input::Line(format!("{TROUBLE} it is full"));
    let told = Admission::told(ARRIVAL_TIMEOUT, ip(1));
    for (admission, since, why, again) in [
        (told, START, no_shell(), true),
        (told, START + 3 * SECOND, no_shell(), false),
        (told, START, trouble(), false),
        (
            Admission::requested(ARRIVAL_TIMEOUT, false),
            START,
            no_shell(),
            false,
        ),
    ] {
        let mut arrivals = arrivals();
        let id = arrivals.expect(START, expected("a", admission));
        arrivals.tick(START);
        assert_eq!(effects(&mut arrivals), [Effect::Open(id)]);
        arrivals.handle(since, id, Input::Opened);
        arrivals.handle(since, id, why);
        arrivals.handle(since, id, no_shell());
        let all = effects(&mut arrivals);
        assert_eq!(all[0], Effect::Close(id));
        if again {
            assert_eq!(all.len(), 1);
            arrivals.tick(arrivals.deadline().expect("it is tried again"));
            assert_eq!(effects(&mut arrivals), [Effect::Open(id)]);
        } else {
            let sentence = cause(&all, id).sentence("a");
            assert!(sentence.contains("no shell") || sentence.contains("it is full"));
            assert_eq!(arrivals.deadline(), None);
        }
    }
}

#[test]
fn the_first_host_that_fails_ends_all_that_begin_with_it_unless_all_are_to_be_heard() {
    for admission in [
        Admission::begin(ARRIVAL_TIMEOUT),
        Admission::survey(ARRIVAL_TIMEOUT),
    ] {
        let mut arrivals = begun(admission, [&[1], &[2], &[3]]);
        arrivals.prepare(START, &[0, 0, 1]);
        arrivals.handle(START, 1, Input::Refused(2, "no such program".to_owned()));
        let all = effects(&mut arrivals);
        let refused = Departure::Refused(2, "no such program".to_owned());
        assert_eq!(cause(&all, 1), refused);
        assert_eq!(arrivals.failure(), Some(("b", &refused)));
        assert_eq!(arrivals.is_settled(), !admission.hears_all);
        if !admission.hears_all {
            assert_eq!(cause(&all, 0), Departure::Abandoned);
            assert!(all.contains(&Effect::Close(0)) && all.contains(&Effect::Close(1)));
        }
        // The answer of host 0 arrives after that of host 1.
        let addresses = [1, 0].map(|rank| (rank, (ip(1), 9).into())).to_vec();
        arrivals.handle(START, 0, Input::Answer(Answer::Prepared(addresses)));
        let failed = arrivals
            .outcomes()
            .filter(|(_, failed)| failed.is_some())
            .count();
        assert_eq!(
            (failed, arrivals.is_settled()),
            (if admission.hears_all { 1 } else { 2 }, true)
        );
    }
}

#[test]
fn a_host_that_says_where_other_tasks_listen_than_its_own_makes_no_sense() {
    for ranks in [&[0][..], &[0, 1, 2], &[0, 0], &[0, 2]] {
        let mut arrivals = begun(Admission::begin(ARRIVAL_TIMEOUT), [&[1], &[2], &[3]]);
        arrivals.prepare(START, &[0, 0, 1]);
        let addresses = ranks
            .iter()
            .map(|&rank| (rank, (ip(1), 9).into()))
            .collect();
        arrivals.handle(START, 0, Input::Answer(Answer::Prepared(addresses)));
        assert_eq!(arrivals.failure(), Some(("a", &Departure::Nonsense)));
    }
}

#[test]
fn a_search_goes_on_when_the_last_host_that_was_waited_for_is_lost() {
    let addresses: [&[u8]; 3] = [&[1, 11], &[2, 12], &[3, 13]];
    for (admission, is_silent, again) in [
        (Admission::survey(ARRIVAL_TIMEOUT), false, &[0, 2][..]),
        (Admission::survey(ARRIVAL_TIMEOUT), true, &[0, 2]),
        // The only host that remains is this one, and a job does not begin with it alone.
        (Admission::begin(ARRIVAL_TIMEOUT), true, &[]),
    ] {
        let mut arrivals = begun(admission, addresses);
        arrivals.look(START);
        assert_eq!(effects(&mut arrivals).len(), 3);
        for id in [0, 2] {
            let none = Answer::Probed(Vec::new());
            arrivals.handle(START, id, Input::Answer(none));
        }
        assert_eq!(effects(&mut arrivals), []);
        match is_silent {
            true => arrivals.tick(START + ARRIVAL_TIMEOUT),
            false => arrivals.handle(START, 1, Input::Closed("it ended".to_owned())),
        }
        let asked = effects(&mut arrivals).into_iter();
        let asked: Vec<u32> = asked
            .filter_map(|effect| match effect {
                Effect::Ask(id, Question::Probe(_)) => Some(id),
                _ => None,
            })
            .collect();
        assert_eq!(asked, again);
        assert_eq!(arrivals.failure().map(|(name, _)| name), Some("b"));
    }
}

#[test]
fn an_interrupt_of_a_search_begins_nothing() {
    let mut arrivals = begun(Admission::survey(ARRIVAL_TIMEOUT), [&[1, 11], &[2], &[3]]);
    arrivals.look(START);
    assert_eq!(effects(&mut arrivals).len(), 3);
    for id in [0, 2] {
        arrivals.handle(START, id, Input::Answer(Answer::Probed(Vec::new())));
    }
    arrivals.interrupt(130);
    assert_eq!(
        cause(&effects(&mut arrivals), 1),
        Departure::Interrupted(130)
    );
    assert!(arrivals.is_settled());
}

#[test]
fn hosts_are_reached_at_their_first_addresses_and_all_are_tried_only_when_these_do_not_do() {
    let addresses: [&[u8]; 3] = [&[1, 11], &[2, 12], &[3, 13]];
    let mut arrivals = begun(Admission::begin(ARRIVAL_TIMEOUT), addresses);
    arrivals.look(START);
    assert_eq!(look(&mut arrivals, |_, _| true), 3);
    assert!(arrivals.is_settled() && effects(&mut arrivals).is_empty());
    assert_eq!(
        arrivals.found(),
        [1, 2, 3].map(|last| (u32::from(last) - 1, Ok(ip(last))))
    );

    // The second host does not see the first one at its first address.
    let mut arrivals = begun(Admission::begin(ARRIVAL_TIMEOUT), addresses);
    arrivals.look(START);
    let sees = |by, address| (by, address) != (1, ip(1));
    assert_eq!(
        (look(&mut arrivals, sees), arrivals.is_settled()),
        (3, false)
    );
    assert_eq!(
        (look(&mut arrivals, sees), arrivals.is_settled()),
        (3, true)
    );
    assert_eq!(arrivals.found()[0], (0, Ok(ip(11))));

    // It does not see it at any address.
    let mut arrivals = begun(Admission::begin(ARRIVAL_TIMEOUT), addresses);
    arrivals.look(START);
    let sees = |by, address| by != 1 || ![ip(1), ip(11)].contains(&address);
    look(&mut arrivals, sees);
    look(&mut arrivals, sees);
    let why = arrivals.found()[0]
        .1
        .clone()
        .expect_err("unreached")
        .sentence("a");
    assert!(why.starts_with("the host a cannot be reached from b: no connection to a port at 10.0.0.1, 10.0.0.11 succeeded"), "{why}");
    assert_eq!(arrivals.found()[1], (1, Ok(ip(2))));
}

#[test]
fn this_host_prefers_the_addresses_under_which_the_others_see_it() {
    let mut arrivals = begun(Admission::begin(ARRIVAL_TIMEOUT), [&[1], &[2], &[3, 4, 5]]);
    for (id, last) in [(0, 5), (1, 4)] {
        let host = arrivals.hosts.get_mut(&id);
        let hello = host.and_then(|host| host.hello.as_mut());
        hello.expect("a host").launcher = Some(ip(last));
    }
    arrivals.look(START);
    let candidates = chosen(&arrivals.hellos().nth(2).expect("own").1.candidates, None);
    assert_eq!(candidates, [ip(5), ip(4), ip(3)]);
}

#[test]
fn each_host_has_four_witnesses_at_most() {
    let hellos: Vec<Hello> = (0..9).map(|last| hello("", &[last])).collect();
    for count in 1..9 {
        let search = Search::new((0..).zip(&hellos[..count]), None);
        let targets = (0..count as u32).map(|by| search.targets(by));
        let asked: Vec<u32> = targets.flatten().map(|target| target.host).collect();
        for host in 0..count as u32 {
            let witnesses = asked.iter().filter(|asked| **asked == host).count();
            assert_eq!(witnesses, 4.min(count - 1), "{host} of {count}");
        }
    }
}

#[test]
fn a_host_is_reached_where_the_membership_or_its_name_says_if_it_is_there() {
    let hello = hello("a", &[1, 2]);
    let [only, other] = ["eth2", "eth9"].map(|choice| Choice::parse(choice).expect("a choice"));
    let at = |rule: AddressRule, named: &[IpAddr], choice| {
        let address = rule.address(&hello.candidates, named, choice);
        address.map_err(|why| why.sentence("a"))
    };
    let told = |last, choice| at(AddressRule::Told(ip(last)), &[], choice);
    assert_eq!(told(1, None), Ok(ip(1)));
    let why = told(3, None).expect_err("it is not there");
    assert!(why.starts_with("the host a does not have the address 10.0.0.3 at which"));
    assert_eq!(told(1, Some(&only)), Ok(ip(2)));
    let why = "the host a has no address that --interface eth9 allows";
    assert_eq!(told(1, Some(&other)), Err(why.to_owned()));
    let named = |named: &[IpAddr], choice| at(AddressRule::Named, named, choice);
    assert_eq!(named(&[ip(3), ip(2)], None), Ok(ip(2)));
    assert_eq!(named(&[ip(3)], None), Ok(ip(1)));
    let why = "the host a has no address at which tasks can be reached";
    assert_eq!(named(&[], Some(&other)), Err(why.to_owned()));
}

#[test]
fn a_silent_host_is_given_up_but_not_for_time_in_which_this_process_did_not_run() {
    let mut arrivals = arrivals();
    let requested = |is_typed| expected("a", Admission::requested(ARRIVAL_TIMEOUT, is_typed));
    let called = Expected {
        is_called: true,
        ..requested(false)
    };
    let [shell, typing, called] = [requested(false), requested(true), called]
        .map(|expected| arrivals.expect(START, expected));
    arrivals.tick(START);
    for id in [shell, typing] {
        arrivals.handle(START, id, Input::Opened);
    }
    arrivals.tick(ARRIVAL_TIMEOUT - SECOND);
    arrivals.handle(ARRIVAL_TIMEOUT - SECOND, shell, Input::Heard);
    arrivals.slept(SECOND);
    arrivals.tick(2 * ARRIVAL_TIMEOUT - SECOND);
    assert_eq!(
        effects(&mut arrivals),
        [Effect::Open(shell), Effect::Open(typing)]
    );
    assert_eq!(arrivals.deadline(), Some(2 * ARRIVAL_TIMEOUT));
    arrivals.tick(2 * ARRIVAL_TIMEOUT);
    let lost = effects(&mut arrivals);
    assert_eq!(lost[0], Effect::Close(shell));
    let sentence = cause(&lost, shell).sentence("a");
    assert!(
        sentence.contains("within 10 s") && sentence.contains("`ssh a sh`"),
        "{sentence}"
    );
    // An agent that the user has started is silent as well.
    arrivals.handle(2 * ARRIVAL_TIMEOUT, called, Input::Opened);
    arrivals.tick(3 * ARRIVAL_TIMEOUT);
    assert_eq!(
        cause(&effects(&mut arrivals), called),
        Departure::Silent(ARRIVAL_TIMEOUT, None)
    );
}

#[test]
fn the_program_is_sent_to_a_machine_of_its_kind_and_others_are_refused() {
    for (line, part) in [
        ("regatta-send Linux there", "is a Linux there"),
        (
            "regatta-agent 2 (there)",
            "runs regatta 2 (there), but this host runs regatta 1 (here)",
        ),
        (
            "regatta-trouble no room",
            "could not be sent there: no room",
        ),
    ] {
        let mut arrivals = arrivals();
        let id = arrivals.expect(START, expected("a", Admission::begin(ARRIVAL_TIMEOUT)));
        arrivals.tick(START);
        feed(
            &mut arrivals,
            id,
            [Input::Opened, Input::Line("regatta-noise".to_owned())],
        );
        feed(
            &mut arrivals,
            id,
            [Input::Line("regatta-send Linux here".to_owned())],
        );
        let sent = effects(&mut arrivals);
        assert_eq!(sent, [Effect::Open(id), Effect::SendProgram(id)]);
        feed(&mut arrivals, id, [Input::ProgramSent(2_500_000)]);
        let [Effect::Note(note)] = &effects(&mut arrivals)[..] else {
            panic!("nothing is said");
        };
        assert!(note.contains("(2.5 MB) was sent there"), "{note}");
        feed(&mut arrivals, id, [Input::Line(line.to_owned())]);
        let sentence = cause(&effects(&mut arrivals), id).sentence("a");
        assert!(sentence.contains(part), "{sentence}");
    }
}

#[test]
fn a_host_comes_under_one_name_only() {
    let mut arrivals = begun(Admission::begin(ARRIVAL_TIMEOUT), [&[1], &[2], &[3]]);
    assert_eq!(arrivals.two_names(), None);
    arrivals.hosts.get_mut(&1).expect("b").hello = Some(hello("a", &[2]));
    assert_eq!(
        arrivals.two_names(),
        Some(("b", Departure::TwoNames("a".to_owned())))
    );

    let mut arrivals = self::arrivals();
    arrivals.members.push(("x".to_owned(), "first".to_owned()));
    for (name, identity, other) in [
        ("a", "x", Some("first")),
        ("b", "y", None),
        ("c", "y", Some("b")),
    ] {
        let id = arrivals.expect(
            START,
            expected(name, Admission::requested(ARRIVAL_TIMEOUT, false)),
        );
        arrivals.tick(START);
        feed(
            &mut arrivals,
            id,
            [Input::Opened, ready(), greeting(identity, &[1])],
        );
        let all = effects(&mut arrivals);
        match other {
            Some(other) => assert_eq!(cause(&all, id), Departure::Member(other.to_owned())),
            None => assert!(matches!(all[1], Effect::Ask(..)), "{all:?}"),
        }
    }
}

#[test]
fn a_choice_is_a_name_an_address_or_a_network() {
    let at = |name: &str, address: &str| Interface {
        name: name.to_owned(),
        address: address.parse().expect("an address"),
    };
    let allows = |choice: &str, interface: &Interface| {
        let choice = Choice::parse(choice).expect("a choice");
        !chosen(std::slice::from_ref(interface), Some(&choice)).is_empty()
    };
    let eth = at("eth0", "10.1.2.3");
    for yes in ["eth0", "10.1.2.3", "10.0.0.0/8", "10.1.2.0/24", "0.0.0.0/0"] {
        assert!(allows(yes, &eth), "{yes}");
    }
    for no in ["eth1", "10.1.2.4", "10.1.3.0/24", "::/0"] {
        assert!(!allows(no, &eth), "{no}");
    }
    assert!(allows("fd00::/8", &at("eth0", "fd00::7")));
    for wrong in ["", "10.0.0.0/33", "x/y", "a b"] {
        assert!(Choice::parse(wrong).is_err(), "{wrong}");
    }
}
