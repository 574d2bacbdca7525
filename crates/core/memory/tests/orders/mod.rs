//! Runs a model in every order of its threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Checks a model in every order with at most this many preemptions. There must be at least `least` orders.
pub fn every_order(preemptions: usize, least: usize, model: impl Fn() + Send + Sync + 'static) {
    let orders = std::sync::Arc::new(AtomicUsize::new(0));
    let seen = orders.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        seen.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let seen = orders.load(Ordering::Relaxed);
    println!("{seen} orders");
    assert!(seen >= least, "only {seen} orders were seen");
}
