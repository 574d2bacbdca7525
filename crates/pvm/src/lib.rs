//! libpvm3.so.3: programs written for PVM 3.4, on Regatta.

pub mod message;
