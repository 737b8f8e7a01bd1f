//! The sweep: installs and upgrades every operator of the sample data, and compares the final states with those of the real
//! OLM.
//!
//! ```text
//!   catalog   bundles of the data folder ──▶ heads, edges, and the catalogs that hold them
//!      ▼
//!   case      one namespace, OperatorGroup and Subscription ── drives ──▶ engine (simulation, or a cluster)
//!      ▼ End
//!   plain       operators without a bundle: bundles from their manifests
//!   comparison  what runs beside what the manifests of an operator are
//!   judge     beside install-heads.tsv (the real OLM), ends.tsv (stored) and differences.yaml (explained)
//! ```

pub mod case;
pub mod catalog;
pub mod comparison;
pub mod judge;
pub mod live;
pub mod plain;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Processes all items on all processors and returns the results in the order of the items.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(number) else { return };
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
