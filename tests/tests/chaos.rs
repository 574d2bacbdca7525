//! A short run of `make chaos`.

use regatta_tests::chaos;
use regatta_tests::fleet::Fleet;

#[test]
fn groups_that_are_revoked_and_shrunk_while_members_die_give_right_errors_and_leave_nothing() {
    let fleet = Fleet {
        seconds: 12,
        hosts: 3,
        workers: 2,
        seed: u64::from(std::process::id()),
    };
    let (_, said) = chaos::run(&fleet, &mut |_| ());
    for never in ["OK 0", "REVOKED 0", "DEAD 0", "0 epochs"] {
        assert!(!said.contains(&format!(" {never}")), "{never}: {said}");
    }
}
