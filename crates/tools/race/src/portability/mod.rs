//! The cost of portable interfaces over the machine's own: the question of Ahmad and Wu (1991), asked again.
//!
//! [`ahmad_wu`] has the operations of their report, and today's ratios against those of then. [`targets`] has the points at which Regatta's
//! interfaces keep to a bound over its own. [`terminal`] shows both in a terminal.

pub mod ahmad_wu;
pub mod targets;
pub mod terminal;
