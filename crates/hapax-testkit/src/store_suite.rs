//! The store conformance suite: one plain async function per rule, and [`store_suite!`](crate::store_suite) to
//! make a test of each.
//!
//! A case takes a [`Rig`], panics when the rule is broken and has no other effect. Time passes only through
//! [`Rig::advance`], so the same cases run on a manual clock in microseconds and against a real server in a few
//! leases.

pub mod claims;
pub mod fences;

mod script;

use std::fmt;
use std::future::Future;
use std::time::Duration;

use hapax_core::BoxFuture;

use crate::rig::Rig;

/// No case takes this long on any store; one that does hangs, and should fail under its own name.
const CASE_TIME_MAX: Duration = Duration::from_secs(300);

/// Runs one case to its end on a runtime of its own with two worker threads.
///
/// # Panics
/// When the case does, or when it hangs.
pub fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("the machine has threads for a test runtime");
    runtime.block_on(async { tokio::time::timeout(CASE_TIME_MAX, case).await.expect("the case ends") });
}

/// One rule of the suite, for those who run it by hand.
pub struct Case<R> {
    /// Module and function, as in `claims::a_fresh_key_is_acquired`.
    pub name: &'static str,
    /// Checks the rule.
    pub check: for<'a> fn(&'a R) -> BoxFuture<'a, ()>,
}

impl<R> fmt::Debug for Case<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Every rule, in reading order.
pub fn cases<R: Rig>() -> Vec<Case<R>> {
    macro_rules! listed {
        ([] $($module:ident: $($case:ident),+;)+) => {
            vec![$($(Case {
                name: concat!(stringify!($module), "::", stringify!($case)),
                check: |rig: &R| Box::pin($module::$case(rig)),
            },)+)+]
        };
    }
    crate::__store_suite_cases!([listed] [])
}

/// Makes a module `store_suite` with one test per rule, so that a broken rule is named.
///
/// The argument is called without arguments for every case and must return a future of a [`Rig`]: usually it is
/// the name of an `async fn`. See the [crate's front page](crate) for an example.
#[macro_export]
macro_rules! store_suite {
    ($make_rig:expr) => {
        #[cfg(test)]
        mod store_suite {
            #[allow(unused_imports)]
            use super::*;

            $crate::__store_suite_cases!([$crate::__store_suite_tests][$make_rig]);
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __store_suite_tests {
    ([$make_rig:expr] $($module:ident: $($case:ident),+;)+) => {
        $(mod $module {
            #[allow(unused_imports)]
            use super::*;

            $(#[test]
            fn $case() {
                $crate::store_suite::run(async {
                    let rig = $make_rig().await;
                    $crate::store_suite::$module::$case(&rig).await;
                });
            })+
        })+
    };
}

/// The one list of all rules: gives it to the macro `apply`, behind that macro's own `context`.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_suite_cases {
    ([$($apply:tt)+] $context:tt) => {
        $($apply)+! { $context
            claims:
                a_fresh_key_is_acquired,
                a_claimed_key_is_busy,
                another_fingerprint_is_a_mismatch,
                another_algorithm_is_not_compared,
                a_finished_key_replays,
                a_released_key_is_claimed_again,
                scopes_keep_keys_apart;
            fences:
                a_stranger_changes_nothing,
                a_write_needs_a_record,
                an_outcome_is_final,
                a_released_attempt_is_over,
                a_takeover_fences_the_first_owner_out,
                attempts_count_up;
        }
    };
}
