//! Parsing of keys, derivation of ids, and redaction.

use std::sync::Arc;

use hapax_core::key::{KEY_LENGTH_MAX, KeyFormat, KeyRules, key_hash};
use hapax_core::{Key, KeyError, RecordId, Scope, ScopedKey};
use proptest::prelude::*;

fn parsed(value: &str) -> Result<String, KeyError> {
    Key::parse(value.as_bytes()).map(|key| key.as_str().to_owned())
}

#[test]
fn k_01_a_quoted_key_is_its_unescaped_content() {
    assert_eq!(parsed(r#""abc""#).as_deref(), Ok("abc"));
    assert_eq!(parsed(r#""a \"b\" \\ c, d; e""#).as_deref(), Ok(r#"a "b" \ c, d; e"#));
    assert_eq!(parsed(r#""abc"#), Err(KeyError::Unterminated));
    assert_eq!(parsed(r#"""#), Err(KeyError::Unterminated));
    assert_eq!(parsed(r#""abc\"#), Err(KeyError::Unterminated));
    assert_eq!(parsed(r#""a\bc""#), Err(KeyError::Escape { at: 2 }));
}

#[test]
fn k_02_a_bare_key_is_visible_ascii() {
    for bare in
        ["8e03978e-40d5-43e8-bc93-6894a57f9324", "1700000000_Ab3", "-1", "?1", "@9", ":x", "%20", "a=b"]
    {
        assert_eq!(parsed(bare).as_deref(), Ok(bare));
    }
    assert_eq!(parsed("ab cd"), Err(KeyError::NeedsQuotes { at: 2 }));
    assert_eq!(parsed("ab\"cd"), Err(KeyError::NeedsQuotes { at: 2 }));
    assert_eq!(parsed("ab;v=1"), Err(KeyError::NeedsQuotes { at: 2 }));
    assert_eq!(parsed("ab\\cd"), Err(KeyError::NeedsQuotes { at: 2 }));
}

#[test]
fn k_02_strict_rules_require_quotes() {
    let strict = KeyRules::new().strict();
    assert_eq!(strict.parse([&b"abc"[..]]), Err(KeyError::Unquoted));
    assert_eq!(strict.parse([&b""[..]]), Err(KeyError::Unquoted));
    assert_eq!(strict.parse([&b"  \"abc\""[..]]), Ok(Some(Key::new("abc").unwrap())));
    assert!(strict.is_strict());
    assert!(strict.lenient().parse([&b"abc"[..]]).is_ok());
}

#[test]
fn k_02_raw_rules_accept_every_printable_text() {
    let rules = KeyRules::new().raw();
    let parsed = |value: &str| rules.parse([value.as_bytes()]).map(Option::unwrap);
    let texts =
        ["order 7", "a, b", "\"a", "a\"b", "a;b", "a\\b", "\"a\";B", "\"a\" b", "\"a\\x\"", "\"a\",\"b\""];
    for text in texts {
        assert_eq!(parsed(text).unwrap().as_str(), text);
        assert_eq!(parsed(&format!("  {text} ")).unwrap().as_str(), text);
    }
    // A key by the default rules stays the same key.
    for (value, content) in [("abc", "abc"), ("\"abc\"", "abc"), ("\"a \\\" b\";v=1", "a \" b")] {
        assert_eq!(parsed(value).unwrap().as_str(), content);
        assert_eq!(Key::parse(value.as_bytes()), parsed(value));
    }
    assert_eq!(parsed(""), Err(KeyError::Empty));
    assert_eq!(parsed("\"\""), Err(KeyError::Empty));
    assert_eq!(parsed("a\tb"), Err(KeyError::Character { at: 1 }));
    assert_eq!(parsed("a é"), Err(KeyError::Character { at: 2 }));
    assert_eq!(parsed(&"a b".repeat(100)), Err(KeyError::TooLong { length: 300, length_max: 255 }));
    assert_eq!(rules.parse([&b"a"[..], &b"a"[..]]), Err(KeyError::ManyLines { lines: 2 }));
    assert!(rules.is_raw() && !rules.is_strict() && !rules.clone().lenient().is_raw());
}

#[test]
fn k_03_quoted_and_bare_are_one_key() {
    assert_eq!(Key::parse(b"\"abc\""), Key::parse(b"abc"));
    assert_eq!(Key::parse(b"  \"abc\"  "), Key::parse(b"  abc  "));
    assert_ne!(Key::parse(b"ABC"), Key::parse(b"abc"));
    assert_ne!(Key::parse(b"\" abc\""), Key::parse(b"\"abc\""));
    assert_ne!(Key::parse(b"\"abc \""), Key::parse(b"\"abc\""));
}

#[test]
fn k_04_parameters_are_not_part_of_the_key() {
    let spellings = [
        r#""k";v=1"#,
        r#""k"; a;  b=?0;*c.d_e-f=tok/en"#,
        r#""k";d=-12.345;e=:aGk=:;f=:aGk:;f=:aG=:;g="x\"y";h=@-5;i=%"f%c3%bc""#,
        r#""k";i=999999999999999;j=123456789012.123;l=*!"#,
    ];
    for spelling in spellings {
        assert_eq!(parsed(spelling).as_deref(), Ok("k"), "{spelling}");
    }
}

#[test]
fn k_04_parameters_that_do_not_parse_are_refused() {
    let refused = [
        r#""k";"#,
        r#""k" ;v=1"#,
        r#""k" x"#,
        r#""k"x"#,
        r#""k";V=1"#,
        r#""k";1=1"#,
        r#""k";v="#,
        r#""k";v= 1"#,
        r#""k";v=-"#,
        r#""k";v=1."#,
        r#""k";v=1.1234"#,
        r#""k";v=1234567890123.1"#,
        r#""k";v=1234567890123456"#,
        r#""k";v=.5"#,
        r#""k";v=?2"#,
        r#""k";v=@1.5"#,
        r#""k";v=:a:"#,
        r#""k";v=:aGk"#,
        r#""k";v=:aG=k:"#,
        r#""k";v=:aG===:"#,
        r#""k";v=:aGkk=:"#,
        r#""k";v="open"#,
        r#""k";v=%"%C3""#,
        r#""k";v=%"%c3""#,
        r#""k";v=%x"#,
        r#""k";v=(1)"#,
    ];
    for value in refused {
        assert!(matches!(parsed(value), Err(KeyError::Parameter { .. })), "{value}: {:?}", parsed(value));
    }
    assert_eq!(parsed(r#""k";v=1.1234"#), Err(KeyError::Parameter { at: 12 }));
}

#[test]
fn k_05_an_unusable_key_is_an_error_and_a_missing_one_is_not() {
    let rules = KeyRules::new();
    let none: [&[u8]; 0] = [];
    assert_eq!(rules.parse(none), Ok(None));
    assert_eq!(rules.parse([&b"a b"[..]]), Err(KeyError::NeedsQuotes { at: 1 }));
}

#[test]
fn k_06_more_than_one_key_is_refused() {
    let lines = |lines: &[&'static str]| KeyRules::new().parse(lines.iter().map(|line| line.as_bytes()));
    assert_eq!(lines(&["a", "a"]), Err(KeyError::ManyLines { lines: 2 }));
    assert_eq!(lines(&["a", "b", ""]), Err(KeyError::ManyLines { lines: 3 }));
    // Joined with a comma these two would be one valid string.
    assert_eq!(lines(&["\"a", "b\""]), Err(KeyError::ManyLines { lines: 2 }));
    assert_eq!(lines(&["a,b"]), Err(KeyError::List { at: 1 }));
    assert_eq!(lines(&["\"a\", \"b\""]), Err(KeyError::List { at: 3 }));
    assert_eq!(lines(&["\"a\";v=1 ,b"]), Err(KeyError::List { at: 8 }));
}

#[test]
fn k_07_empty_and_blank_keys_are_refused() {
    assert_eq!(parsed(""), Err(KeyError::Empty));
    assert_eq!(parsed("   "), Err(KeyError::Empty));
    assert_eq!(parsed(r#""""#), Err(KeyError::Empty));
    assert_eq!(parsed(r#""   ""#), Err(KeyError::OnlySpaces));
    assert_eq!(Key::new(""), Err(KeyError::Empty));
    assert_eq!(Key::new("  "), Err(KeyError::OnlySpaces));
}

#[test]
fn k_08_length_counts_after_unescaping() {
    let longest = "x".repeat(KEY_LENGTH_MAX);
    assert_eq!(parsed(&longest).as_deref(), Ok(&*longest));
    assert_eq!(parsed(&format!("\"{longest}\"")).as_deref(), Ok(&*longest));
    let escaped = format!("\"{}\"", "\\\"".repeat(KEY_LENGTH_MAX));
    assert_eq!(parsed(&escaped), Ok("\"".repeat(KEY_LENGTH_MAX)));
    let too_long = Err(KeyError::TooLong { length: 256, length_max: 255 });
    assert_eq!(parsed(&format!("{longest}x")), too_long);
    assert_eq!(parsed(&format!("\"{longest}x\"")), too_long);
    let far_too_long = Err(KeyError::TooLong { length: 5000, length_max: 255 });
    assert_eq!(parsed(&"x".repeat(5000)), far_too_long);
}

#[test]
fn k_08_only_printable_ascii() {
    for byte in (0..=0x1f).chain(0x7f..=0xff) {
        for value in [vec![b'a', byte], vec![b'"', byte, b'"'], vec![b'"', b'a', b'"', b';', b'v', byte]] {
            let at = value.iter().position(|found| *found == byte).unwrap();
            assert_eq!(Key::parse(&value), Err(KeyError::Character { at }), "byte {byte:#x}");
        }
    }
    assert_eq!(Key::new("a\tb"), Err(KeyError::Character { at: 1 }));
    assert_eq!(Key::new("aé"), Err(KeyError::Character { at: 1 }));
    assert_eq!(Key::new(" !~").unwrap().as_str(), " !~");
}

#[test]
fn k_08_rules_can_limit_the_length() {
    let rules = KeyRules::new().length_min(3).length_max(5);
    let check = |key: &str| rules.parse([key.as_bytes()]).map(|key| key.is_some());
    assert_eq!(check("ab"), Err(KeyError::TooShort { length: 2, length_min: 3 }));
    assert_eq!(check("abc"), Ok(true));
    assert_eq!(check("abcde"), Ok(true));
    assert_eq!(check("abcdef"), Err(KeyError::TooLong { length: 6, length_max: 5 }));
    assert_eq!(rules.lengths(), 3..=5);
    let generous = KeyRules::new().length_max(1000);
    let long = "x".repeat(300);
    assert_eq!(
        generous.parse([long.as_bytes()]),
        Err(KeyError::TooLong { length: 300, length_max: KEY_LENGTH_MAX })
    );
}

#[test]
fn k_08_rules_can_require_a_format() {
    let admits = |format: &KeyFormat, key: &str| {
        let key = Key::new(key).unwrap();
        KeyRules::new().format(format.clone()).admit(key).is_ok()
    };
    let v4 = "8e03978e-40d5-43e8-bc93-6894a57f9324";
    let v7 = "018f3a5e-7c00-7abc-9def-0123456789ab";
    let ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    assert!(admits(&KeyFormat::Any, "whatever"));
    assert!(admits(&KeyFormat::Uuid, v4) && admits(&KeyFormat::Uuid, v7));
    assert!(admits(&KeyFormat::Uuid, &v4.to_uppercase()));
    for other in
        [&v4.replacen('-', "", 1), &v4.replace('8', "g"), &format!("{{{}}}", &v4[..34]), ulid, &v4[1..]]
    {
        assert!(!admits(&KeyFormat::Uuid, other), "{other}");
    }
    assert!(admits(&KeyFormat::UuidV7, v7) && !admits(&KeyFormat::UuidV7, v4));
    assert!(!admits(&KeyFormat::UuidV7, &v7.replace("-9def", "-cdef")), "another variant");
    assert!(admits(&KeyFormat::Ulid, ulid) && admits(&KeyFormat::Ulid, &ulid.to_lowercase()));
    for other in [&ulid.replacen('0', "8", 1), &ulid.replace('K', "U"), &ulid[1..], &ulid.replace('K', "-")] {
        assert!(!admits(&KeyFormat::Ulid, other), "{other}");
    }
    let custom = KeyFormat::Custom { expected: "ord-…", admits: Arc::new(|key| key.starts_with("ord-")) };
    assert!(admits(&custom, "ord-1") && !admits(&custom, "inv-1"));
    let refused = KeyRules::new().format(custom).parse([&b"inv-1"[..]]);
    assert_eq!(refused, Err(KeyError::Format { expected: "ord-…" }));
}

#[test]
fn k_08_a_uuid_without_hyphens_is_the_same_key() {
    let parsed = |format: &KeyFormat, value: &str| {
        KeyRules::new().format(format.clone()).parse([value.as_bytes()]).map(Option::unwrap)
    };
    for (plain, hyphens) in [
        ("018f3a5e7c007abc9def0123456789ab", "018f3a5e-7c00-7abc-9def-0123456789ab"),
        ("018F3A5E7C007ABC9DEF0123456789AB", "018F3A5E-7C00-7ABC-9DEF-0123456789AB"),
    ] {
        for format in [KeyFormat::Uuid, KeyFormat::UuidV7] {
            let key = parsed(&format, plain).unwrap();
            assert_eq!(key, Key::new(hyphens).unwrap());
            assert_eq!(parsed(&format, &format!("\"{plain}\"")).unwrap(), key);
            assert!(key.made_at().is_some());
        }
        // In other formats 32 digits stay as they are and encode no time.
        let any = parsed(&KeyFormat::Any, plain).unwrap();
        assert_eq!((any.as_str(), any.made_at()), (plain, None));
    }
    let format = Err(KeyError::Format { expected: "a UUID" });
    assert_eq!(parsed(&KeyFormat::Uuid, "g18f3a5e7c007abc9def0123456789ab"), format);
    assert_eq!(parsed(&KeyFormat::Uuid, "018f3a5e7c007abc9def0123456789a"), format);
    let short = KeyRules::new().format(KeyFormat::Uuid).length_max(32);
    assert!(
        short.parse([&b"018f3a5e7c007abc9def0123456789ab"[..]]).is_ok(),
        "the length counts before normalisation"
    );
}

#[test]
fn errors_name_cause_position_and_remedy() {
    let text = |value: &[u8]| Key::parse(value).unwrap_err().to_string();
    assert_eq!(text(b""), "the key is empty; send a unique value such as a UUID");
    assert_eq!(
        text(b"ab cd"),
        "the key has a character at position 2 that is only allowed inside quotes; write \"…\" around the key"
    );
    assert_eq!(
        text("schl\u{fc}ssel".as_bytes()),
        "the key has a byte at position 4 that is not printable ASCII; use letters, digits and `-`"
    );
    assert_eq!(
        text("x".repeat(300).as_bytes()),
        "the key has 300 characters and may have 255; send a shorter one"
    );
}

#[test]
fn random_keys_are_version_7_and_differ() {
    let rules = KeyRules::new().format(KeyFormat::UuidV7);
    let (first, second) = (Key::random(), Key::random());
    assert_ne!(first, second);
    assert!(rules.admit(first).is_ok() && rules.admit(second).is_ok());
}

#[test]
fn debug_shows_neither_key_nor_principal() {
    let key = Key::new("customer-4711-refund").unwrap();
    let scope = Scope::new("refund").principal("Bearer hunter2");
    let scoped = ScopedKey::new(scope.clone(), &key);
    let shown = format!("{key:?} {scope:?} {scoped:?} {:?}", Key::parse(b"customer-4711 refund"));
    for secret in ["customer", "4711", "hunter2", "Bearer"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn ids_round_trip_as_hex() {
    let id = ScopedKey::new(Scope::new("pay"), &Key::new("k").unwrap()).id;
    assert_eq!(RecordId::parse(&id.to_string()), Some(id));
    assert_eq!(RecordId::parse(&id.to_string().to_uppercase()), Some(id));
    let text = id.to_string();
    for wrong in ["", &text[1..], &format!("{text}0"), &text.replacen(&text[..1], "g", 1), &"é".repeat(32)] {
        assert_eq!(RecordId::parse(wrong), None, "{wrong}");
    }
    let signed = format!("+{}", &text[1..]);
    assert_eq!(RecordId::parse(&signed), None);
}

#[test]
fn an_empty_namespace_is_none() {
    let plain = Scope::new("pay");
    assert_eq!(plain.clone().in_namespace("shop").in_namespace(""), plain);
    assert_eq!(Scope::from_parts("", None, "pay"), plain);
}

/// Every process derives ids, and stores keep them for days: these values must never change.
#[test]
fn s_01_ids_are_frozen() {
    let key = Key::new("order-123").unwrap();
    let plain = ScopedKey::new(Scope::new("pay"), &key);
    let full = ScopedKey::new(Scope::new("pay").in_namespace("shop").principal("tenant-7"), &key);
    assert_eq!(plain.id.to_string(), "6501a30b0f8a8d279931a6e12086d74f15dc399313a7501101bf68d2b672536f");
    assert_eq!(full.id.to_string(), "6501a30b0f8a8d27b5ffa77e806a0e762d67f789d1f94517e56d621f3009b1fc");
}

#[test]
fn s_01_every_part_of_the_scope_makes_another_record() {
    let key = Key::new("k").unwrap();
    let scopes = [
        Scope::new("ab"),
        Scope::new("b").in_namespace("a"),
        Scope::new("").in_namespace("ab"),
        Scope::new("ab").principal("p"),
        Scope::new("ab").principal("q"),
        Scope::new("ab").principal(""),
        Scope::new("ab").in_namespace("n"),
        Scope::new("ab").in_namespace("n").principal("p"),
    ];
    let ids: std::collections::BTreeSet<_> =
        scopes.iter().map(|scope| ScopedKey::new(scope.clone(), &key).id).collect();
    assert_eq!(ids.len(), scopes.len());
    let other = ScopedKey::new(Scope::new("ab"), &Key::new("l").unwrap()).id;
    assert!(!ids.contains(&other));
}

#[test]
fn s_01_an_id_starts_with_the_hash_of_its_key() {
    let key = Key::new("k").unwrap();
    for scope in [Scope::new("a"), Scope::new("b").principal("p")] {
        assert_eq!(ScopedKey::new(scope, &key).id.as_bytes()[..8], key_hash(&key));
    }
}

/// Ids do not depend on the request, so equal requests under two keys are separate operations.
#[test]
fn f_10_two_keys_are_two_operations() {
    let id = |key| ScopedKey::new(Scope::new("pay"), &Key::new(key).unwrap()).id;
    assert_ne!(id("first"), id("second"));
}

#[test]
fn scope_displays_namespace_and_operation() {
    assert_eq!(Scope::new("POST /pay").to_string(), "POST /pay");
    assert_eq!(Scope::new("POST /pay").in_namespace("shop").principal("x").to_string(), "shop/POST /pay");
}

proptest! {
    #[test]
    fn k_03_any_content_is_one_key_in_every_spelling(content in "[ -~]{0,40}") {
        let quoted = format!("\"{}\"", content.replace('\\', "\\\\").replace('"', "\\\""));
        prop_assert_eq!(Key::parse(quoted.as_bytes()), Key::new(content.as_str()));
        if let Ok(bare) = Key::parse(content.as_bytes()) && !content.contains('"') {
            prop_assert_eq!(bare.as_str(), content.trim_matches(' '));
        }
    }

    #[test]
    fn k_05_parsing_never_panics(value in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(key) = Key::parse(&value) {
            prop_assert_eq!(Key::new(key.as_str()), Ok(key));
        }
    }

    /// An independent parser of structured fields must agree on every quoted value.
    #[test]
    fn k_01_k_04_agrees_with_a_structured_field_parser(
        value in "\"([a-z ]|\\\\[\"\\\\a]){0,4}\"( ?; ?[a-z*A][a-z0-9_.*-]{0,2}(=([?@%:\"-]?[0-9a-fG=.]{0,5}[:\"]?|[a-zA-Z*:/!~\\[]{0,4}|:[a-zA-Z0-9+/=]{0,8}:|[0-9]{10,16}(\\.[0-9]{0,4})?|%\"(%[0-9a-fA-F]{2}|[a-z]){0,4}\"))?){0,3}[ ,]?"
    ) {
        let oracle = sfv::Parser::new(value.as_bytes()).parse::<sfv::Item>();
        let expected = oracle.ok().and_then(|item| Some(item.bare_item.as_string()?.as_str().to_owned()));
        match Key::parse(value.as_bytes()) {
            Ok(key) => prop_assert_eq!(Some(key.as_str().to_owned()), expected),
            Err(KeyError::Empty | KeyError::OnlySpaces) => prop_assert!(expected.is_none_or(|text| text.trim().is_empty())),
            Err(error) => prop_assert_eq!(expected, None, "{:?}", error),
        }
    }
}

#[test]
fn made_at_is_the_time_in_a_uuid_v7_and_a_ulid() {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    let made_at =
        |key: &str| Key::new(key).unwrap().made_at().map(|at| at.duration_since(UNIX_EPOCH).unwrap());
    let february_2022 = Duration::from_millis(0x017F_22E2_79B0);
    assert_eq!(made_at("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), Some(february_2022));
    assert_eq!(made_at("01FWHE4YDGFK1SHH6W1G60EECF"), Some(february_2022), "the same bits as a ULID");
    assert_eq!(made_at("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), Some(Duration::from_millis((1 << 48) - 1)));
    for timeless in ["order-1", "8e03978e-40d5-43dd-bc93-6894a57f9324", "81FWHE4YDGFK1SHH6W1G60EECF"] {
        assert_eq!(made_at(timeless), None, "{timeless}");
    }
    let age = SystemTime::now().duration_since(Key::random().made_at().unwrap()).unwrap();
    assert!(age < Duration::from_secs(60), "{age:?}");
}

#[test]
fn ids_of_every_length_match_the_definition() {
    use sha2::{Digest, Sha256};
    for length in [1, 100, 120, 121, 150, 200, 255] {
        let (operation, key) = ("o".repeat(length), "k".repeat(length));
        let mut hash = Sha256::new();
        for part in ["hapax id 1", "", "", &operation, &key] {
            hash.update(crate::length(part.len()));
            hash.update(part);
        }
        let scoped = ScopedKey::new(Scope::new(operation.as_str()), &Key::new(key).unwrap());
        assert_eq!(scoped.id.as_bytes()[8..], hash.finalize()[..24], "{length}");
    }
}
