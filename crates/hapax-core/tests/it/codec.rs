//! Records decode exactly, or are unreadable.

use hapax_core::codec::{Encoded, Part, Unreadable, VERSION, decode, encode};
use hapax_core::{Class, Nonce, Record, RecordId, Status};
use proptest::prelude::*;

use crate::sample;

fn read(record: &Record, encoded: &Encoded) -> Result<Record, Unreadable> {
    decode(&record.key.id, &encoded.head, encoded.outcome.as_deref())
}

proptest! {
    #[test]
    fn every_record_round_trips(record in sample::any_record()) {
        let encoded = encode(&record);
        prop_assert_eq!(encoded.outcome.is_some(), record.recorded().is_some());
        prop_assert_eq!(read(&record, &encoded), Ok(record));
    }

    #[test]
    fn arbitrary_bytes_are_unreadable(
        id in any::<[u8; 32]>(),
        mut head in prop::collection::vec(any::<u8>(), 0..300),
        outcome in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
        right_version in any::<bool>(),
    ) {
        if let (true, Some(version)) = (right_version, head.first_mut()) {
            *version = VERSION;
        }
        prop_assert!(decode(&RecordId::from_bytes(id), &head, outcome.as_deref()).is_err());
    }

    /// The parser behind the checksum never panics either.
    #[test]
    fn arbitrary_fields_with_a_valid_checksum_never_panic(fields in prop::collection::vec(any::<u8>(), 0..300)) {
        let (_, record) = &sample::one_of_each()[0];
        if let Ok(read) = decode(&record.key.id, &sealed_head(&record.key.id, &fields), None) {
            prop_assert_eq!(read.key.id, record.key.id);
        }
    }

    #[test]
    fn an_altered_record_is_unreadable(
        record in sample::any_record(),
        at in any::<prop::sample::Index>(),
        with in 1..=u8::MAX,
    ) {
        let mut encoded = encode(&record);
        let outcome_length = encoded.outcome.as_ref().map_or(0, Vec::len);
        let at = at.index(encoded.head.len() + outcome_length);
        match (at.checked_sub(encoded.head.len()), &mut encoded.outcome) {
            (Some(at), Some(outcome)) => outcome[at] ^= with,
            _ => encoded.head[at] ^= with,
        }
        prop_assert!(read(&record, &encoded).is_err());
    }
}

#[test]
fn every_flipped_bit_is_detected() {
    for (name, record) in sample::one_of_each() {
        let encoded = encode(&record);
        for bit in 0..encoded.head.len() * 8 {
            let mut damaged = encoded.clone();
            damaged.head[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&record, &damaged).is_err(), "{name}: bit {bit} of the head");
        }
        for bit in 0..encoded.outcome.as_ref().map_or(0, Vec::len) * 8 {
            let mut damaged = encoded.clone();
            damaged.outcome.as_mut().unwrap()[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&record, &damaged).is_err(), "{name}: bit {bit} of the outcome");
        }
    }
}

#[test]
fn every_shorter_blob_is_unreadable() {
    for (name, record) in sample::one_of_each() {
        let encoded = encode(&record);
        for length in 0..encoded.head.len() {
            let got = decode(&record.key.id, &encoded.head[..length], encoded.outcome.as_deref());
            let why =
                if length < 5 { Unreadable::Short(Part::Head) } else { Unreadable::Checksum(Part::Head) };
            assert_eq!(got, Err(why), "{name}: {length} bytes of the head");
        }
        let outcome = encoded.outcome.unwrap_or_default();
        for length in 0..outcome.len() {
            let got = decode(&record.key.id, &encoded.head, Some(&outcome[..length]));
            assert!(got.is_err(), "{name}: {length} bytes of the outcome");
        }
    }
}

#[test]
fn an_unknown_version_is_unreadable() {
    let (_, record) = &sample::one_of_each()[1];
    for found in (0..=u8::MAX).filter(|version| *version != VERSION) {
        let mut newer = encode(record);
        newer.head[0] = found;
        assert_eq!(read(record, &newer), Err(Unreadable::Version { part: Part::Head, found }));
        let mut newer = encode(record);
        newer.outcome.as_mut().unwrap()[0] = found;
        assert_eq!(read(record, &newer), Err(Unreadable::Version { part: Part::Outcome, found }));
    }
}

#[test]
fn a_head_does_not_decode_for_another_record() {
    for (name, record) in sample::one_of_each() {
        let encoded = encode(&record);
        let other = RecordId::from_bytes([9; 32]);
        let got = decode(&other, &encoded.head, encoded.outcome.as_deref());
        assert_eq!(got, Err(Unreadable::Checksum(Part::Head)), "{name}");
    }
}

#[test]
fn an_outcome_does_not_decode_for_another_record_or_attempt() {
    let (_, record) = &sample::one_of_each()[1];
    let encoded = encode(record);
    let swapped = |change: fn(&mut Record)| {
        let mut other = record.clone();
        change(&mut other);
        let Encoded { outcome, .. } = encode(&other);
        decode(&record.key.id, &encoded.head, outcome.as_deref())
    };
    let foreign = Err(Unreadable::Checksum(Part::Outcome));
    assert_eq!(swapped(|other| other.key.id = RecordId::from_bytes([9; 32])), foreign);
    assert_eq!(swapped(|other| other.fence.nonce = Nonce::from_bytes([9; 16])), foreign);
    assert_eq!(swapped(|other| other.fence.attempt = 9).as_ref(), Ok(record));
}

#[test]
fn head_and_outcome_are_not_interchangeable() {
    let (_, record) = &sample::one_of_each()[1];
    let Encoded { head, outcome } = encode(record);
    let outcome = outcome.unwrap();
    assert_eq!(decode(&record.key.id, &head, Some(&head)), Err(Unreadable::Checksum(Part::Outcome)));
    assert_eq!(decode(&record.key.id, &outcome, Some(&outcome)), Err(Unreadable::Checksum(Part::Head)));
}

#[test]
fn a_missing_or_unexpected_outcome_is_unreadable() {
    let samples = sample::one_of_each();
    let completed = &samples[1].1;
    let with_outcome = encode(completed);
    let got = decode(&completed.key.id, &with_outcome.head, None);
    assert_eq!(got, Err(Unreadable::OutcomeMissing));
    for (name, record) in samples.iter().filter(|(_, record)| record.recorded().is_none()) {
        let got = decode(&record.key.id, &encode(record).head, with_outcome.outcome.as_deref());
        assert_eq!(got, Err(Unreadable::OutcomeForeign), "{name}");
    }
}

/// The layout of `spec/record-format.md`, written a second time.
fn sealed(part: u8, belongs_to: &[&[u8]], fields: &[u8]) -> Vec<u8> {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&[part, 1]);
    belongs_to.iter().for_each(|bytes| checksum.update(bytes));
    checksum.update(fields);
    [&[1][..], &checksum.finalize().to_be_bytes(), fields].concat()
}

fn sealed_head(id: &RecordId, fields: &[u8]) -> Vec<u8> {
    sealed(b'h', &[id.as_bytes()], fields)
}

/// Decodes the record with fields appended to its head and outcome. The last value of a field wins.
fn read_with(record: &Record, head_fields: &[u8], outcome_fields: &[u8]) -> Result<Record, Unreadable> {
    let id = &record.key.id;
    let encoded = encode(record);
    let head = sealed_head(id, &[&encoded.head[5..], head_fields].concat());
    let outcome = encoded.outcome.map(|outcome| {
        let fields = [&outcome[5..], outcome_fields].concat();
        sealed(b'o', &[id.as_bytes(), record.fence.nonce.as_bytes()], &fields)
    });
    decode(id, &head, outcome.as_deref())
}

/// A varint field of one or two bytes.
fn number(tag: u8, value: u16) -> Vec<u8> {
    let low = value as u8 & 0x7f;
    if value < 128 { vec![tag << 3, low] } else { vec![tag << 3, low | 0x80, (value >> 7) as u8] }
}

fn bytes(tag: u8, value: &[u8]) -> Vec<u8> {
    [&[tag << 3 | 2, value.len() as u8][..], value].concat()
}

#[test]
fn unknown_fields_are_skipped() {
    for (name, record) in sample::one_of_each() {
        // Tag 99, once as a number and once as bytes.
        let newer = b"\x98\x06\x05\x9a\x06\x03new".to_vec();
        assert_eq!(read_with(&record, &newer, &newer).as_ref(), Ok(&record), "{name}");
    }
}

#[test]
fn unknown_values_are_unreadable() {
    let samples = sample::one_of_each();
    let (in_progress, completed, uncertain) = (&samples[0].1, &samples[1].1, &samples[3].1);
    let head = |record, fields: Vec<u8>| match read_with(record, &fields, &[]) {
        Err(Unreadable::Field { part: Part::Head, name }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(head(in_progress, number(1, 0)), "state");
    assert_eq!(head(in_progress, number(1, 6)), "state");
    assert_eq!(head(in_progress, bytes(2, &[7; 15])), "nonce");
    assert_eq!(head(in_progress, number(4, 256)), "fingerprint_algorithm");
    assert_eq!(head(in_progress, bytes(5, &[7; 33])), "fingerprint_digest");
    assert_eq!(head(uncertain, number(10, 0)), "reason");
    assert_eq!(head(uncertain, number(10, 10)), "reason");
    assert_eq!(head(in_progress, bytes(13, &[7; 17])), "principal");

    let outcome = |fields: Vec<u8>| match read_with(completed, &[], &fields) {
        Err(Unreadable::Field { part: Part::Outcome, name }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(outcome(number(1, 0)), "class");
    assert_eq!(outcome(number(1, 3)), "class");
    assert_eq!(outcome(number(2, 256)), "format");
}

/// A state with an outcome of another class would be replayed as another result.
#[test]
fn an_outcome_of_the_wrong_class_is_unreadable() {
    const NAMES: [&str; 5] = ["in_progress", "completed", "failed", "uncertain", "released"];
    let outcomes = [None, Some(Class::Success), Some(Class::Error)];
    for (state, name) in (1..).zip(NAMES) {
        for class in outcomes {
            let answered = class.map(|class| sample::recorded(class, "x"));
            let record = sample::record(Status::Released { answered });
            let fields = [number(1, state), number(10, 1)].concat();
            let fits = match name {
                "completed" => class == Some(Class::Success),
                "failed" => class == Some(Class::Error),
                "released" => true,
                _ => class.is_none(),
            };
            match read_with(&record, &fields, &[]) {
                Ok(read) => assert!(fits && read.state().name() == name, "{name} with {class:?}"),
                Err(why) => {
                    assert!(!fits, "{name} with {class:?}");
                    assert_eq!(why, Unreadable::Field { part: Part::Head, name: "has_outcome" });
                }
            }
        }
    }
}

#[test]
fn wrong_fields_with_a_valid_checksum_are_malformed() {
    let samples = sample::one_of_each();
    assert_eq!(read_with(&samples[0].1, &[0xff], &[]), Err(Unreadable::Malformed(Part::Head)));
    assert_eq!(read_with(&samples[1].1, &[], &[0xff]), Err(Unreadable::Malformed(Part::Outcome)));
    let not_utf8 = bytes(14, &[0xff]);
    assert_eq!(read_with(&samples[0].1, &not_utf8, &[]), Err(Unreadable::Malformed(Part::Head)));
}

#[test]
fn a_claim_is_small() {
    let (_, record) = &sample::one_of_each()[0];
    let names = record.key.scope.namespace().len() + record.key.scope.operation().len();
    assert!(encode(record).head.len() <= 120 + names, "{} bytes", encode(record).head.len());
}

#[test]
fn neither_errors_nor_debug_show_content() {
    let (_, record) = &sample::one_of_each()[2];
    let encoded = encode(record);
    assert_eq!(format!("{encoded:?}"), "Encoded { head_bytes: 129, outcome_bytes: Some(31) }");
    let damaged = decode(&record.key.id, &encoded.head, Some(b"\x01no such account"));
    assert_eq!(
        damaged.unwrap_err().to_string(),
        "the record's outcome is damaged or belongs to another record or attempt"
    );
}

/// Version 1 fixtures, which every later version must decode. Add files; never change one.
const FIXTURES_V1: [(&str, &str); 6] = [
    ("in_progress", include_str!("fixtures/record-v1/in_progress.hex")),
    ("completed", include_str!("fixtures/record-v1/completed.hex")),
    ("failed", include_str!("fixtures/record-v1/failed.hex")),
    ("uncertain", include_str!("fixtures/record-v1/uncertain.hex")),
    ("released", include_str!("fixtures/record-v1/released.hex")),
    ("released_answered", include_str!("fixtures/record-v1/released_answered.hex")),
];

#[test]
fn d_06_version_1_fixtures_decode() {
    let samples = sample::one_of_each();
    for ((name, file), (sample_name, record)) in FIXTURES_V1.into_iter().zip(samples) {
        assert_eq!(name, sample_name);
        let mut blobs = file.lines().map(unhex);
        let head = blobs.next().unwrap();
        let outcome = blobs.next();
        assert_eq!(decode(&record.key.id, &head, outcome.as_deref()), Ok(record), "{name}");
    }
}

/// Any change of the encoding needs a new version.
#[test]
fn version_1_encoding_is_frozen() {
    for ((name, file), (_, record)) in FIXTURES_V1.into_iter().zip(sample::one_of_each()) {
        let Encoded { head, outcome } = encode(&record);
        let written: Vec<_> = [Some(head), outcome].into_iter().flatten().collect();
        assert_eq!(written, file.lines().map(unhex).collect::<Vec<_>>(), "{name}");
    }
}

fn unhex(line: &str) -> Vec<u8> {
    line.as_bytes()
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
