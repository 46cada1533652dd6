//! Keys derived from the content of an operation (K-11).

use hapax_core::{JsonStringError, KeyFields, KeyFieldsError};
use serde_json::json;

fn fields() -> KeyFields {
    KeyFields::new(["/order/id", "/amount"]).unwrap()
}

#[test]
fn k_11_the_same_values_give_the_same_key_in_every_process() {
    let key = fields().key_of(&json!({ "order": { "id": "o-1" }, "amount": 12 })).unwrap();
    let parts: [&[u8]; 5] = [b"hapax derived key 1", b"/order/id", b"o-1", b"/amount", b"12"];
    let text: Vec<u8> =
        parts.iter().flat_map(|part| [crate::length(part.len()), part.to_vec()].concat()).collect();
    let digest: [u8; 32] = <sha2::Sha256 as sha2::Digest>::digest(text).into();
    let hex: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(key.as_str(), hex);
    let other_members = json!({ "amount": 12, "note": "x", "order": { "id": "o-1", "lines": [1] } });
    assert_eq!(fields().key_of(&other_members).unwrap(), key);
}

#[test]
fn k_11_other_values_other_fields_and_another_order_of_fields_give_other_keys() {
    let order = json!({ "order": { "id": "o-1" }, "amount": 12 });
    let key = fields().key_of(&order).unwrap();
    let others = [
        fields().key_of(&json!({ "order": { "id": "o-2" }, "amount": 12 })),
        fields().key_of(&json!({ "order": { "id": "o-1" }, "amount": 12.0 })),
        fields().key_of(&json!({ "order": { "id": "o-11" }, "amount": 2 })),
        KeyFields::new(["/amount", "/order/id"]).unwrap().key_of(&order),
        KeyFields::new(["/order/id"]).unwrap().key_of(&order),
    ];
    for other in others {
        assert_ne!(other.unwrap(), key);
    }
}

#[test]
fn k_11_content_without_a_field_has_no_key() {
    let pointer = || "/amount".parse().unwrap();
    for amount in [json!({}), json!({ "amount": null })] {
        let mut order = json!({ "order": { "id": "o-1" } });
        order.as_object_mut().unwrap().extend(amount.as_object().unwrap().clone());
        assert_eq!(fields().key_of(&order), Err(KeyFieldsError::Missing(pointer())));
    }
    let order = json!({ "order": { "id": "o-1" }, "amount": [12] });
    let error = JsonStringError::NotString { found: "an array" };
    assert_eq!(fields().key_of(&order), Err(KeyFieldsError::Field { pointer: pointer(), error }));
    assert!(matches!(fields().key_of_json(b"{"), Err(KeyFieldsError::Field { .. })));
    assert!(KeyFields::new(["order"]).is_err());
    assert_eq!(KeyFields::new([]).unwrap().key_of(&order), Err(KeyFieldsError::NoFields));
}
