//! libregatta.so: the C interface. The header `include/regatta.h` documents it: every exported function here implements the
//! function of the same name there.
//!
//! This layer converts C's pointers to views, ranks and handles, and results to codes. Its only state is each thread's last
//! error and the users' operators.

mod collective;
mod error;
mod group;
mod hosts;
mod last_error;
mod life;
mod loan;
mod matched;
mod memory;
mod message;
mod names;
mod profile;
mod request;
mod tasks;
mod text;
