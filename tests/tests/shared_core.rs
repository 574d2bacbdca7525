//! Tasks that share a core yield it soon while they wait (`tests/programs/shared_core.c`).

use std::sync::Mutex;

use regatta_tests::Job;

/// Held while a test runs: tests on the same core would disturb each other.
static TURN: Mutex<()> = Mutex::new(());

/// Runs two tasks on one core. Their launcher does not know that they share it.
fn on_one_core(scenario: &str) {
    let folder = std::env::temp_dir().join(format!("core-{}-{scenario}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a directory");
    let job = Job::new(2, "shared_core", &[scenario, &folder.display().to_string()]);
    job.option("--bind=none").run().passed();
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn tasks_on_one_core_answer_each_other_about_as_soon_as_through_pipes() {
    let _turn = TURN.lock();
    on_one_core("together");
    on_one_core("beside-a-program");
}

#[test]
fn tasks_of_a_crowd_that_look_without_waiting_give_their_core_to_the_others() {
    let _turn = TURN.lock();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let job = Job::new(2 * cores.max(1), "shared_core", &["looks"]);
    job.option("--bind=none").run().passed();
}
