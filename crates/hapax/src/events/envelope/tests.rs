use super::*;

#[test]
fn v_13_members_are_read_with_their_values_as_written() {
    let members = Members::read(br#" { "a" : [1, 2.50] , "\u0062": "x\ny", "c": null } "#).unwrap();
    let written: Vec<(&str, &str)> = members.0.iter().map(|(name, value)| (&**name, value.get())).collect();
    assert_eq!(written, [("a", "[1, 2.50]"), ("b", r#""x\ny""#), ("c", "null")]);
    assert_eq!(members.text("b").unwrap().as_deref(), Some("x\ny"));
    assert_eq!((members.text("c").unwrap(), members.text("d").unwrap()), (None, None));
    assert_eq!(members.text("a"), Err(EnvelopeError::invalid("a", "is not a string")));
}

#[test]
fn v_13_a_repeated_name_is_refused() {
    let error = |json: &[u8]| Members::read(json).err().unwrap();
    assert_eq!(error(br#"{"id":"1","x":2,"id":"1"}"#), EnvelopeError::repeated("id"));
    assert_eq!(error(br#"{"id":"1","\u0069d":"1"}"#), EnvelopeError::repeated("id"));
    assert_eq!(error(br#"{"A b":1,"A b":2}"#), EnvelopeError::bad_name("A b"));
}

#[test]
fn v_13_an_object_is_bounded() {
    let json = |count: usize| {
        let members: Vec<String> = (0..count).map(|at| format!("\"a{at}\":1")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert_eq!(Members::read(json(ATTRIBUTES_MAX).as_bytes()).unwrap().0.len(), ATTRIBUTES_MAX);
    for count in [ATTRIBUTES_MAX + 1, 100_000] {
        assert_eq!(Members::read(json(count).as_bytes()).err(), Some(EnvelopeError::TooMany));
    }
}

#[test]
fn what_is_not_an_object_is_refused_with_its_place() {
    for (json, line, column) in [("", 1, 0), ("[]", 1, 0), ("{\n1", 2, 1), ("{} x", 1, 4), ("\"a\"", 1, 3)] {
        assert_eq!(
            Members::read(json.as_bytes()).err(),
            Some(EnvelopeError::Json { line, column }),
            "{json}"
        );
    }
    assert!(matches!(Members::read(b"{\"a\":\"\xff\"}").err(), Some(EnvelopeError::Json { .. })));
}

#[test]
fn v_13_values_have_no_control_characters_and_a_limit() {
    for value in ["", "a b", "é😀", &"x".repeat(VALUE_BYTES_MAX)] {
        check_value("id", value).unwrap();
    }
    for value in [
        "a\nb",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{fdd0}",
        "\u{ffff}",
        "\u{1fffe}",
        &"x".repeat(VALUE_BYTES_MAX + 1),
    ] {
        assert!(matches!(check_value("id", value), Err(EnvelopeError::Invalid { .. })), "{value:?}");
    }
}

#[test]
fn a_time_has_the_form_of_rfc_3339() {
    for time in [
        "2026-11-19T08:30:00Z",
        "2026-11-19t08:30:00z",
        "2026-11-19T08:30:00.123456789+01:00",
        "2016-12-31T23:59:60Z",
        "0000-01-01T00:00:00-00:00",
    ] {
        assert!(is_time(time), "{time}");
    }
    for time in [
        "",
        "2026-11-19",
        "2026-11-19T08:30:00",
        "2026-11-19 08:30:00Z",
        "2026-11-19T08:30:00.Z",
        "2026-11-19T08:30:00Z ",
        "2026-11-19T08:30:00+0100",
        "2026-13-19T08:30:00Z",
        "2026-11-00T08:30:00Z",
        "2026-11-19T24:30:00Z",
        "2026-11-19T08:60:00Z",
        "2026-11-19T08:30:61Z",
        "२०२६-11-19T08:30:00Z",
        "+026-11-19T08:30:00Z",
    ] {
        assert!(!is_time(time), "{time}");
    }
}

#[test]
fn an_error_names_the_attribute_and_shows_no_value() {
    for (error, name, attribute, text) in [
        (EnvelopeError::missing("id"), "missing", Some("id"), "`id` is missing"),
        (EnvelopeError::repeated("id"), "repeated", Some("id"), "`id` occurs more than once"),
        (EnvelopeError::invalid("id", "is empty"), "invalid", Some("id"), "`id` is empty"),
        (
            EnvelopeError::InBatch { index: 3, error: Box::new(EnvelopeError::missing("id")) },
            "in_batch",
            Some("id"),
            "event 3 of the batch: `id` is missing",
        ),
        (
            EnvelopeError::Version { attribute: "specversion", supported: "1.0" },
            "version",
            Some("specversion"),
            "`specversion` is not \"1.0\", the only known version",
        ),
        (
            EnvelopeError::bad_name("A\n"),
            "name",
            None,
            "\"A\\n\" is not the name of an attribute: 64 lower-case letters and digits at most",
        ),
        (EnvelopeError::TooMany, "too_many", None, "the event has more than 100 attributes"),
    ] {
        assert_eq!((error.name(), error.attribute(), &*error.to_string()), (name, attribute, text));
    }
    let EnvelopeError::Name { name } = EnvelopeError::bad_name(&"é".repeat(500)) else { unreachable!() };
    assert_eq!(name, "é".repeat(NAME_LENGTH_MAX));
}
