//! Runs the inputs kept for the fuzzer, and the properties that must hold for them, without the fuzzer.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;

use corpus::each;
use regatta_daemon::readers;

#[test]
fn lines_are_understood_or_refused() {
    each("speech", readers::speech);
}

#[test]
fn each_datagram_opens_once_and_only_where_it_was_sent() {
    each("seals", readers::seals);
}
