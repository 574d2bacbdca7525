//! `make soak`: ten minutes on eight hosts, or as many seconds, hosts and workers of each as are given.

use regatta_tests::soak::Soak;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| {
        word.parse::<u64>().unwrap_or_else(|_| {
            panic!("{word:?} is no number: soak [SECONDS [HOSTS [WORKERS [SEED]]]]")
        })
    });
    let mut next = |usual| numbers.next().unwrap_or(usual);
    let soak = Soak {
        seconds: next(600),
        hosts: next(8) as u32,
        workers: next(2) as u32,
        seed: next(u64::from(std::process::id())),
    };
    println!(
        "soak: {} s on {} hosts with {} workers each, seed {}",
        soak.seconds, soak.hosts, soak.workers, soak.seed
    );
    let (blows, said) = soak.run(|blows| eprint!("\r{blows} "));
    eprintln!();
    println!("soak: {blows:?}");
    said.lines()
        .filter(|line| line.starts_with("soak:"))
        .for_each(|line| println!("{line}"));
}
