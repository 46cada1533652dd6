//! A slice of the flips proof; `cargo xtask prove flips` runs more of the same, and larger stores.

use hapax_e2e::crash::Seed;
use hapax_e2e::flips::{Aim, End, Rig};

/// Fixed, so that a failure here is one everywhere.
const SEED: u64 = 20_261_118;

/// Enough for an index of several leaves.
const OPERATIONS: u64 = 1_200;

#[test]
fn no_flipped_bit_makes_an_operation_run_again_while_the_index_is_checked() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_flips")).unwrap();
    let mut seed = Seed::new(SEED);
    for end in [End::Orderly, End::Killed] {
        let image = rig.image(OPERATIONS, end).unwrap();
        for aim in [Aim::Anywhere, Aim::AnyFile, Aim::Ways, Aim::Index] {
            let report = rig.flip(&image, aim, 12, &mut seed).unwrap();
            assert_eq!(report.executed_again, [] as [String; 0]);
            assert_eq!(report.wrong, [] as [String; 0]);
        }
    }

    // Last, because it holds for the rest of the process: an index that is believed unchecked loses records.
    hapax_store_file::danger_trust_index();
    let image = rig.image(OPERATIONS, End::Orderly).unwrap();
    let report = rig.flip(&image, Aim::Index, 12, &mut seed).unwrap();
    assert!(!report.executed_again.is_empty(), "{report:?}");
}
