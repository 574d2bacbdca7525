//! What `make reactions` measures, once, on a machine that may be busy: nothing hangs, and nothing is left.

use std::time::Duration;

use regatta_tests::reactions::measure;

#[test]
fn tasks_hear_of_what_befalls_others() {
    for one in measure(1, |_| ()) {
        let took = one.worst();
        assert!(took < Duration::from_secs(20), "{}: {took:?}", one.what);
    }
}
