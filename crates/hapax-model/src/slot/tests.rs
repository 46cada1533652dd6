//! A slot represents its record, and every record that differs only in fields that no decision reads.

use hapax_core::transition::{self, Change, Command};
use hapax_core::{ClaimRequest, Lease, OnLapse, Settlement, Verdict};

use super::*;

fn slots() -> Vec<Slot> {
    let phases = [
        Phase::InProgress { ticks_left: 1 },
        Phase::InProgress { ticks_left: 0 },
        Phase::Pinned { value: 1 },
        Phase::Uncertain,
        Phase::Released,
    ];
    let expiries = [Expiry::Tombstone, Expiry::Unfinished, Expiry::Retention, Expiry::Ticks(0)];
    let mut slots = Vec::new();
    for phase in phases {
        for expiry in expiries {
            slots.push(Slot { nonce: 1, attempt: 1, takeovers: 0, other: false, phase, expiry });
        }
    }
    slots
}

fn commands() -> Vec<Command> {
    let mut commands = Vec::new();
    for id in [1, 2] {
        let lease = Lease { id: ID, fence: Fence { nonce: nonce(id), attempt: 1 }, length: LEASE };
        for on_lapse in [OnLapse::Uncertain, OnLapse::Rerun] {
            commands.push(Command::Claim(ClaimRequest {
                key: scoped_key(),
                fingerprint: fingerprint(false),
                nonce: nonce(id),
                lease: LEASE,
                on_lapse,
                attempts_max: 2,
                uncertain_retention: UNCERTAIN_RETENTION,
            }));
        }
        commands.push(Command::Renew(lease.clone()));
        commands.push(Command::Complete { lease: lease.clone(), done: value_of(id), retention: RETENTION });
        commands.push(Command::Release { lease: lease.clone(), answered: None });
        commands.push(Command::Abandon { lease, reason: Reason::Panicked });
        for verdict in
            [Verdict::NotApplied, Verdict::Applied { recorded: value_of(id), retention: RETENTION }]
        {
            let settlement = Settlement::new(nonce(id), verdict).with_nonce(nonce(8));
            commands.push(Command::Settle { id: ID, settlement });
        }
        commands.push(Command::Delete { id: ID, nonce: nonce(id) });
    }
    commands
}

/// The abstraction of the changed record.
fn outcome(record: &Record, command: &Command) -> Option<Slot> {
    match transition::decide(Some(record), command, NOW).change {
        Change::Keep => Some(Slot::of(record)),
        Change::Put(record) => Some(Slot::of(&record)),
        Change::Remove => None,
    }
}

#[test]
fn slots_round_trip_through_records() {
    for slot in slots() {
        assert_eq!(Slot::of(&slot.record()), slot);
    }
}

#[test]
fn no_decision_reads_a_field_that_slots_leave_out() {
    for slot in slots() {
        let record = slot.record();
        let status = match &record.status {
            Status::Uncertain { .. } => Status::Uncertain { reason: Reason::Declared },
            Status::Released { .. } => Status::Released { answered: Some(value_of(3)) },
            status => status.clone(),
        };
        let early = Timestamp::from_millis(5);
        let other = Record { created_at: early, updated_at: early, status, ..record.clone() };
        for command in commands() {
            assert_eq!(outcome(&record, &command), outcome(&other, &command), "{slot:?} {command:?}");
        }
    }
}
