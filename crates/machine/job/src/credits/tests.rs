use regatta_wire::control::{OutputFormat, Route, StreamState};

use super::*;

/// Returns windows of ten bytes, with five more for last output.
fn windows() -> ReceiverWindows {
    ReceiverWindows::new(10, 5)
}

fn piece(bytes: &[u8], to: Option<u32>) -> Piece {
    let manner = OutputFormat {
        context: 0,
        tag: 0,
        lines: false,
        births: false,
    };
    Piece {
        task: 4,
        stream: 0,
        route: to.map(|to| Route { to, manner }),
        bytes: bytes.to_vec(),
        then: StreamState::More,
    }
}

#[test]
fn a_window_is_shut_until_it_is_opened_and_then_has_room_until_it_is_full() {
    let mut window = SendWindow::default();
    assert!(!window.has_room());
    window = SendWindow::open(10);
    window.sent(9);
    assert!(window.has_room());
    window.sent(1);
    assert!(!window.has_room());
    window.repaid(1);
    assert!(window.has_room());
}

#[test]
fn a_window_that_was_overrun_does_not_grow() {
    let mut window = SendWindow::open(10);
    for _ in 0..3 {
        window.sent(9);
        window.sent(64);
        window.repaid(63);
        assert!(!window.has_room(), "ten bytes are on their way");
        window.repaid(10);
        assert_eq!(window.on_their_way(), 0);
    }
    window.sent(10);
    assert!(!window.has_room());
}

#[test]
fn what_is_repaid_too_much_makes_no_more_room_than_there_is() {
    let mut window = SendWindow::open(10);
    window.sent(3);
    window.repaid(usize::MAX);
    window.sent(10);
    assert!(!window.has_room());
    let mut windows = windows();
    windows.sent(7, 3);
    windows.received(7, 100);
    windows.sent(7, 10);
    assert!(windows.is_full(7));
}

#[test]
fn sources_wait_while_the_window_of_their_receiver_is_full_and_for_no_other() {
    let mut windows = windows();
    windows.sent(7, 12);
    assert!(windows.is_full(7) && !windows.is_full(8));
    windows.wait(7, 70);
    windows.wait(7, 71);
    assert_eq!(windows.received(7, 2), []);
    assert_eq!(windows.received(8, 2), []);
    assert_eq!(windows.received(7, 1), [70, 71]);
    assert!(!windows.is_full(7) && !windows.are_whole());
    assert_eq!(windows.received(7, 9), []);
    assert!(windows.are_whole());
}

#[test]
fn the_last_output_of_tasks_has_a_larger_window() {
    let mut windows = windows();
    windows.sent(7, 14);
    assert!(windows.is_full(7) && windows.takes_last_output(7));
    windows.sent(7, 1);
    assert!(!windows.takes_last_output(7));
}

#[test]
fn all_windows_are_whole_when_another_launcher_begins() {
    let mut windows = windows();
    windows.sent(7, 12);
    windows.wait(7, 70);
    windows.sent(8, 1);
    assert_eq!(windows.all_received(), [70]);
    assert!(windows.are_whole());
}

#[test]
fn a_host_is_repaid_in_large_pieces_and_not_while_the_output_is_full() {
    let mut credits = Credits::default();
    let quarter = HOST_WINDOW_BYTES / 4;
    credits.host_sent(1, quarter as usize - 1);
    assert_eq!(credits.repay_host(1, false), None);
    credits.host_sent(1, 1);
    assert_eq!(credits.repay_host(1, true), None);
    assert_eq!(credits.repay_host(2, false), None);
    assert_eq!(credits.repay_host(1, false), Some(quarter));
    assert_eq!((credits.repay_host(1, false), credits.owed(1)), (None, 0));
}

#[test]
fn a_host_that_has_sent_more_than_a_message_can_repay_is_repaid_in_several() {
    let mut credits = Credits::default();
    credits.host_sent(1, 1 << 33);
    let all: Vec<u32> = std::iter::from_fn(|| credits.repay_host(1, false)).collect();
    let sum: u64 = all.iter().map(|bytes| u64::from(*bytes)).sum();
    assert_eq!((sum + credits.owed(1), all.len()), (1 << 33, 2));
}

#[test]
fn nothing_is_owed_to_a_lost_host() {
    let mut credits = Credits::default();
    credits.host_sent(1, HOST_WINDOW_BYTES as usize);
    credits.host_lost(1);
    assert_eq!((credits.repay_host(1, false), credits.owed(1)), (None, 0));
}

#[test]
fn output_that_nobody_receives_is_repaid_once_when_the_jobs_output_is_not_full() {
    let mut credits = Credits::default();
    credits.piece_diverted(&piece(b"for 9", Some(9)));
    credits.piece_diverted(&piece(b"for the job", None));
    credits.piece_diverted(&piece(b"", Some(9)));
    assert_eq!(credits.repay_diverted(true), []);
    let (by, task, bytes) = (9, 4, 5);
    assert_eq!(
        credits.repay_diverted(false),
        [Repayment { by, task, bytes }]
    );
    assert_eq!(credits.repay_diverted(false), []);
}
