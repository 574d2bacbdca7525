//! libexpress.so.0: programs written for ParaSoft's Express, on Regatta.
//!
//! The functions are those of `express.h`, each in the file of its section; `docs/express.md` says what is known of
//! each original. Everything uses the C interface of libregatta.so, so a program may use both.
//!
//! *Rules of `exread`, `exwrite`, and `excombine` on all nodes:* no allocation, no lock and no system call, except
//! those of the one Regatta call that each of them makes. (docs/hot-paths.md names the test.)

mod broadcast;
mod combine;
mod concatenation;
mod constants;
mod decomposition;
mod grid;
mod handlers;
mod host_program;
mod left;
mod life;
mod look;
mod message;
mod pending;
mod select;
mod semaphore;
mod team;
mod vector;
