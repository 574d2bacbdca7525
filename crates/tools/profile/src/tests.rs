//! Profiles of records that are created here, and of malformed ones.

use proptest::prelude::*;
use regatta_record::{
    Call, EVENTS_AT, MAGIC, MODULES_AT, NAMES_AT, SAMPLES_AT, THREADS_AT, call, event, head, peer,
    thread, words,
};

use crate::folder::Files;
use crate::messages::Arrow;
use crate::profile::{Began, Profile};
use crate::{collect, folder, functions, json, messages, page, table};

const ROOM: usize = 8;
/// Maximum duration of a job in these tests, in nanoseconds.
const MAX_JOB_NANOSECONDS: u64 = 1_000_000;

/// Returns the record of a task with these words written into it.
fn record(task: u64, written: &[(usize, u64)]) -> Vec<u8> {
    let mut all = vec![0u64; words(ROOM)];
    all[head::MAGIC] = MAGIC;
    all[head::SIZE] = words(ROOM) as u64;
    all[head::EVENTS] = ROOM as u64;
    all[head::TASK] = task + 1;
    all[head::BOOT] = 1;
    all[head::BEGAN] = 1000;
    all[head::BEGAN_REAL] = 1_000_000;
    all[head::LAST] = 11_000;
    all[head::ENDED] = 11_000;
    all[THREADS_AT + thread::USED] = 1;
    all[THREADS_AT + thread::TAKEN] = 1;
    all[THREADS_AT + thread::BEGAN] = 1000;
    for &(at, word) in written {
        all[at] = word;
    }
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn profile(records: &[Vec<u8>]) -> Profile {
    let files = records.iter().enumerate();
    let files: Files = files
        .map(|(number, record)| (format!("{number}.record"), record.clone()))
        .collect();
    Profile::of(files, &began(records.len()), Vec::new())
}

/// Returns a job that began with this many tasks, and ended with status 0.
fn began(tasks: usize) -> Began {
    Began {
        tasks: Some(tasks as u32),
        status: 0,
        folder: "/tmp/records".into(),
        longest: MAX_JOB_NANOSECONDS,
    }
}

fn at_call(name: &str) -> usize {
    THREADS_AT + thread::CALLS + usize::from(Call::named(name).0) * call::WORDS
}

/// Returns the words of a call's event, at a place in the buffer.
fn event(
    place: usize,
    name: &str,
    flags: u8,
    (began, ended): (u64, u64),
    peer: u64,
) -> [(usize, u64); 5] {
    let at = EVENTS_AT + place * event::WORDS;
    let what = event::pack(Call::named(name).0, flags, 0, 1);
    [
        (at + event::WHAT, what),
        (at + event::BEGAN, began),
        (at + event::ENDED, ended),
        (at + event::BYTES, 8),
        (at + event::PEER, peer | 5 << 32),
    ]
}

#[test]
fn time_outside_of_calls_is_computing_and_time_without_recording_is_none() {
    let with = |more: &[(usize, u64)]| {
        let mut written = vec![
            (at_call("rg_send") + call::COUNT, 2),
            (at_call("rg_send") + call::TIME, 1000),
            (at_call("rg_barrier") + call::COUNT, 1),
            (at_call("rg_barrier") + call::TIME, 3000),
            (head::PROCESSOR, 4000),
        ];
        written.extend(more);
        profile(&[record(0, &written)])
    };
    let of = with(&[]);
    let task = &of.tasks[0];
    assert_eq!(
        (task.time, task.computing(), task.idle),
        (10_000, 6000, Some(6000))
    );
    assert_eq!(task.kinds, [1000, 0, 0, 3000, 0]);
    let of = with(&[(head::OFF, 2000), (head::OFF_SINCE, 10_500)]);
    assert_eq!((of.tasks[0].time, of.tasks[0].computing()), (7500, 3500));
}

#[test]
fn both_ends_of_a_message_are_put_together_and_the_wait_for_its_sender_is_known() {
    let sent = event(0, "rg_send", event::SENT, (5000, 5100), 1);
    let received = event(3, "rg_recv", event::RECEIVED, (2000, 5500), 0);
    let of = profile(&[record(0, &sent), record(1, &received)]);
    let found = messages::of(&of);
    let arrow = Arrow {
        from: 0,
        sent: 4000,
        to: 1,
        received: 4500,
        bytes: 8,
        tag: 5,
    };
    assert_eq!(found.arrows, [arrow]);
    assert_eq!(found.late.get(&1), Some(&3000));
}

#[test]
fn tasks_of_hosts_with_clocks_of_their_own_have_one_time_line() {
    let later = [
        (head::BOOT, 2),
        (head::BEGAN, 500_000),
        (head::BEGAN_REAL, 1_000_700),
        (head::LAST, 510_000),
        (head::ENDED, 510_000),
    ];
    let of = profile(&[record(0, &[]), record(1, &later)]);
    let begins = of.tasks.iter().map(|task| task.at(task.record.head.began));
    assert_eq!(begins.collect::<Vec<_>>(), [0, 700]);
    assert_eq!(of.span(), 10_700);
}

#[test]
fn messages_are_counted_once_also_when_only_one_end_has_a_record() {
    let peers = THREADS_AT + thread::PEERS_AT;
    let of = profile(&[record(
        0,
        &[
            (peers + peer::TASK, 2),
            (peers + peer::SENT, 3),
            (peers + peer::SENT_BYTES, 30),
            (peers + peer::RECEIVED, 4),
            (peers + peer::RECEIVED_BYTES, 44),
        ],
    )]);
    let pairs: Vec<_> = of.pairs().into_iter().collect();
    assert_eq!(pairs, [((0, 1), (3, 30)), ((1, 0), (4, 44))]);
}

#[test]
fn what_is_missing_is_said() {
    let within = Call::named("rg_recv").0;
    let cut = [
        (head::ENDED, 0),
        (THREADS_AT + thread::CURRENT, u64::from(within) + 1),
        (THREADS_AT + thread::CURRENT_PEER, 1),
    ];
    let files = [
        ("a.record".to_owned(), record(2, &cut)),
        ("b.record".to_owned(), b"nonsense".to_vec()),
    ];
    let of = Profile::of(files.into(), &began(3), Vec::new());
    let said = of.problems.join("\n");
    assert!(said.contains("the file b.record is ignored"), "{said}");
    assert!(said.contains("no record of task 0, 1: it never"), "{said}");
    assert!(
        said.contains("its records are in /tmp/records there"),
        "{said}"
    );
    assert!(
        said.contains("task 2 was killed, or ended by _exit, within rg_recv, about task 0"),
        "{said}"
    );
}

#[test]
fn a_task_that_had_no_room_for_its_record_is_no_sign_of_a_wrong_library() {
    let unrecorded = ("h-7-99-error28.record".to_owned(), Vec::new());
    let of = Profile::of([unrecorded.clone()].into(), &began(1), Vec::new());
    let said = of.problems.join("\n");
    assert!(
        said.contains("process 7 of h could not write a record in /tmp/records (No space"),
        "{said}"
    );
    assert!(!said.contains("libregatta.so"), "{said}");
    let files = [("a.record".to_owned(), record(0, &[])), unrecorded];
    let said = Profile::of(files.into(), &began(2), Vec::new()).problems;
    let part = "no record of task 1: it could not write one (see above), or it never called";
    assert!(said.join("\n").contains(part), "{said:?}");
    // Without such a file both causes are named.
    let said = Profile::of(Files::new(), &began(1), Vec::new()).problems;
    assert!(said[0].contains("no task called libregatta.so"));
    assert!(said[0].contains("no task could write a record"), "{said:?}");
}

#[test]
fn a_damaged_record_is_left_out_with_a_sentence() {
    let call = at_call("rg_send");
    let damaged = [(call + call::COUNT, 1), (call + call::TIME, u64::MAX)];
    let of = profile(&[record(0, &[]), record(1, &damaged)]);
    let text = table::text(&of, &functions::of(&of), &messages::of(&of), None);
    assert!(!text.contains("18446744"), "{text}");
    let part = "the file 1.record is ignored: it is damaged, because its times exceed the duration";
    assert!(text.contains(part), "{text}");
}

#[test]
fn a_host_with_a_wrong_clock_does_not_make_the_job_long() {
    let year = 31_536_000_000_000_000;
    let host = u64::from_le_bytes(*b"elsewher");
    let wrong = [
        (head::BOOT, 2),
        (head::BEGAN_REAL, year),
        (head::HOST, host),
    ];
    let of = profile(&[record(0, &[]), record(1, &wrong)]);
    assert_eq!(of.span(), 10_000);
    let said = of.problems.join("\n");
    assert!(said.contains("the clock of elsewher differs"), "{said}");
    // One damaged value among three on a host changes nothing.
    let damaged = record(1, &[(head::BEGAN_REAL, u64::MAX)]);
    let of = profile(&[damaged, record(0, &[]), record(2, &[])]);
    assert_eq!((of.span(), of.problems.len()), (10_000, 0));
}

#[test]
fn kept_records_are_this_users_alone_and_links_are_not_followed() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let place = std::env::temp_dir().join(format!("kept-{}", std::process::id()));
    let (kept, other) = (place.join("a/b"), place.join("other"));
    let files: Files = ["x-1.record", "y-2.record"]
        .map(|name| (name.to_owned(), vec![7; 9]))
        .into();
    folder::keep(&files, &kept).expect("kept");
    std::fs::write(&other, "other").expect("a file");
    let (first, second) = (kept.join("x-1.record"), kept.join("y-2.record"));
    std::fs::remove_file(&first).expect("removed");
    symlink(&other, &first).expect("a link");
    std::fs::set_permissions(&second, PermissionsExt::from_mode(0o644)).expect("a mode");
    folder::keep(&files, &kept).expect("kept again");
    let mode =
        |path: &std::path::Path| std::fs::symlink_metadata(path).expect("there").mode() & 0o7777;
    assert_eq!([mode(&kept), mode(&place.join("a"))], [0o700; 2]);
    assert_eq!([mode(&first), mode(&second)], [0o600; 2]);
    assert_eq!(std::fs::read(&first).expect("a record"), [7; 9]);
    assert_eq!(std::fs::read(&other).expect("a file"), b"other");
    std::fs::remove_dir_all(&place).expect("removed");
}

#[test]
fn names_of_files_are_those_of_the_recorder() {
    assert!(folder::is_name("host-12-345.record"));
    for name in [
        "x",
        ".record",
        "../a.record",
        "a/b.record",
        "a b.record",
        "-\n.record",
    ] {
        assert!(!folder::is_name(name), "{name}");
    }
}

#[test]
fn records_of_a_host_come_after_whatever_its_shell_says() {
    let said =
        b"Welcome!\nregatta-records\na-1.record 3\nabcb-2.record 0\nregatta-records-end\nmore";
    let files = collect::parse(&mut &said[..]).expect("records");
    assert_eq!(files.len(), 2);
    assert_eq!(files["a-1.record"], b"abc");
    for cut in 0..said.len() - 6 {
        assert!(collect::parse(&mut &said[..cut]).is_err(), "{cut}");
    }
    for bad in [
        "regatta-records\n../a.record 3\nabc",
        "regatta-records\na.record -3\nabc",
        "regatta-records\na.record 99999999999999999999\n",
        "regatta-records\na.record 999999999999\n",
    ] {
        assert!(collect::parse(&mut bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn texts_of_tasks_do_not_leave_their_place_on_the_page() {
    let text = u64::from_le_bytes(*b"<script>");
    let of = profile(&[record(
        0,
        &[
            (head::HOST, text),
            (head::PROGRAM, text),
            (NAMES_AT, text),
            (NAMES_AT + regatta_record::name::MARKS, 1),
            (EVENTS_AT, event::pack(event::MARK, 0, 0, 0)),
        ],
    )]);
    let shown = page::page(&of, &functions::of(&of), &messages::of(&of));
    assert_eq!(shown.matches("<script>").count(), 1, "only the page's own");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Malformed records can be shown.
    #[test]
    fn any_records_can_be_shown(seed in any::<u64>(), often in 1u64..20) {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut records = Vec::new();
        for task in 0..3 {
            let mut written = Vec::new();
            // The list of modules names files of this host, which must not be read here.
            for at in (head::PID..MODULES_AT).chain(SAMPLES_AT..words(ROOM)) {
                if next() % often == 0 && at != head::MODULE_BYTES {
                    let word = match next() % 4 {
                        0 => u64::MAX,
                        1 => next() % 5,
                        2 => next() % 20_000,
                        _ => next(),
                    };
                    written.push((at, word));
                }
            }
            records.push(record(task, &written));
        }
        let of = profile(&records);
        let (functions, messages) = (functions::of(&of), messages::of(&of));
        prop_assert!(page::page(&of, &functions, &messages).ends_with("</html>\n"));
        let controls = table::text(&of, &functions, &messages, None);
        let controls = controls.chars().any(|c| c.is_control() && c != '\n');
        prop_assert!(!controls);
        let value = json::value(&of, &functions, &messages, None);
        prop_assert_eq!(&value["event"], "profile");
        let seconds = value["seconds"].as_f64().expect("a time");
        prop_assert!(seconds <= MAX_JOB_NANOSECONDS as f64 / 1e9);
    }

    #[test]
    fn any_bytes_of_a_host_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut all = b"regatta-records\n".to_vec();
        all.extend(bytes);
        let _ = collect::parse(&mut &all[..]);
    }
}
