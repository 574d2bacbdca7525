//! `regatta race`: races Regatta against the message-passing libraries found on this machine.
//!
//! The steps of a race, with their modules. The raced programs are written in C and are in `programs/` at the top of
//! the repository.
//!
//! | step | modules |
//! |---|---|
//! | the command line, and all steps in turn | [`cli`], [`race`](mod@race) |
//! | what is raced: one entry for each operation, and the suites they are in | [`operations`], [`suites`] |
//! | the environments: one file for each peer; finding them; installing them | [`peers`]; [`discover`]; [`prepare`] |
//! | the same program text compiled for each | [`build`], [`programs`] |
//! | which operations, sizes and numbers of tasks, in which order | [`plan`], [`places`], [`eligible`] |
//! | the settings of each environment | [`settings`] |
//! | environments that take turns | [`duet`] |
//! | launches one after the other | [`run`], [`process`], [`output`], [`progress`], [`idle`] |
//! | races between hosts | [`network`] |
//! | the machine during the race | [`machine`], [`speed`], [`share`] |
//! | the early end of a race and of its processes; resuming it | [`stop`], [`tree`], [`watchdog`]; [`resume`] |
//! | samples become rows, rows become verdicts | [`collect`], [`stats`], [`duet::ratio`], [`loggp`] |
//! | results: written, shown, compared | [`results`], [`spreadsheet`]; [`table`], [`report`], [`papers`], [`reference`](mod@reference); [`compare`]; [`export`]; [`say`] |
#![forbid(unsafe_code)]

pub mod build;
pub mod cli;
pub mod cliffs;
pub mod collect;
pub mod compare;
pub mod discover;
pub mod duet;
pub mod eligible;
pub mod export;
pub mod guidelines;
pub mod idle;
pub mod loggp;
pub mod machine;
pub mod network;
pub mod operations;
pub mod output;
pub mod papers;
pub mod peers;
pub mod places;
pub mod plan;
pub mod portability;
pub mod prepare;
pub mod process;
pub mod programs;
pub mod progress;
pub mod race;
pub mod reference;
pub mod report;
pub mod results;
pub mod resume;
pub mod run;
pub mod say;
pub mod settings;
pub mod share;
pub mod speed;
pub mod spreadsheet;
pub mod stats;
pub mod stop;
pub mod suites;
pub mod table;
pub mod tree;
pub mod watchdog;
