//! `make ways`: runs traffic between two hosts, for every way to send combined with every way to complete, at five
//! sizes just above those that fit into one frame, encrypted and not. Arguments: repetitions of each, and messages per
//! run. The defaults are 20 and 20 000.

use regatta_tests::Job;

const SEND: [&str; 4] = ["b", "w", "p", "q"];
const RECEIVE: [&str; 3] = ["b", "w", "p"];
const LENGTHS: [&str; 5] = ["20000", "30000", "40000", "50000", "65000"];
/// Time limit of one run in seconds. A run takes a few seconds, and more beside other work.
const TIME_LIMIT_SECONDS: u64 = 300;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| {
        word.parse::<u64>()
            .unwrap_or_else(|_| panic!("{word:?} is no number: ways [RUNS [MESSAGES]]"))
    });
    let runs = numbers.next().unwrap_or(20);
    let count = numbers.next().unwrap_or(20_000).to_string();
    assert!(runs > 0, "no run checks nothing");
    let mut failed = 0;
    for run in 1..=runs {
        eprint!("\r{run} of {runs} ");
        for trusted in [false, true] {
            for send in SEND {
                for receive in RECEIVE {
                    for length in LENGTHS {
                        let words = ["pairs", send, receive, length, &count];
                        failed += u64::from(!passes(&words, trusted));
                    }
                }
            }
        }
    }
    eprintln!();
    let each = 2 * SEND.len() * RECEIVE.len() * LENGTHS.len();
    println!(
        "ways: {} runs of {count} messages each, {failed} failed",
        runs * each as u64
    );
    std::process::exit(i32::from(failed > 0));
}

/// Runs one combination. Returns whether it passed; the panic of a failed run shows the tasks' output.
fn passes(words: &[&str], trusted: bool) -> bool {
    let job = Job::new(2, "traffic_ways", words).across("alpha:1,beta:1");
    let job = match trusted {
        true => job.option("--trusted-network"),
        false => job,
    };
    std::panic::catch_unwind(move || job.limit(TIME_LIMIT_SECONDS).run().passed()).is_ok()
}
