//! A short form of `make soak`.

use regatta_tests::soak::Soak;

#[test]
fn a_fleet_under_fire_loses_nothing() {
    let seed = u64::from(std::process::id());
    let soak = Soak {
        seconds: 15,
        hosts: 3,
        workers: 2,
        seed,
    };
    let (blows, said) = soak.run(|_| ());
    assert!(
        blows.workers + blows.cuts + blows.resets > 0,
        "nothing was done to it: {said}"
    );
}
