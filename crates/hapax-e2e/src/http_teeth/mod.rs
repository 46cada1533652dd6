//! Defects that the HTTP cases must find: for every rule that they cover, at least one small change to the production
//! code that switches it off. A rule whose defect no case of its own notices is a rule that nothing holds.
//!
//! Each text must still occur just once in its file; a test sees to that, and to every rule having its defect.

mod claim;
mod dialect;
mod error;
mod fingerprint;
mod key;
mod method;
mod replay;
mod scope;
mod store;
mod transport;

use hapax_model::teeth::Tooth;

/// Every defect, in the order of the protocol's sections.
pub fn all() -> impl Iterator<Item = &'static Tooth> {
    let sections = [
        key::TEETH,
        method::TEETH,
        scope::TEETH,
        fingerprint::TEETH,
        claim::TEETH,
        replay::TEETH,
        error::TEETH,
        transport::TEETH,
        store::TEETH,
        dialect::TEETH,
    ];
    sections.into_iter().flatten()
}
