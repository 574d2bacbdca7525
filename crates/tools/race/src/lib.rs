//! `regatta race`: Regatta against the message-passing libraries found on this machine.
//!
//! The life of a race, by modules. The programs themselves are C and live in `programs/` at the top.
//!
//! | step | modules |
//! |---|---|
//! | the command line, and all steps in turn | [`cli`], [`race`](mod@race) |
//! | which environments are here; getting peers; those on our own libraries | [`discover`], [`prepare`]; [`regatta_pvm`], [`interface`], [`same_program`] |
//! | the same program text compiled for each | [`build`] |
//! | which operations, sizes and numbers of tasks, in which order | [`plan`]; suites: [`ping_pong`], [`mpi_operations`], [`portability`], [`family`], [`idle`] |
//! | how each environment is set | [`settings`] |
//! | environments that take turns | [`duet`] |
//! | launches one after the other | [`run`], [`process`], [`output`], [`pvm`], [`progress`] |
//! | all of this between hosts | [`network`] |
//! | the machine meanwhile | [`machine`], [`speed`], [`share`] |
//! | a race that ends early, and what it started | [`stop`], [`tree`], [`watchdog`] |
//! | samples become rows, rows become verdicts | [`collect`], [`stats`], [`duet::ratio`] |
//! | what is written, shown, compared | [`results`]; [`table`], [`report`], [`reference`](mod@reference); [`compare`] |
#![forbid(unsafe_code)]

pub mod build;
pub mod cli;
pub mod collect;
pub mod compare;
pub mod discover;
pub mod duet;
pub mod family;
pub mod idle;
pub mod interface;
pub mod machine;
pub mod mpi_operations;
pub mod network;
pub mod output;
pub mod ping_pong;
pub mod plan;
pub mod portability;
pub mod prepare;
pub mod process;
pub mod progress;
pub mod pvm;
pub mod race;
pub mod reference;
pub mod regatta_pvm;
pub mod report;
pub mod results;
pub mod run;
pub mod same_program;
pub mod settings;
pub mod share;
pub mod speed;
pub mod stats;
pub mod stop;
pub mod table;
pub mod tree;
pub mod watchdog;
