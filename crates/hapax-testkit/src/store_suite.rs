//! The store conformance suite: one plain async function per rule, and [`store_suite!`](crate::store_suite!), which
//! makes a test of each.
//!
//! A case takes a [`Rig`], panics when the rule is broken and has no other effect. Time passes only through
//! [`Rig::advance`], so the same cases run on a manual clock in microseconds and against a real server in a few
//! leases.

pub mod ambiguous;
pub mod cancellation;
pub mod claims;
pub mod delete;
pub mod expiry;
pub mod fences;
pub mod lapse;
pub mod leases;
pub mod limits;
pub mod list;
pub mod lost_answers;
pub mod model;
pub mod races;
pub mod settle;
pub mod sweep;
pub mod unreadable;

mod script;

use std::fmt;
use std::future::Future;
use std::time::Duration;

use hapax_core::BoxFuture;

use crate::rig::Rig;

/// Longer than any case takes on any store; a case that hangs fails under its own name.
const CASE_TIME_MAX: Duration = Duration::from_secs(300);

/// Runs one case in its own runtime with two worker threads.
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

/// One rule of the suite, for callers that run it without the macro.
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

/// The list of all rules: passes it to the macro `apply`, after that macro's own `context`.
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
                only_replays_are_recalled,
                a_released_key_is_claimed_again,
                scopes_keep_keys_apart;
            fences:
                a_stranger_changes_nothing,
                a_write_needs_a_record,
                an_outcome_is_final,
                a_released_attempt_is_over,
                a_takeover_fences_the_first_owner_out,
                attempts_count_up;
            leases:
                a_renewed_lease_holds_on,
                a_renewal_counts_from_now,
                a_renewal_may_be_longer,
                a_lapsed_lease_may_be_renewed,
                an_uncertain_record_stays_uncertain,
                repeating_a_claim_renews_it;
            lapse:
                a_lapsed_claim_is_uncertain,
                a_lapsed_claim_is_shown_as_uncertain,
                a_lapsed_claim_is_taken_over_when_asked,
                an_uncertain_record_is_taken_over_when_asked,
                takeovers_end_at_attempts_max,
                a_late_completion_by_the_owner_is_applied,
                a_late_release_by_the_owner_is_applied,
                an_abandoned_claim_is_uncertain_immediately;
            settle:
                applied_pins_the_outcome,
                not_applied_frees_the_key,
                a_lapsed_claim_may_be_settled,
                a_settlement_fences_the_owner_out,
                only_an_uncertain_record_is_settled,
                another_attempt_is_not_settled;
            delete:
                a_record_without_a_running_attempt_is_removed,
                a_claim_in_progress_is_not_removed,
                a_changed_record_stays,
                an_absent_record_is_absent,
                a_deletion_is_counted;
            expiry:
                a_finished_record_is_replayed_for_its_retention,
                retention_counts_from_completion,
                a_repeated_completion_does_not_extend_retention,
                a_long_retention_is_kept,
                an_uncertain_record_does_not_expire,
                a_renewed_claim_outlives_its_retention,
                a_tombstone_is_forgotten;
            sweep:
                expired_records_are_removed,
                records_that_are_not_due_stay,
                unsettled_records_are_dropped_and_counted,
                a_batch_is_a_limit;
            list:
                pages_show_every_record_once,
                a_listed_record_is_whole,
                states_are_filtered,
                scopes_and_ids_are_filtered,
                ages_are_filtered,
                filtered_pages_show_every_record_once,
                an_unknown_cursor_is_refused,
                counts_agree,
                a_serving_store_is_healthy;
            limits:
                a_large_outcome_is_kept,
                a_too_large_outcome_is_refused,
                a_long_scope_is_kept,
                a_full_store_refuses_only_new_keys;
            unreadable:
                an_unreadable_record_is_not_claimed,
                an_unreadable_record_is_shown,
                an_unreadable_record_is_not_overwritten,
                an_unreadable_record_is_not_swept;
            lost_answers:
                a_repeated_claim_is_the_same_claim,
                a_repeated_takeover_is_the_same_takeover,
                a_repeated_write_is_applied_once,
                a_repeated_settlement_is_applied_once,
                a_repeated_deletion_finds_nothing,
                a_delayed_claim_does_not_revive_its_attempt,
                delayed_writes_do_not_touch_the_next_attempt,
                a_delayed_settlement_does_not_touch_the_next_attempt;
            ambiguous:
                an_ambiguous_claim_is_repeated,
                an_ambiguous_write_is_repeated,
                an_ambiguous_settlement_is_repeated,
                an_ambiguous_deletion_is_repeated,
                a_claim_sent_twice_concurrently_is_one_claim,
                a_completion_sent_twice_concurrently_is_one;
            cancellation:
                a_dropped_claim_may_be_repeated,
                a_dropped_claim_may_be_released,
                a_dropped_renewal_may_be_repeated,
                a_dropped_completion_may_be_repeated,
                a_dropped_ending_may_be_repeated,
                a_dropped_settlement_may_be_repeated,
                a_dropped_deletion_may_be_repeated,
                a_dropped_sweep_may_be_repeated,
                dropped_calls_hold_no_resources;
            races:
                one_claim_wins,
                one_takeover_wins,
                a_late_owner_or_a_takeover_wins,
                a_late_renewal_or_a_takeover_wins,
                a_completion_or_a_release_wins,
                one_settlement_wins,
                a_late_owner_or_a_settlement_wins,
                a_sweep_spares_a_new_claim,
                a_deletion_spares_a_new_claim,
                concurrent_operations_on_many_keys_are_all_kept;
            model:
                the_store_agrees_with_the_transition_function;
        }
    };
}
