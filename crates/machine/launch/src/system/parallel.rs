//! Runs a function over a list of items in parallel, or sequentially if no threads are available.
//!
//! Each item has a thread of its own, so that an item that blocks delays no other one. A limit (`ulimit -u`, the
//! control group's `pids.max`, the address space) may prevent new threads at any moment. Then the calling thread and
//! the threads that were created share the items. That takes longer, but does not fail. `std::thread::Scope::spawn`
//! would panic.

use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Calls `work` for each item, and returns the results in the order of the items.
pub fn in_parallel<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    share(items.into_iter().collect(), work, Builder::new)
}

fn share<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
    builder: impl Fn() -> Builder,
) -> Vec<R> {
    let count = items.len();
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let left = Mutex::new(items.into_iter().zip(&results));
    let take = || {
        let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
        left.next()
    };
    let run = || {
        while let Some((item, place)) = take() {
            let result = work(item);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        // The calling thread works as well.
        for _ in 1..count {
            if builder().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    drop(left);
    let results = results.into_iter().map(Mutex::into_inner);
    results
        .filter_map(|result| result.unwrap_or_else(PoisonError::into_inner))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    #[test]
    fn items_run_side_by_side_and_results_keep_their_order() {
        let all = Barrier::new(5);
        let doubled = in_parallel([1, 2, 3, 4, 5], |item| {
            // Blocks until all five items are here.
            all.wait();
            item * 2
        });
        assert_eq!(doubled, [2, 4, 6, 8, 10]);
    }

    #[test]
    fn the_calling_thread_does_all_items_where_no_thread_is_to_be_had() {
        // No address space has room for such a stack.
        let refused = || Builder::new().stack_size(1 << 60);
        assert!(refused().spawn(|| ()).is_err());
        let done = share(
            vec![1, 2, 3],
            |item| (item, std::thread::current().id()),
            refused,
        );
        let items: Vec<i32> = done.iter().map(|(item, _)| *item).collect();
        let threads: BTreeSet<String> = done.iter().map(|(_, id)| format!("{id:?}")).collect();
        let own = format!("{:?}", std::thread::current().id());
        assert_eq!((items, threads), (vec![1, 2, 3], BTreeSet::from([own])));
    }

    #[test]
    fn threads_that_were_had_share_the_items_with_the_calling_thread() {
        let allowed = Mutex::new(1);
        let builder = || {
            let mut allowed = allowed.lock().expect("no panic");
            let stack = if *allowed > 0 { 1 << 20 } else { 1 << 60 };
            *allowed -= 1;
            Builder::new().stack_size(stack)
        };
        // Exactly two at a time.
        let two = Barrier::new(2);
        let done = share(vec![1, 2, 3, 4], |item| (two.wait(), item).1, builder);
        assert_eq!(done, [1, 2, 3, 4]);
    }

    #[test]
    fn nothing_is_done_for_no_items() {
        assert!(in_parallel(Vec::<i32>::new(), |item| item).is_empty());
    }
}
