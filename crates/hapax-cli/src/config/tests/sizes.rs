//! Options that hold a number of bytes.

use super::super::schema::Kind;
use super::*;

#[test]
fn sizes_are_parsed_with_units() {
    let text = "[store]\ncache_bytes = \"64MiB\"\n[limits]\nbody_bytes_in_all_max = \"1GB\"\nask_bytes_max = 4096\n\
                [transport]\nbody_rate_min = \"1KiB\"\nanswer_bytes_in_all_max = \"1GiB\"\nhead_bytes_max = \"16KiB\"\n\
                [admin]\nbody_bytes_max = \"1MiB\"\ndisk_free_min = \"500MB\"\naudit_bytes_max = \"8 MiB\"\n\
                [defaults]\ndecode = true\ndecode_bytes_max = \"3MiB\"\nstored_bytes_max = \"2GiB\"\n\
                [[route]]\npath = \"/a\"\nbody_bytes_max = \"5MiB\"\noutcome_bytes_max = \"512KiB\"";
    let Config { store_options, limits, transport, admin, routes, .. } = loaded(text);
    assert_eq!(store_options.cache_bytes, 64 << 20);
    assert_eq!((limits.body_bytes_in_all_max, limits.ask_bytes_max), (1_000_000_000, 4096));
    let of_transport = (transport.body_rate_min, transport.answer_bytes_in_all_max, transport.head_bytes_max);
    assert_eq!(of_transport, (1024, 1 << 30, 16 << 10));
    let of_admin = (admin.body_bytes_max, admin.disk_free_min, admin.audit_bytes_max);
    assert_eq!(of_admin, (1 << 20, 500_000_000, 8 << 20));
    let settings = routes[0].policy.settings();
    assert_eq!((settings.decode_bytes_max, settings.stored_bytes_max), (Some(3 << 20), Some(2 << 30)));
    assert_eq!((settings.body_bytes_max, settings.outcome_bytes_max), (Some(5 << 20), Some(512 << 10)));
}

#[test]
fn sizes_in_variables_are_parsed_with_units() {
    let variables = [("HAPAX_STORE_CACHE_BYTES", "8MiB"), ("HAPAX_DEFAULTS_BODY_BYTES_MAX", "2MB")];
    let config = load("", &variables).1.unwrap();
    assert_eq!(config.store_options.cache_bytes, 8 << 20);
    assert_eq!(config.routes[0].policy.settings().body_bytes_max, Some(2_000_000));
    let config = load("", &[("HAPAX_STORE_CACHE_BYTES", "4096")]).1.unwrap();
    assert_eq!(config.store_options.cache_bytes, 4096);
}

/// Options that hold sizes are recognised by their names.
#[test]
fn every_size_option_accepts_units() {
    let is_size = |known: &&OptionInfo| known.name.contains("bytes") || known.name == "disk_free_min";
    let sizes: Vec<_> = known().iter().filter(is_size).collect();
    assert!(sizes.len() >= 12, "{sizes:?}");
    for known in sizes {
        assert_eq!(known.kind, Kind::Size, "{}.{}", known.section, known.name);
    }
}

#[test]
fn an_invalid_size_is_refused_with_its_location_and_the_units() {
    let place = "hapax.toml:2:";
    let cases = [
        ("[store]\ncache_bytes = \"64M\"", "`cache_bytes`", place),
        ("[defaults]\nbody_bytes_max = \"5 megabytes\"", "`body_bytes_max`", place),
        ("[transport]\nhead_bytes_max = -1", "`head_bytes_max`", place),
        ("[[route]]\noutcome_bytes_max = \"1.5MiB\"\npath = \"/a\"", "`outcome_bytes_max`", place),
    ];
    for (text, option, place) in cases {
        let message = refusal(text, &[]);
        for expected in [option, place, "KiB, MiB, GiB or TiB", "KB, MB, GB or TB", "64MiB"] {
            assert!(message.contains(expected), "{expected}: {message}");
        }
    }
    let message = refusal("", &[("HAPAX_STORE_CACHE_BYTES", "lots")]);
    assert!(message.contains("HAPAX_STORE_CACHE_BYTES: `cache_bytes`: a size is"), "{message}");
    let message = refusal("[store]\ncache_bytes = true", &[]);
    assert!(message.contains("a size such as"), "{message}");
    let message = refusal("[store]\ncache_bytes = \"16777216TiB\"", &[]);
    assert!(message.contains("larger than this option can take"), "{message}");
}
