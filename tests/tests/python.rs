//! Python programs that use `regatta_mpi`: those in `tests/programs/python`, docs/python.md and examples/python.

use std::path::{Path, PathBuf};

use regatta_tests::{Job, python};

fn all_is_well(program: &str) {
    for tasks in [2, 4] {
        python::job(tasks, program, &[])
            .run()
            .passed()
            .said("all is well");
    }
}

#[test]
fn buffers_of_any_layout_and_objects_arrive_as_they_were_sent() {
    all_is_well("messages.py");
    python::job(2, "messages.py", &[])
        .across("alpha:1,beta:1")
        .run()
        .passed();
    python::alone("messages.py", &[]).run().passed();
}

#[test]
fn collectives_combine_and_exchange_arrays_numbers_and_objects() {
    all_is_well("collectives.py");
    python::alone("collectives.py", &[]).run().passed();
}

#[test]
fn the_death_of_a_member_is_an_exception_that_names_it() {
    for tasks in [2, 4] {
        let job = python::job(tasks, "deaths.py", &[]).option("--on-failure=continue");
        job.run().said("all is well");
    }
}

#[test]
fn a_task_that_raises_has_failed_and_the_others_know() {
    let ended = python::job(3, "raises.py", &[]).run();
    ended
        .ended_with(1)
        .said("RuntimeError: the cause")
        .said("the others know");
}

#[test]
fn ctrl_c_ends_each_call_that_waits() {
    python::job(2, "interrupted.py", &[])
        .run()
        .passed()
        .said("0: all is well");
}

#[test]
fn requests_are_awaited_while_an_event_loop_runs() {
    all_is_well("loops.py");
}

#[test]
fn tasks_start_watch_and_end_others() {
    python::job(1, "family.py", &[])
        .run()
        .passed()
        .said("all is well");
    python::alone("family.py", &[])
        .run()
        .passed()
        .said("all is well");
}

#[test]
fn the_stubs_declare_what_there_is() {
    python::alone("stubs.py", &[])
        .run()
        .passed()
        .said("all is well");
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("regatta-{name}-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    folder
}

#[test]
fn an_executor_survives_its_workers_and_has_each_result_once() {
    let run = |name: &str, job: fn(&str) -> Job| {
        let folder = scratch(name);
        let ended = job(&folder.display().to_string()).run();
        ended.passed().said("all is well");
        std::fs::remove_dir_all(folder).expect("the folder");
    };
    run("executor", |folder| python::alone("executor.py", &[folder]));
    run("executor-hosts", |folder| {
        python::job(1, "executor.py", &[folder]).across("alpha:2,beta:2")
    });
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs the page's code blocks. The comment in the first line of each says how it is run.
#[test]
fn the_programs_of_the_page_run() {
    let page = std::fs::read_to_string(top().join("docs/python.md")).expect("the page");
    let folder = scratch("page");
    let mut run = 0;
    for (at, block) in page.split("```python\n").skip(1).enumerate() {
        let (program, _) = block.split_once("```").expect("the end of a program");
        let path = folder.join(format!("program{at}.py"));
        std::fs::write(&path, program).expect("a file");
        let tasks = match program.lines().next() {
            Some(line) if line.contains("regatta run -n 2 ") => 2,
            Some(line) if line.contains("regatta run -n 4 ") => 4,
            line => panic!("{line:?} does not tell how the program is run"),
        };
        let ended = python::job_of(tasks, &path, &[]).run().passed();
        for line in program.lines() {
            if let Some((_, said)) = line.split_once("# prints: ") {
                assert!(ended.story().contains(said), "{said}: {}", ended.story());
            }
        }
        run += 1;
    }
    assert!(run > 5, "the page has {run} programs");
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn the_examples_run() {
    let example = |name: &str| top().join("examples/python").join(name);
    python::job_of(4, &example("heat.py"), &[])
        .run()
        .passed()
        .said("heat");
    python::job_of(2, &example("pi.py"), &[])
        .run()
        .passed()
        .said("3.14");
    python::job_of(1, &example("farm.py"), &[])
        .run()
        .passed()
        .said("all 200 results");
}
