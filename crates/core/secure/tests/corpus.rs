//! Runs the inputs kept for the fuzzer, and arbitrary ones, without the fuzzer.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/records.rs"]
mod records;

use corpus::each;
use proptest::prelude::*;

#[test]
fn nobody_on_the_way_has_other_bytes_come_out() {
    each("records", records::records);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nor_with_any_steps(steps in prop::collection::vec(any::<u8>(), 0..1500)) {
        records::records(&steps);
    }
}
