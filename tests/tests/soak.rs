//! A short run of `make soak`.

use regatta_tests::fleet::Fleet;
use regatta_tests::soak;

#[test]
fn a_fleet_under_fire_loses_nothing() {
    let seed = u64::from(std::process::id());
    let fleet = Fleet {
        seconds: 20,
        hosts: 3,
        workers: 2,
        seed,
    };
    let (blows, said) = soak::run(&fleet, &mut |_| ());
    eprintln!("seed {seed}: {blows:?}\n{said}");
    assert!(blows.harmless() > 0, "nothing was done to it: {said}");
}
