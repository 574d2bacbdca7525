//! Runs a race of shared memory without a library against itself.

use std::path::Path;

use regatta_race::network::Network;
use regatta_race::plan::Wishes;
use regatta_race::results::Results;
use regatta_race::stop::Stop;
use regatta_race::{discover, race};

pub fn limit_against_itself(wishes: Wishes) -> Results {
    let mut competitors = discover::discover(Path::new("/nonexistent")).competitors;
    competitors.retain(|c| c.name == "limit");
    let mut again = competitors[0].clone();
    again.name = "limit-again".to_owned();
    competitors.push(again);
    let race = race::Race {
        competitors,
        network: Network::Local,
        hosts: 1,
        wishes,
        before: None,
        seed: 1,
        quiet: true,
        notes: vec![],
        command: "test".to_owned(),
    };
    race.run(&Stop::on_signals().expect("signals are heard"))
        .expect("the race runs")
}
