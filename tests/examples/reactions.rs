//! `make reactions`: measures how soon tasks are notified of failures and other events, ten times each or the given
//! number.

use regatta_tests::reactions::measure;

fn main() {
    let times = std::env::args().nth(1).map_or(10, |word| {
        word.parse()
            .unwrap_or_else(|_| panic!("{word:?} is no number: reactions [TIMES]"))
    });
    let all = measure(times, |what| eprintln!("measured: {what}"));
    let ms = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    println!(
        "{:<75} {:>10} {:>10} {:>10}",
        "what", "median", "worst", "target"
    );
    for one in &all {
        let (median, worst) = (ms(one.median()), ms(one.worst()));
        println!(
            "{:<75} {median:>10} {worst:>10} {:>10}",
            one.what,
            ms(one.target)
        );
    }
    println!("{times} times each, hosts being network namespaces of this machine");
    let late = all.iter().filter(|one| one.worst() > one.target).count();
    std::process::exit(i32::from(late > 0));
}
