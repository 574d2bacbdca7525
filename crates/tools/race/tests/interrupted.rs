//! Races that are to stop, and launchers that fail or hang: the race ends soon, keeps what it has measured and leaves
//! nothing running.
//!
//! The environments are `limit`, and others whose launcher or program misbehaves.

#[path = "../../../../tests/src/looks.rs"]
mod looks;
#[path = "../../../../tests/src/skipped.rs"]
mod skipped;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use regatta_race::discover::{self, Competitor};
use regatta_race::network::Network;
use regatta_race::peers::mpich::Mpich;
use regatta_race::plan::{Effort, Wishes};
use regatta_race::results::{Results, Row};
use regatta_race::stop::Stop;
use regatta_race::{race, speed};

const SIGINT: i32 = 2;
/// Time limit for the end of an interrupted race, which takes about two seconds on a machine at rest.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);

/// A folder for a test's scripts and their output, removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = format!("regatta-interrupted-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir(&folder).expect("a new folder");
        Folder(folder)
    }

    /// Creates a script, in which FOLDER is the folder's path.
    fn script(&self, name: &str, text: &str) -> PathBuf {
        let (draft, path) = (self.0.join("draft"), self.0.join(name));
        let text = format!("#!/bin/sh\nFOLDER={}\n{text}\n", self.0.display());
        fs::write(&draft, text).expect("a script");
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).expect("its owner");
        // Another process writes the file: a file descriptor open for writing could be inherited by a child of another
        // test, and the script could then not be executed.
        let copied = std::process::Command::new("cp")
            .arg("-p")
            .args([&draft, &path])
            .status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "a copy of {name}"
        );
        path
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.0.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn limit() -> Competitor {
    let found = discover::discover(Path::new("/nonexistent"));
    let mut all = found.competitors.into_iter();
    all.find(|one| one.name == "limit").expect("it is there")
}

/// A script that ignores SIGTERM. It writes the pids of its process and of one below it with a session of its own to
/// `started`.
const DEAF: &str = "trap '' TERM
setsid sh -c 'echo $$ >>\"$0\"; sleep 1000; sleep 1000' \"$FOLDER/started\" &
echo $$ >>\"$FOLDER/started\"
sleep 1000
sleep 1000";

/// Returns an environment with a fake compiler, and this script as launcher.
fn launched_by(folder: &Folder, text: &str) -> Competitor {
    let compiler = "while [ \"$1\" != -o ]; do shift; done; : >\"$2\"";
    Competitor {
        name: "bad".to_owned(),
        peer: &Mpich,
        compiler: folder.script("compiler", compiler),
        launcher: folder.script("launcher", text),
        ..limit()
    }
}

fn race_of(competitors: Vec<Competitor>, suite: &str, operations: &[&str]) -> race::Race {
    race::Race {
        competitors,
        network: Network::Local,
        hosts: 1,
        wishes: Wishes {
            suites: vec![suite.to_owned()],
            operations: operations.iter().map(|&name| name.to_owned()).collect(),
            tasks: vec![2],
            bytes: vec![8],
            effort: Effort::Normal,
            launches: Some(3),
            budget: Some(12.0),
        },
        before: None,
        seed: 1,
        quiet: true,
        notes: vec![],
        command: "test".to_owned(),
    }
}

/// Runs a race that is interrupted after `until`. Returns its results or its error.
fn interrupted(race: race::Race, until: impl FnOnce()) -> Result<Results, String> {
    let stop = Stop::new().expect("a pair of sockets");
    let racing = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || race.run(&stop).map_err(|error| format!("{error:#}")))
    };
    until();
    let asked = Instant::now();
    stop.ask(SIGINT);
    let results = racing.join().expect("no panic");
    let took = asked.elapsed();
    assert!(took < STOP_TIMEOUT, "{took:?} from the request to the end");
    results
}

/// Asserts that this many processes have started, and that none of them runs any more.
fn all_gone(folder: &Folder, number: usize) {
    let started = folder.lines("started");
    assert_eq!(started.len(), number, "{started:?}");
    for pid in started {
        let left = fs::read_to_string(format!("/proc/{pid}/cmdline"));
        assert!(left.is_err(), "{pid} is left: {left:?}");
    }
}

fn await_started(folder: &Folder, number: usize) {
    looks::await_files(&folder.0, || {
        (folder.lines("started").len() >= number).then_some(())
    });
}

/// Returns the only row of an environment.
fn row<'a>(results: &'a Results, environment: &'a str) -> &'a Row {
    let mut rows = results.rows_of(environment);
    let row = rows.next().expect("a row");
    assert!(rows.next().is_none());
    row
}

fn says_interrupted(results: &Results) -> bool {
    let mut notes = results.notes.iter();
    notes.any(|note| note.contains("interrupted: finished measurements are kept"))
}

#[test]
fn a_race_that_is_to_stop_while_a_heat_starts_waits_for_no_first_word() {
    let folder = Folder::new("start");
    let bad = launched_by(&folder, DEAF);
    let race = race_of(vec![limit(), bad], "primitives", &["one-to-one"]);
    let results = interrupted(race, || await_started(&folder, 2)).expect("points not reached");
    assert!(says_interrupted(&results), "{:?}", results.notes);
    for environment in ["limit", "bad"] {
        let row = row(&results, environment);
        assert!(!row.measured(), "{row:?}");
        assert_eq!(row.flags, ["interrupted"]);
    }
    all_gone(&folder, 2);
}

#[test]
fn a_launcher_that_fails_again_and_again_is_started_twice_and_holds_nobody_up() {
    if speed::allowed().len() < 2 {
        skipped::skip("with one processor there is nothing to race between");
        return;
    }
    let folder = Folder::new("fails");
    let bad = launched_by(
        &folder,
        "echo $$ >>\"$FOLDER/started\"; echo no >&2; exit 1",
    );
    let race = race_of(vec![limit(), bad], "primitives", &["one-to-one"]);
    let stop = Stop::new().expect("a pair of sockets");
    let results = race.run(&stop).expect("limit is measured");
    let flags = &row(&results, "bad").flags;
    assert!(
        flags[0].starts_with("2 of 2 launches: failed: it ended before"),
        "{flags:?}"
    );
    assert_eq!(row(&results, "limit").launches, 3);
    all_gone(&folder, 2);
}

/// The first launch fails and the heat continues without it. The second hangs.
#[test]
fn a_launch_that_is_tried_again_when_the_race_is_to_stop_has_failed_once() {
    if speed::allowed().len() < 2 {
        skipped::skip("with one processor there is nothing to race between");
        return;
    }
    let folder = Folder::new("again");
    let text = format!("mkdir \"$FOLDER/first\" 2>/dev/null && exit 1\n{DEAF}");
    let bad = launched_by(&folder, &text);
    let race = race_of(vec![limit(), bad], "primitives", &["one-to-one"]);
    let results = interrupted(race, || await_started(&folder, 2)).expect("the first heat");
    assert!(says_interrupted(&results), "{:?}", results.notes);
    let limit = row(&results, "limit");
    assert!(limit.measured() && limit.launches == 1, "{limit:?}");
    let flags = &row(&results, "bad").flags;
    assert!(flags[0].starts_with("1 of 1 launches: failed"), "{flags:?}");
    all_gone(&folder, 2);
}

/// Environments that are launched one after the other, not in turns. Programs whose time is measured from outside are not tied to the race, and one program
/// never reports that it is idle.
#[test]
fn a_launch_that_hangs_ends_when_the_race_is_to_stop() {
    for (name, suite, operations) in [
        ("join", "start", ["join-leave"]),
        ("idle", "memory", ["idle"]),
        ("blocked", "memory", ["blocked-receive"]),
    ] {
        let folder = Folder::new(name);
        let race = race_of(vec![launched_by(&folder, DEAF)], suite, &operations);
        let results = interrupted(race, || await_started(&folder, 2)).expect("points not reached");
        let mut flags = results.rows.iter().map(|row| &row.flags);
        assert!(flags.all(|flags| flags == &["interrupted"]));
        all_gone(&folder, 2);
    }
}

/// The program answers in five turns, and then ignores turns and the request to end.
#[test]
fn a_player_that_hangs_in_its_turn_does_not_hold_up_the_end() {
    if speed::allowed().len() < 2 {
        skipped::skip("with one processor there is nothing to race between");
        return;
    }
    let folder = Folder::new("turn");
    let text = format!(
        "#include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        static char *hang(char *line, int size, FILE *from)
        {{
            static int lines;
            if (++lines > 5) {{
                signal(SIGTERM, SIG_IGN);
                FILE *started = fopen(\"{}/started\", \"a\");
                fprintf(started, \"%d\\n\", getpid());
                fclose(started);
                for (;;)
                    pause();
            }}
            return fgets(line, size, from);
        }}
        #define fgets hang\n",
        folder.0.display()
    );
    let header = folder.0.join("hang.h");
    fs::write(&header, text).expect("a header");
    let bad = Competitor {
        name: "bad".to_owned(),
        flags: vec![
            "-D_GNU_SOURCE".to_owned(),
            "-include".to_owned(),
            header.display().to_string(),
        ],
        ..limit()
    };
    let race = race_of(vec![limit(), bad], "primitives", &["one-to-one"]);
    let results = interrupted(race, || await_started(&folder, 2)).expect("some turns");
    assert!(says_interrupted(&results), "{:?}", results.notes);
    for environment in ["limit", "bad"] {
        let row = row(&results, environment);
        // The load of the machine determines how many of the five turns count.
        assert!(row.measured() && row.samples > 0, "{row:?}");
        let failed = |flag: &String| flag.contains("failed");
        assert!(!row.flags.iter().any(failed), "{row:?}");
    }
    all_gone(&folder, 2);
}
