//! libnx.so.0: programs written for Intel's NX (iPSC/2, iPSC/860, Touchstone Delta, Paragon), on Regatta.
//!
//! The functions are those of `nx.h`, each in the file of its section; `docs/nx.md` lists them. Everything uses the C
//! interface of libregatta.so, so a program may use both.

mod application;
mod application_fortran;
mod arithmetic;
mod attributes;
mod clocks;
mod concatenation;
mod cube;
mod error;
mod extended;
mod files;
mod files_fortran;
mod forms;
mod global;
mod handled;
mod handlers;
mod host;
mod host_fortran;
mod inbox;
mod info;
mod interrupt;
mod iomodes;
mod left;
mod life;
mod mids;
mod operator;
mod options;
mod partition;
mod partitions;
mod places;
mod probe;
mod receive;
mod send;
mod started;
mod state;
mod types;
mod units;
mod vectors;
mod who;
mod world;

use regatta_sys as rg;
