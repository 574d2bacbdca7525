//! `make soak`: ten minutes on eight hosts, or as many seconds, hosts and workers of each as are given.

use regatta_tests::fleet::Fleet;
use regatta_tests::soak;

fn main() {
    Fleet::from_arguments().show("soak", soak::run);
}
