//! Writes the report and the picture of a recorded race: `cargo run -p regatta-race --example report -- RESULTS.JSON
//! DIR`.

use std::path::{Path, PathBuf};

use regatta_race::{reference, report, results::Results};

fn main() -> anyhow::Result<()> {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [from, to] = &words[..] else {
        anyhow::bail!("usage: report RESULTS.JSON DIR");
    };
    let results = Results::read(from)?;
    write(
        to,
        "report.html",
        &report::render(&results, &reference::points()),
    )?;
    write(to, "picture.svg", &report::picture(&results))
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    Ok(std::fs::write(folder.join(name), text)?)
}
