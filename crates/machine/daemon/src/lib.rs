//! The daemon of a host in a virtual machine, and the commands that talk to it.
//!
//! There is one daemon per host and machine, run by the user; all daemons are equal. The daemon surrounds the pure core
//! `regatta_membership` with datagrams, time and sockets. The guide of this folder (README.md) lists the modules.

#![forbid(unsafe_code)]

mod answer;
mod ask;
mod birth;
mod budget;
mod channels;
pub mod commands;
mod console;
mod daemon;
mod dead_connection;
mod detached_session;
mod drive;
mod everybody;
mod journal;
mod last_words;
mod leftover;
mod own_daemon;
pub mod readers;
mod relay;
mod seal;
mod sessions;
mod shell;
mod shells;
mod sockets;
mod spare;
pub mod starter;
mod talk;
mod tasks;
mod unreached;
mod witness;

pub use ask::{Happening, Host, Leader, Report, Task, Unreached};
pub use birth::live;
pub use regatta_launch::place::{DEFAULT, MachinePlace};
