//! `make soak`: runs for ten minutes on eight hosts, or with the given seconds, hosts and workers per host.

use regatta_tests::fleet::Fleet;
use regatta_tests::soak;

fn main() {
    Fleet::from_arguments().show("soak", soak::run);
}
