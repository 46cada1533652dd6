//! A slice of the flips proof; `cargo xtask prove flips` runs more of the same, and larger stores.

use hapax_e2e::flips::{Aim, FlipRig, StoreEnd};
use hapax_testkit::Random;

/// Fixed, so that a failure here is one everywhere.
const SEED: u64 = 20_261_118;

/// Enough for an index of several leaves.
const OPERATIONS: u64 = 1_200;

#[test]
fn no_flipped_bit_makes_an_operation_run_again_while_the_index_is_checked() {
    let rig = FlipRig::new(env!("CARGO_BIN_EXE_flips")).unwrap();
    let mut random = Random::seeded(SEED);
    for end in [StoreEnd::Closed, StoreEnd::Killed] {
        let image = rig.image(OPERATIONS, end).unwrap();
        for aim in [Aim::Anywhere, Aim::AnyFile, Aim::InnerPages, Aim::Index] {
            let report = rig.flip(&image, aim, 12, &mut random).unwrap();
            assert_eq!(report.executed_again, [] as [String; 0]);
            assert_eq!(report.wrong, [] as [String; 0]);
        }
    }

    // Last, because it holds for the rest of the process: an unchecked index loses records.
    hapax_store_file::danger_trust_index();
    let image = rig.image(OPERATIONS, StoreEnd::Closed).unwrap();
    let report = rig.flip(&image, Aim::Index, 12, &mut random).unwrap();
    assert!(!report.executed_again.is_empty(), "{report:?}");
}
