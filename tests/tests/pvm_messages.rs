//! Buffers and packing behave as in PVM 3.4: the same binary runs the same sequences of calls on both libraries, with
//! the same output.

use regatta_tests::pvm::{self, Original};

const COURSES: u64 = 60;
const STEPS: &str = "800";

#[test]
fn random_courses_of_calls_do_the_same_on_both_libraries() {
    let program = pvm::program("pvm_packing");
    let original = Original::start("regatta-pvm-messages");
    // Each run has other seeds. The line of a failure shows which.
    let first = u64::from(std::process::id()) * 1000;
    let mut lines = 0;
    for seed in first..first + COURSES {
        let arguments = [&seed.to_string(), STEPS];
        let theirs = pvm::said(original.command(&program).args(arguments));
        let ours = pvm::said(pvm::on_regatta(&program).args(arguments));
        for (ours, theirs) in ours.lines().zip(theirs.lines()) {
            assert_eq!(
                ours, theirs,
                "pvm_packing {seed} {STEPS}: Regatta's, then PVM's"
            );
        }
        assert_eq!(ours.lines().count(), theirs.lines().count());
        lines += ours.lines().count();
    }
    assert!(lines > 1000, "the courses are too short to say anything");
}
