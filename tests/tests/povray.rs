//! The POV-Ray farm (`programs/applications/povray`): its picture has the pixels of a single run, whichever process
//! dies meanwhile.

use regatta_tests::applications::{INTERFACES, application_file, application_job, part_job};
use regatta_tests::{Ended, Running, needs};
use rustix::process::{Pid, Signal, kill_process};

/// Width and height of the pictures in pixels, as arguments. One takes half a second.
const PICTURE_PIXELS: [&str; 2] = ["96", "64"];

/// Starts a farm with this number of tasks that reports each tile of the scene.
fn start(interface: &str, tasks: u32) -> Running {
    needs::program("povray", "povray");
    let scene = application_file("povray/scene.pov");
    let arguments = ["-v", &scene, PICTURE_PIXELS[0], PICTURE_PIXELS[1]];
    application_job("povray", interface, &arguments, tasks).start()
}

/// Returns the text that follows `word` in the summary line, up to the next comma.
fn behind(ended: &Ended, word: &str) -> String {
    let line = ended
        .text
        .lines()
        .find(|line| line.contains(": verified, "));
    let rest = line.and_then(|line| line.split_once(word));
    let (_, rest) = rest.unwrap_or_else(|| panic!("no {word:?} in {}", ended.text));
    rest.split(',').next().unwrap_or_default().to_owned()
}

/// Returns the number of tiles that had to be rendered again.
fn again(ended: &Ended) -> u32 {
    let line = ended
        .text
        .lines()
        .find_map(|line| line.strip_suffix(" rendered again"));
    let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no tiles rendered again in {}", ended.text))
}

/// Waits until a tile is being rendered. Returns the processes of the worker and of its POV-Ray.
///
/// Output lines of PVM tasks begin with the task's number.
fn await_tile(running: &mut Running) -> [Pid; 2] {
    let starts = [
        "povray: task ",
        "[t40002] povray: task ",
        "[t40003] povray: task ",
    ];
    let (_, words) = running.read_one_of(&starts);
    let number = |word: &str| Pid::from_raw(word.parse().ok()?);
    let pids = [
        number(&words[0]),
        words.last().and_then(|word| number(word)),
    ];
    pids.map(|pid| pid.unwrap_or_else(|| panic!("no process in {words:?}")))
}

#[test]
fn a_scene_may_have_a_blank_in_its_name() {
    needs::program("povray", "povray");
    let folder = std::env::temp_dir().join(format!("farm-blank-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let scene = folder.join("a scene.pov");
    std::fs::copy(application_file("povray/scene.pov"), &scene).expect("a scene");
    let scene = scene.display().to_string();
    let arguments = [&scene, PICTURE_PIXELS[0], PICTURE_PIXELS[1]];
    application_job("povray", "regatta", &arguments, 2)
        .run()
        .passed();
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[test]
fn a_farm_renders_the_pixels_of_one_run_by_every_interface() {
    let alone = start("serial", 1).end().passed();
    for (interface, tasks) in INTERFACES
        .map(|interface| (interface, 3))
        .into_iter()
        .chain([("regatta", 2), ("regatta", 6)])
    {
        let ended = start(interface, tasks).end().passed();
        assert_eq!(
            behind(&ended, "checksum "),
            behind(&alone, "checksum "),
            "{interface}, {tasks} tasks"
        );
        assert_eq!(again(&ended), 0, "{interface}, {tasks} tasks");
    }
}

#[test]
fn another_worker_takes_the_place_of_one_that_is_killed() {
    for interface in ["regatta", "pvm"] {
        let mut running = start(interface, 3);
        let [worker, _] = await_tile(&mut running);
        kill_process(worker, Signal::KILL).expect("a worker");
        let ended = running.end().passed();
        let ended = ended
            .said("another worker takes its place")
            .said(": verified, ");
        assert!(again(&ended) >= 1, "{interface}: {}", ended.text);
    }
}

#[test]
fn a_tile_whose_pov_ray_is_killed_is_rendered_again_by_every_interface() {
    for interface in INTERFACES {
        let mut running = start(interface, 3);
        let [_, pov_ray] = await_tile(&mut running);
        kill_process(pov_ray, Signal::KILL).expect("a POV-Ray");
        let ended = running.end().passed().said(": verified, ");
        assert_eq!(again(&ended), 1, "{interface}: {}", ended.text);
    }
}

#[test]
fn a_farm_gives_up_a_scene_that_pov_ray_refuses_and_says_why() {
    needs::program("povray", "povray");
    let scene = std::env::temp_dir().join(format!("povray-{}.pov", std::process::id()));
    std::fs::write(&scene, "sphere { 0, 1 pigmant {} }\n").expect("a temporary file");
    for interface in INTERFACES {
        let arguments = [&*scene.display().to_string(), "64", "48"];
        let ended = application_job("povray", interface, &arguments, 3)
            .run()
            .ended_with(1);
        ended
            .said("the picture cannot be rendered")
            .said("undeclared identifier 'pigmant'");
    }
    let _ = std::fs::remove_file(&scene);
}

#[test]
fn a_farm_refuses_arguments_that_make_no_sense() {
    let scene = application_file("povray/scene.pov");
    let refuses = |interface: &str, arguments: &[&str], tasks: u32, reason: &str| {
        let job = application_job("povray", interface, arguments, tasks);
        job.run().ended_with(2).said(reason);
    };
    refuses("regatta", &[], 2, "the arguments are");
    refuses("regatta", &[&scene, "400"], 2, "the arguments are");
    refuses("regatta", &[&scene, "0", "300"], 2, "width and height");
    refuses("regatta", &["/no/scene.pov"], 2, "cannot be found");
    refuses("regatta", &[&scene], 1, "2 to 257 tasks");
    refuses("pvm", &[&scene], 1, "2 to 257");
}

#[test]
fn tiles_cover_the_picture_once_and_are_small_where_it_costs_most() {
    part_job("povray_tiles").run().passed();
}
