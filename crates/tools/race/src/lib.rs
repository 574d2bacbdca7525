//! `regatta race`: Regatta against the message-passing libraries found on this machine.
//!
//! The life of a race: [`discover`] finds the environments, [`build`] compiles the same program
//! text for each, [`plan`] lays out the launches in a shuffled order, [`run`] carries them out one
//! at a time, [`stats`] turns samples into medians with confidence intervals, [`results`] is what
//! gets written, [`table`] and [`report`] show it, [`compare`] holds two races against each other.
//! With [`network`] all of this happens between hosts.
//! [`cli`] ties these together. The programs themselves are C and live in `programs/` at the top.
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
