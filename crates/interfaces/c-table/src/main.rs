//! Prints the names of all functions of `regatta.h`, sorted, one per line. With the argument `reference` or `errors` it prints that
//! page of the documentation instead.
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
