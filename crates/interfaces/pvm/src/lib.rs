//! libpvm3.so.3: programs written for PVM 3.4, on Regatta.
//!
//! The functions are those of `pvm3.h`, each in the file of its section. PVM's manual describes them, and `docs/pvm.md`
//! says what is supported. Everything uses the C interface of libregatta.so, so a program may use both.

mod arrival;
mod contexts;
mod direct;
mod group;
mod handlers;
mod head;
mod inbox;
mod last_results;
mod life;
mod listing;
mod machine;
mod mailbox;
pub mod message;
mod miscellaneous;
mod notify;
mod options;
mod output;
mod pattern;
mod receive;
mod reset;
mod search;
mod send;
mod sharing;
mod spawn;
mod spawn_environment;
mod state;
mod system;
mod tags;
mod tasks;
mod tickle;
mod tid;
mod trace;

use regatta_sys as rg;
