//! Each wrong store fails the case of the rule that it breaks, and the list of rules is complete.

use hapax_testkit::store_suite::{self, Case};

use crate::rigs::ReferenceRig;
use crate::wrong::{self, Wrong};

/// Whether the case `name` fails on a store with `defect`.
fn fails(defect: Wrong, name: &str) -> bool {
    let case: Case<ReferenceRig> = store_suite::cases()
        .into_iter()
        .find(|case: &Case<ReferenceRig>| case.name == name)
        .unwrap_or_else(|| panic!("there is no case {name}"));
    let run = move || {
        store_suite::run(async move {
            let rig = ReferenceRig::wrapped(move |store| wrong::wrap(defect, store));
            (case.check)(&rig).await;
        });
    };
    std::thread::spawn(run).join().is_err()
}

macro_rules! teeth {
    ($($test:ident: $defect:ident => $($case:literal),+;)+) => {
        $(#[test]
        fn $test() {
            $(assert!(fails(Wrong::$defect, $case), "{} should fail with {:?}", $case, Wrong::$defect);)+
        })+
    };
}

/// The case that compares random sequences with the model.
macro_rules! model {
    () => {
        "model::the_store_agrees_with_the_transition_function"
    };
}

teeth! {
    unfenced_complete: UnfencedComplete =>
        "fences::a_stranger_changes_nothing", "fences::a_takeover_fences_the_first_owner_out";
    release_by_anyone: ReleaseByAnyone =>
        "fences::a_stranger_changes_nothing", "lost_answers::delayed_writes_do_not_touch_the_next_attempt";
    renew_by_anyone: RenewByAnyone => "fences::a_stranger_changes_nothing";
    abandon_by_anyone: AbandonByAnyone => "fences::a_stranger_changes_nothing";
    lost_called_applied: LostCalledApplied => "fences::a_write_needs_a_record";
    lease_never_lapses: LeaseNeverLapses => "lapse::a_lapsed_claim_is_uncertain";
    lapse_reruns_silently: LapseRerunsSilently => "lapse::a_lapsed_claim_is_uncertain";
    attempts_unlimited: AttemptsUnlimited => "lapse::takeovers_end_at_attempts_max";
    attempts_not_counted: AttemptsNotCounted => "fences::attempts_count_up";
    claim_not_atomic: ClaimNotAtomic => "races::one_claim_wins";
    claim_not_repeatable: ClaimNotRepeatable =>
        "lost_answers::a_repeated_claim_is_the_same_claim",
        "ambiguous::an_ambiguous_claim_is_repeated",
        "cancellation::a_dropped_claim_may_be_repeated";
    complete_not_repeatable: CompleteNotRepeatable =>
        "lost_answers::a_repeated_write_is_applied_once",
        "ambiguous::an_ambiguous_write_is_repeated",
        "cancellation::a_dropped_completion_may_be_repeated";
    late_owner_refused: LateOwnerRefused => "lapse::a_late_completion_by_the_owner_is_applied";
    complete_in_two_steps: CompleteInTwoSteps => "cancellation::a_dropped_completion_may_be_repeated";
    recalls_anything: RecallsAnything => "claims::only_replays_are_recalled";
    outcome_truncated: OutcomeTruncated => "claims::a_finished_key_replays", "limits::a_large_outcome_is_kept";
    expiry_ignored: ExpiryIgnored => "expiry::a_finished_record_is_replayed_for_its_retention";
    retention_from_claim: RetentionFromClaim => "expiry::retention_counts_from_completion";
    mismatch_after_busy: MismatchAfterBusy => "claims::another_fingerprint_is_a_mismatch";
    settles_anything: SettlesAnything => "settle::only_an_uncertain_record_is_settled";
    settles_any_attempt: SettlesAnyAttempt => "settle::another_attempt_is_not_settled";
    deletes_in_progress: DeletesInProgress => "delete::a_claim_in_progress_is_not_removed";
    deletes_uncounted: DeletesUncounted => "delete::a_deletion_is_counted";
    sweeps_too_much: SweepsTooMuch => "sweep::records_that_are_not_due_stay";
    sweep_unlimited: SweepUnlimited => "sweep::a_batch_is_a_limit";
    list_drops_records: ListDropsRecords => "list::pages_show_every_record_once";
    list_by_written_state: ListByWrittenState => "list::states_are_filtered";
    cursor_ignored: CursorIgnored => "list::an_unknown_cursor_is_refused";
    stats_by_written_state: StatsByWrittenState => "list::counts_agree";
    evicts_when_full: EvictsWhenFull => "limits::a_full_store_refuses_only_new_keys";
    takes_less_than_it_says: TakesLessThanItSays => "limits::a_large_outcome_is_kept";
    takes_more_than_it_says: TakesMoreThanItSays => "limits::a_too_large_outcome_is_refused";
    unreadable_as_absent: UnreadableAsAbsent =>
        "unreadable::an_unreadable_record_is_not_claimed", "unreadable::an_unreadable_record_is_shown";
    unreadable_not_listed: UnreadableNotListed => "unreadable::an_unreadable_record_is_shown";
}

#[test]
fn the_model_alone_finds_most_defects() {
    for defect in [
        Wrong::UnfencedComplete,
        Wrong::ReleaseByAnyone,
        Wrong::RenewByAnyone,
        Wrong::AbandonByAnyone,
        Wrong::LeaseNeverLapses,
        Wrong::LapseRerunsSilently,
        Wrong::AttemptsUnlimited,
        Wrong::ClaimNotRepeatable,
        Wrong::LateOwnerRefused,
        Wrong::OutcomeTruncated,
        Wrong::ExpiryIgnored,
        Wrong::RetentionFromClaim,
        Wrong::MismatchAfterBusy,
        Wrong::SettlesAnything,
        Wrong::SettlesAnyAttempt,
        Wrong::DeletesInProgress,
        Wrong::SweepsTooMuch,
        Wrong::ListDropsRecords,
        Wrong::ListByWrittenState,
    ] {
        assert!(fails(defect, model!()), "the model should find {defect:?}");
    }
}

#[test]
fn every_rule_is_on_the_list() {
    let sources = [
        ("ambiguous", include_str!("../../src/store_suite/ambiguous.rs")),
        ("cancellation", include_str!("../../src/store_suite/cancellation.rs")),
        ("claims", include_str!("../../src/store_suite/claims.rs")),
        ("delete", include_str!("../../src/store_suite/delete.rs")),
        ("expiry", include_str!("../../src/store_suite/expiry.rs")),
        ("fences", include_str!("../../src/store_suite/fences.rs")),
        ("lapse", include_str!("../../src/store_suite/lapse.rs")),
        ("leases", include_str!("../../src/store_suite/leases.rs")),
        ("limits", include_str!("../../src/store_suite/limits.rs")),
        ("list", include_str!("../../src/store_suite/list.rs")),
        ("lost_answers", include_str!("../../src/store_suite/lost_answers.rs")),
        ("model", include_str!("../../src/store_suite/model.rs")),
        ("races", include_str!("../../src/store_suite/races.rs")),
        ("settle", include_str!("../../src/store_suite/settle.rs")),
        ("sweep", include_str!("../../src/store_suite/sweep.rs")),
        ("unreadable", include_str!("../../src/store_suite/unreadable.rs")),
    ];
    let mut written: Vec<String> = sources
        .iter()
        .flat_map(|(module, source)| {
            source
                .lines()
                .filter_map(|line| line.strip_prefix("pub async fn "))
                .filter_map(|line| line.split('(').next())
                .map(move |name| format!("{module}::{name}"))
        })
        .collect();
    let mut listed: Vec<String> =
        store_suite::cases::<ReferenceRig>().iter().map(|case| case.name.to_owned()).collect();
    written.sort();
    listed.sort();
    assert_eq!(listed, written);
}
