//! Output of tasks that is delivered to their parents (`tests/programs/output.c`).

use regatta_tests::Job;

fn spawner(scenario: &[&str]) -> Job {
    Job::new(1, "output", scenario)
}

/// Runs a scenario on one host, then with writers and receiver on different hosts.
fn everywhere(scenario: &str, judge: impl Fn(regatta_tests::Ended)) {
    judge(spawner(&[scenario]).run().passed());
    judge(spawner(&[scenario]).option("--label").run().passed());
    judge(Job::alone("output", &[scenario]).run().passed());
    let job = Job::new(2, "output", &[scenario]).env("ELSEWHERE", "1");
    judge(job.across("alpha:1,beta:1").run().passed());
}

#[test]
fn output_comes_to_who_asked_for_it_before_the_news_of_an_end() {
    everywhere("written", |ended| {
        assert!(!ended.text.contains("of task"), "{}", ended.story());
    });
    everywhere("inherited", |ended| {
        let said = ended.text.matches("talker 0 of 1").count();
        assert!(said == 1 || said == 2, "{}", ended.story());
    });
    everywhere("told-nonsense", |_| ());
}

#[test]
fn much_output_comes_whole() {
    everywhere("floods", |_| ());
}

#[test]
fn whoever_asks_for_output_and_does_not_look_holds_up_who_writes() {
    spawner(&["never-receives"]).run().passed();
}

#[test]
fn output_goes_the_jobs_way_when_who_asked_for_it_is_gone() {
    everywhere("receiver-ends", |ended| {
        let said = ended.text.matches("and then to the job").count();
        assert!(said == 2 || said == 4, "{}", ended.story());
        assert!(!ended.text.contains("whoever listens"));
    });
    let ended = spawner(&["leaves-and-stays"]).run().passed();
    ended.said("that is not lost: 19999");
}

#[test]
fn the_streams_of_a_lost_hosts_tasks_end() {
    let job = Job::new(2, "output", &["lost-writer"]).env("ELSEWHERE", "1");
    job.across("alpha:1,beta:1").run().passed();
}
