//! Writes the names of all functions of `regatta.h`, one per line, sorted; or, for the documentation, a page: `reference` or `errors`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    match wanted.as_deref() {
        None => {
            let functions = regatta_c_table::functions();
            let mut names: Vec<&str> = functions.iter().map(|it| &*it.name).collect();
            names.sort_unstable();
            println!("{}", names.join("\n"));
        }
        Some("reference") => print!("{}", regatta_c_table::reference::page()),
        Some("errors") => print!("{}", regatta_c_table::reference::errors()),
        Some(other) => {
            eprintln!("regatta-c-table: there is no page {other}; there are reference and errors");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
