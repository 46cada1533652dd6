//! Decoding of records: every input is a record or unreadable, and a decoded record round-trips.

#![no_main]

use hapax_core::codec::{self, VERSION};
use hapax_core::{Record, RecordId};
use libfuzzer_sys::fuzz_target;

/// The id of the record in the seeds.
const ID: RecordId = RecordId::from_bytes([0x68; 32]);

// The first byte is the length of the head, the rest is head and outcome. An empty outcome is none.
fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first() else { return };
    let (head, outcome) = rest.split_at(rest.len().min(usize::from(*length)));
    let outcome = (!outcome.is_empty()).then_some(outcome);

    // Verbatim. The checksum refuses nearly all of them.
    check(head, outcome);

    // With a valid checksum, to reach the field parser.
    let head = sealed(b'h', &[], head);
    let attempt = codec::decode_head(&ID, &head).map(|record| record.fence.nonce);
    let nonce = attempt.as_ref().map_or(&[0; 16], |nonce| nonce.as_bytes());
    let outcome = outcome.map(|fields| sealed(b'o', nonce, fields));
    check(&head, outcome.as_deref());
});

fn check(head: &[u8], outcome: Option<&[u8]>) {
    if let Ok(record) = codec::decode(&ID, head, outcome) {
        assert_eq!(record.key.id, ID);
        assert_eq!(codec::decode_head(&ID, head).map(|head| head.state()), Ok(record.state()));
        assert_eq!(again(&record), record);
    }
}

fn again(record: &Record) -> Record {
    let encoded = codec::encode(record);
    let read = codec::decode(&ID, &encoded.head, encoded.outcome.as_deref());
    read.expect("an encoded record decodes")
}

/// Version and checksum before the fields, as in `spec/record-format.md`.
fn sealed(part: u8, nonce: &[u8], fields: &[u8]) -> Vec<u8> {
    let mut checksum = crc32fast::Hasher::new();
    for bytes in [&[part, VERSION], &ID.as_bytes()[..], nonce, fields] {
        checksum.update(bytes);
    }
    [&[VERSION], &checksum.finalize().to_be_bytes()[..], fields].concat()
}
