//! The measurements of `make reactions`, once, on a machine that may be busy: nothing may hang, and nothing may be left
//! behind.

use std::time::Duration;

use regatta_tests::reactions::measure;
use regatta_tests::slowness;

#[test]
fn tasks_hear_of_what_befalls_others() {
    let slow = slowness();
    let all = measure(1, |_| ());
    let limit = Duration::from_secs(20).mul_f64(slow.max(slowness()));
    for one in all {
        let took = one.worst();
        assert!(took < limit, "{}: {took:?}", one.what);
    }
}
