//! Profiles of programs with known numbers, for every interface, on one host and several, with and without failures.

use regatta_tests::profiling::{Profiled, profile};
use regatta_tests::{Job, express, program, skip};

fn play(tasks: u32, scenario: &str) -> Profiled {
    let profiled = profile(tasks, &program("profiled"), &[scenario]).run();
    assert_eq!(profiled.ended.status, 0, "{}", profiled.ended.story());
    profiled
}

/// Returns the numbers of messages and bytes that a task has sent and received.
fn totals(profiled: &Profiled, task: u64) -> [u64; 4] {
    let of = profiled.task(task);
    ["sent", "sent_bytes", "received", "received_bytes"]
        .map(|name| of[name].as_u64().expect("a number"))
}

#[test]
fn messages_calls_and_bytes_are_those_of_the_program() {
    let profiled = play(3, "ring");
    for task in 0..3 {
        let bytes = 50 * 1000 + 100_000;
        assert_eq!(
            totals(&profiled, task),
            [51, bytes, 51, bytes],
            "task {task}"
        );
        assert_eq!(profiled.pair(task, (task + 1) % 3), (51, bytes));
        assert_eq!(profiled.pair((task + 1) % 3, task), (0, 0));
        for (call, calls) in [
            ("rg_irecv", 50.0),
            ("rg_wait", 50.0),
            ("rg_send", 51.0),
            ("rg_recv", 1.0),
            ("rg_sendrecv", 1.0),
            ("rg_barrier", 10.0),
            ("rg_allreduce", 5.0),
            ("rg_init", 1.0),
            ("rg_finalize", 1.0),
        ] {
            assert_eq!(profiled.of_call(task, call, "calls"), calls, "{call}");
        }
        assert_eq!(profiled.of_call(task, "rg_send", "failed"), 1.0);
        assert_eq!(profiled.of_call(task, "rg_recv", "failed"), 0.0);
        assert_eq!(profiled.of_call(task, "rg_allreduce", "bytes"), 5.0 * 24.0);
        assert_eq!(profiled.of_call(task, "rg_alltoall", "bytes"), 3.0 * 8.0);
        assert_eq!(profiled.of_call(task, "rg_alltoallv", "bytes"), 6.0);
        assert_eq!(profiled.of_call(task, "rg_reduce_scatter", "bytes"), 6.0);
        let blocks = profiled.of_call(task, "rg_reduce_scatter_block", "bytes");
        assert_eq!(blocks, 3.0 * 5.0);
        let own = task as f64 + 1.0;
        assert_eq!(profiled.of_call(task, "rg_allgatherv", "bytes"), own);
    }
    let sizes = profiled.profile["sizes"].as_array().expect("sizes");
    let sizes: Vec<_> = sizes
        .iter()
        .map(|size| {
            (
                size["up_to"].as_u64(),
                size["sent"].as_u64(),
                size["received"].as_u64(),
            )
        })
        .collect();
    let expected = [(1024, 150), (131_072, 3)];
    let expected = expected.map(|(most, number)| (Some(most), Some(number), Some(number)));
    assert_eq!(sizes, expected);
    // Both ends of each message are on the timeline.
    assert_eq!(profiled.profile["messages"], 153);
    assert_eq!(profiled.problems(), "[]");
    let page = profiled.page();
    assert!(page.contains("id=\"line\"") && page.contains("rg_allreduce"));
}

#[test]
fn every_way_to_complete_tells_whose_message_it_was_by_task() {
    let profiled = play(2, "ways");
    for task in 0..2 {
        assert_eq!(totals(&profiled, task), [20, 320, 20, 320], "task {task}");
        assert_eq!(profiled.pair(task, 1 - task), (20, 320));
        assert_eq!(profiled.of_call(task, "rg_waitany", "calls"), 4.0);
    }
    assert_eq!(profiled.profile["messages"], 40);
}

#[test]
fn time_is_where_the_program_spends_it() {
    let profiled = play(2, "waits");
    let seconds = |task: u64, of: &str| profiled.task(task)[of].as_f64().expect("a number");
    assert!(seconds(0, "computing") > 0.9, "{}", profiled.profile);
    // On a busy machine, task 1 may begin later than task 0.
    let receiving = profiled.task(1)["kinds"]["receiving"].as_f64();
    let receiving = receiving.expect("a number");
    assert!(receiving > 0.5, "{}", profiled.profile);
    assert!(seconds(1, "computing") < 0.5, "{}", profiled.profile);
    assert!(seconds(1, "idle") > 0.3, "it sleeps: {}", profiled.profile);
    assert!(
        seconds(1, "waited_for_senders") > 0.5,
        "{}",
        profiled.profile
    );
    assert_eq!(seconds(0, "waited_for_senders"), 0.0);
}

#[test]
fn the_function_that_has_the_processor_is_named() {
    let profiled = play(2, "waits");
    let functions = profiled.profile["functions"].as_array().expect("functions");
    // Time spent in reading the clock is attributed to the C library or the kernel.
    let first = &functions[0];
    assert_eq!(first["name"], "burn_the_processor", "{}", profiled.profile);
    assert_eq!(first["file"], "profiled");
    let by_task: Vec<f64> = first["by_task"]
        .as_array()
        .expect("times")
        .iter()
        .map(|time| time.as_f64().expect("a time"))
        .collect();
    assert!(
        (0.7..1.5).contains(&by_task[0]) && by_task[1] == 0.0,
        "{by_task:?}"
    );
}

#[test]
fn without_samples_there_are_no_functions() {
    let profiled = profile(2, &program("profiled"), &["ring"]);
    let profiled = profiled.with(|job| job.option("--rate").option("0")).run();
    assert_eq!(profiled.profile["functions"], serde_json::json!([]));
    assert_eq!(totals(&profiled, 0)[0], 51);
}

#[test]
fn marks_and_toggles_are_the_programs_and_nothing_is_recorded_while_it_does_not_want_it() {
    let profiled = play(2, "marks");
    let names = profiled.task(1)["names"].as_array().expect("names").clone();
    let of = |name: &str| names.iter().find(|found| found["name"] == name);
    let begin = of("begin").expect("marks");
    assert_eq!((&begin["marks"], &begin["times"]), (&2.into(), &0.into()));
    let step = of("step <b>").expect("a toggle");
    assert_eq!(step["times"], 3);
    assert!(step["seconds"].as_f64().expect("a time") > 0.14, "{step}");
    assert!(of("unseen").is_none());
    assert_eq!(profiled.of_call(1, "rg_barrier", "calls"), 1.0);
    // Names chosen by the program are escaped in the page.
    assert!(!profiled.page().contains("step <b>"));
}

#[test]
fn a_task_that_is_killed_leaves_what_it_did_until_then() {
    let profiled = play(2, "killed");
    assert_eq!(totals(&profiled, 1), [1, 1, 5, 5]);
    assert_eq!(profiled.task(1)["cut_short"], true);
    assert_eq!(profiled.task(0)["cut_short"], false);
    let problems = profiled.problems();
    assert!(
        problems.contains("within rg_recv, about task 0"),
        "{problems}"
    );
}

#[test]
fn the_newest_events_are_kept_and_the_others_counted() {
    let profiled = profile(1, &program("profiled"), &["many"]);
    let profiled = profiled
        .with(|job| job.option("--events").option("100"))
        .run();
    // The number of events is rounded up to a power of two.
    assert_eq!(profiled.task(0)["events"], 128);
    let lost = profiled.task(0)["events_overwritten"].as_u64();
    assert_eq!(lost, Some(1000 + 2 - 128), "{}", profiled.task(0));
    assert_eq!(profiled.of_call(0, "rg_send", "calls"), 1000.0);
}

#[test]
fn forked_children_and_commands_are_not_the_task() {
    let profiled = play(1, "forks");
    assert_eq!(profiled.profile["tasks"].as_array().map(Vec::len), Some(1));
    assert_eq!(profiled.of_call(0, "rg_send", "calls"), 0.0);
    assert_eq!(profiled.of_call(0, "rg_barrier", "calls"), 1.0);
    assert_eq!(profiled.problems(), "[]");
}

#[test]
fn threads_come_and_go_and_all_that_is_not_recorded_is_said() {
    let profiled = play(1, "threads");
    let recorded = profiled.of_call(0, "rg_send", "calls");
    assert!(recorded >= 400.0 + 15.0 * 10.0, "{recorded}");
    if recorded < 600.0 {
        let missing = format!("{} of their calls", 600.0 - recorded);
        assert!(
            profiled.problems().contains(&missing),
            "{}",
            profiled.problems()
        );
    }
}

#[test]
fn thirty_two_tasks_have_a_profile_each() {
    let profiled = play(32, "ring");
    assert_eq!(profiled.profile["tasks"].as_array().map(Vec::len), Some(32));
    for task in 0..32 {
        assert_eq!(totals(&profiled, task)[0], 51, "task {task}");
    }
    assert_eq!(profiled.profile["messages"], 32 * 51);
}

#[test]
fn records_of_other_hosts_are_fetched() {
    let profiled = profile(3, &program("profiled"), &["ring"]);
    let profiled = profiled.with(|job| job.across("alpha:1,beta:2")).run();
    for task in 0..3 {
        assert_eq!(totals(&profiled, task)[0], 51, "{}", profiled.profile);
    }
    assert_eq!(profiled.problems(), "[]");
}

#[test]
fn a_host_that_no_longer_answers_is_named_with_the_place_of_its_records() {
    let folder = std::env::temp_dir().join(format!("unreachable-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    // Only the first call of this command for a host succeeds; later ones fail.
    let script = folder.join("once");
    let text = "#!/bin/sh\nmkdir \"$0.$1\" 2>/dev/null || exit 1\nshift\nexec \"$@\"\n";
    std::fs::write(&script, text).expect("a script");
    let rsh = format!("sh {} {{host}}", script.display());
    let profiled = profile(2, &program("profiled"), &["ring"]);
    let profiled = profiled.with(|job| {
        let job = job.option("--host").option("alpha:1,beta:1");
        job.option("--rsh").option(&rsh)
    });
    let profiled = profiled.run();
    let problems = profiled.problems();
    let part = "the records of the tasks on beta could not be fetched";
    assert!(
        problems.contains(part) && problems.contains("/tmp/regatta-profile-"),
        "{problems}"
    );
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn a_program_that_does_not_call_regatta_is_told_so() {
    let profiled = profile(1, "/bin/true".as_ref(), &[]).run();
    let problems = profiled.problems();
    assert!(
        problems.contains("no task called libregatta.so"),
        "{problems}"
    );
    assert_eq!(profiled.ended.status, 0);
}

#[test]
fn a_static_program_is_refused_before_it_starts() {
    let folder = std::env::temp_dir().join(format!("static-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (source, file) = (folder.join("main.c"), folder.join("main"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a program");
    let mut compiler = std::process::Command::new("cc");
    compiler.arg("-static").arg("-o").arg(&file).arg(&source);
    if !compiler.status().is_ok_and(|status| status.success()) {
        skip("no static C library is installed");
        return;
    }
    let job = Job::of(2, &file, &[]).subcommand("profile").run();
    job.ended_with(125).said("is linked statically");
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn a_full_disk_is_said_and_the_program_runs() {
    let job = Job::of(2, &program("profiled"), &["ring"])
        .subcommand("profile")
        .option("--events")
        .option("4194304")
        .option("--report")
        .option("/dev/null")
        .around(&[
            "unshare",
            "-rm",
            "sh",
            "-ec",
            "mount -t tmpfs -o size=1m none /mnt; TMPDIR=/mnt exec \"$@\"",
            "sh",
        ]);
    let ended = job.run();
    if ended.text.contains("unshare") || ended.text.contains("mount:") {
        skip("this user may not mount anything");
        return;
    }
    let ended = ended.passed();
    let ended = ended.said("runs without a profile: no space for");
    let ended = ended.said("could not write a record in /mnt/regatta-profile-");
    assert!(!ended.text.contains("libregatta.so"), "{}", ended.story());
}

#[test]
fn a_program_that_may_write_small_files_only_is_not_ended_by_its_record() {
    let words = ["-c", "ulimit -f 100; exec /bin/true"];
    let profiled = profile(1, "/bin/sh".as_ref(), &words).run();
    assert_eq!(profiled.ended.status, 0, "{}", profiled.ended.story());
    let problems = profiled.problems();
    assert!(
        problems.contains("could not write a record") && problems.contains("File too large"),
        "{problems}"
    );
}

#[test]
fn other_interfaces_are_seen_through_the_library_they_stand_on() {
    let profiled = profile(2, &express::program("express_messages"), &["types"]).run();
    assert_eq!(profiled.ended.status, 0, "{}", profiled.ended.story());
    assert!(totals(&profiled, 1)[2] > 0, "Express: {}", profiled.profile);
}

#[test]
fn a_recorded_call_costs_less_than_a_microsecond() {
    let cost = |ended: &regatta_tests::Ended| {
        let mut lines = ended.text.lines();
        let line = lines.find_map(|line| line.split("nanoseconds ").nth(1));
        let number = line.and_then(|line| line.split(['"', ' ', '\\']).next());
        let number = number.and_then(|number| number.parse::<f64>().ok());
        number.unwrap_or_else(|| panic!("no time in\n{}", ended.story()))
    };
    let plain = cost(&Job::new(1, "profiled", &["costs"]).run().passed());
    let profiled = profile(1, &program("profiled"), &["costs"]).run();
    let recorded = cost(&profiled.ended);
    println!("a call takes {plain} ns, recorded {recorded} ns");
    assert!(recorded - plain < 1000.0, "{plain} and {recorded}");
}

#[test]
fn the_recorder_has_a_function_for_each_that_is_recorded() {
    let library = regatta_tests::programs::built("libregatta_recorder.so", "regatta-recorder");
    let mut list = std::process::Command::new("nm");
    let list = list.args(["-D", "--defined-only"]).arg(library).output();
    let list = String::from_utf8(list.expect("nm").stdout).expect("text");
    let mut exported: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .filter(|name| name.starts_with("rg_"))
        .collect();
    exported.sort_unstable();
    let recorded = regatta_record::CALLS.iter().map(|call| call.0);
    let mut wanted: Vec<&str> = recorded
        .chain(["rg_mark", "rg_profile", "rg_toggle"])
        .collect();
    wanted.sort_unstable();
    assert_eq!(exported, wanted);
}
