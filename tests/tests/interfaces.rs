//! The examples that use several interfaces: one program with three of them.

use regatta_tests::{Job, interfaces};

#[test]
fn one_program_uses_three_interfaces_at_once() {
    let program = interfaces::three();
    for (nodes, sum) in [("1", 1), ("2", 3), ("5", 15)] {
        let said = format!("{nodes} nodes: the sum is {sum}, by NX, Express and PVM");
        Job::at(&program, &[nodes]).run().passed().said(&said);
    }
    // In a job as well as started by hand.
    Job::of(1, &program, &["3"]).run().passed().said("sum is 6");
}
