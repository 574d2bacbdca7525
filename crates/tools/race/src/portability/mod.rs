//! The cost of portable interfaces over the machine's own: the question of Ahmad and Wu (1991), asked today.
//!
//! [`ahmad_wu`] has the operations of their report, and compares today's ratios with those of 1991. [`targets`] has the
//! points at which Regatta's interfaces keep a bound over its own. [`terminal`] shows both in a terminal.

pub mod ahmad_wu;
pub mod targets;
pub mod terminal;
