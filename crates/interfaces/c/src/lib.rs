//! libregatta.so: the C interface. The header `include/regatta.h` is its documentation and its
//! contract; every function here is the one of the same name there.
//!
//! This layer turns C's pointers into views, ranks and handles, and results into codes. It holds
//! no state but each thread's last error.

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
