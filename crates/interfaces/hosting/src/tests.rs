//! Tests: hosts that tasks or persons start, as the launcher sees it.

use super::*;

const HOSTER: u32 = 3;

fn job(reached: Reached) -> Box<dyn HostStarter> {
    starter(reached)
}

const BY_SSH: Reached = Reached {
    in_machine: false,
    by_ssh: true,
};

fn requester(terminal: &str) -> Requester {
    Requester {
        by: 5,
        id: 9,
        terminal: Some(terminal.to_owned()),
    }
}

/// Returns the hosts of these lines, with their numbers.
fn wanted(starter: &mut dyn HostStarter, lines: &[&str], terminal: &str) -> Vec<(u32, WantedHost)> {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    let hosts = starter.read(&requester(terminal), HostChange::Add(lines));
    let hosts = hosts.expect("lines").into_iter().flatten();
    (7..).zip(hosts).collect()
}

/// Returns the number and the hosts of the request to the hoster.
fn told(message: Option<(u32, Tell)>) -> (u32, Vec<HostStart>) {
    match message {
        Some((HOSTER, Tell::StartHosts { request, hosts, .. })) => (request, hosts),
        other => panic!("{other:?}"),
    }
}

fn report(host: u32, line: &str) -> HostStarted {
    HostStarted {
        host,
        refused: None,
        line: line.to_owned(),
    }
}

/// Makes a job whose hosts are started by a hoster, which has been asked for two.
fn asked() -> (Box<dyn HostStarter>, u32) {
    let mut job = job(BY_SSH);
    job.register(HOSTER, Some(1)).expect("it is the only one");
    let hosts = wanted(&mut *job, &["beta lo=joe ip=fast so=pw", "127.0.0.99"], "");
    let (request, hosts) = told(job.start(&requester(""), hosts));
    assert_eq!((hosts.len(), hosts[0].host, hosts[1].host), (2, 7, 8));
    assert_eq!((&*hosts[0].manner, &*hosts[0].login), ("pw", "joe@fast"));
    assert!(hosts[1].command.contains(" agent --apart "));
    (job, request)
}

#[test]
fn a_task_that_starts_hosts_is_told_of_all_hosts_of_a_request_at_once() {
    let (mut job, request) = asked();
    assert!(job.poll(&|_| true).is_empty() && job.polls().is_empty());
    let nobody = ContactLine::new(Vec::new(), 7).expect("a line").text();
    let gone = [report(7, "nothing"), report(8, &nobody)].to_vec();
    job.report(HOSTER, request, gone).expect("it was asked");
    let mut outcomes = job.poll(&|_| true);
    while outcomes.len() < 2 {
        let left = job.until().expect("it is being called");
        let left = rustix::time::Timespec::try_from(left).expect("a short time");
        rustix::event::poll(&mut job.polls(), Some(&left)).expect("a poll");
        outcomes.extend(job.poll(&|_| true));
    }
    let [
        StartOutcome::Failed { host: 7, .. },
        StartOutcome::Failed { host: 8, refused },
    ] = &outcomes[..]
    else {
        panic!("{outcomes:?}");
    };
    assert!(refused.1.contains("does not answer"), "{refused:?}");
    assert!(job.report(HOSTER, request, Vec::new()).is_err());
}

#[test]
fn nothing_comes_of_a_request_that_is_reported_on_wrongly_or_whose_task_ends() {
    let (mut job, request) = asked();
    let reports = [report(7, "")].to_vec();
    job.report(HOSTER, request, reports).expect("it was asked");
    let outcomes = job.poll(&|_| true);
    assert!(
        matches!(&outcomes[..], [StartOutcome::RequestFailed { hosts, .. }] if *hosts == [7, 8])
    );
    let (mut job, _) = asked();
    let outcomes = job.poll(&|task| task != HOSTER);
    let [StartOutcome::RequestFailed { hosts, sentence }] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(*hosts, [7, 8]);
    assert!(sentence.contains("has ended"), "{sentence}");
}

#[test]
fn in_a_machine_and_without_such_a_task_the_shell_leads_to_hosts() {
    let in_machine = Reached {
        in_machine: true,
        by_ssh: false,
    };
    for reached in [BY_SSH, in_machine] {
        let mut job = job(reached);
        if reached.in_machine {
            job.register(HOSTER, Some(1)).expect("it is the only one");
        }
        let hosts = wanted(&mut *job, &["beta"], "");
        let way = Ok(regatta_launch::host_starter::Way::Shell { asks_at: None });
        assert_eq!(hosts[0].1.way, way);
        assert!(job.start(&requester(""), Vec::new()).is_none());
    }
}

#[test]
fn a_person_is_asked_at_a_terminal_only_and_only_for_a_task_that_lives() {
    let mut job = job(BY_SSH);
    let hosts = wanted(&mut *job, &["beta so=ms", "gamma so=ms"], "/dev/null");
    assert!(job.start(&requester("/dev/null"), hosts.clone()).is_none());
    let outcomes = job.poll(&|_| true);
    let [
        StartOutcome::Failed { host: 7, refused },
        StartOutcome::Failed { host: 8, .. },
    ] = &outcomes[..]
    else {
        panic!("{outcomes:?}");
    };
    assert!(
        refused.1.contains("/dev/null is not a terminal"),
        "{refused:?}"
    );
    job.start(&requester("/dev/null"), hosts.clone());
    assert_eq!(job.until(), Some(persons::TERMINAL_CHECK_INTERVAL));
    let outcomes = job.poll(&|task| task != 5);
    assert!(matches!(
        outcomes[..],
        [
            StartOutcome::Unwanted { host: 7 },
            StartOutcome::Unwanted { host: 8 }
        ]
    ));
    job.start(&requester("/dev/null"), hosts);
    job.abandon();
    assert!(job.poll(&|_| true).is_empty() && job.until().is_none());
}
