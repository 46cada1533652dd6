//! Variables set by other programs, and paths relative to the file.

use super::*;

/// The variables of a pod in a namespace with Services named `hapax`, `hapax-admin`, `hapax-store` and `hapax-v6`.
const SERVICE_LINKS: [(&str, &str); 17] = [
    ("HAPAX_SERVICE_HOST", "10.96.0.12"),
    ("HAPAX_SERVICE_PORT", "8080"),
    ("HAPAX_SERVICE_PORT_HTTP", "8080"),
    ("HAPAX_SERVICE_PORT_GRPC_WEB", "9090"),
    ("HAPAX_PORT", "tcp://10.96.0.12:8080"),
    ("HAPAX_PORT_8080_TCP", "tcp://10.96.0.12:8080"),
    ("HAPAX_PORT_8080_TCP_PROTO", "tcp"),
    ("HAPAX_PORT_8080_TCP_PORT", "8080"),
    ("HAPAX_PORT_8080_TCP_ADDR", "10.96.0.12"),
    ("HAPAX_PORT_53_UDP", "udp://10.96.0.12:53"),
    ("HAPAX_ADMIN_SERVICE_HOST", "10.96.0.13"),
    ("HAPAX_ADMIN_PORT", "tcp://10.96.0.13:80"),
    ("HAPAX_STORE_PORT_6379_TCP_ADDR", "10.96.0.14"),
    ("HAPAX_STORE_SERVICE_PORT_REDIS", "6379"),
    ("HAPAX_V6_SERVICE_HOST", "fd00::12"),
    ("HAPAX_V6_PORT", "tcp://[fd00::12]:80"),
    ("HAPAX_V6_PORT_132_SCTP_PROTO", "sctp"),
];

#[test]
fn kubernetes_service_links_are_ignored() {
    load("", &SERVICE_LINKS).1.unwrap();
    // A variable with the name of a service link but a value of another form is an error.
    for (name, value) in [
        ("HAPAX_PORT", "8080"),
        ("HAPAX_PORT", "http://10.96.0.12:8080"),
        ("HAPAX_ADMIN_PORT", "8081"),
        ("HAPAX_SERVICE_HOST", "hapax.example"),
        ("HAPAX_SERVICE_PORT_HTTP", "tcp://10.96.0.12:8080"),
        ("HAPAX_PORT_8080_TCP_PROTO", "http"),
        ("HAPAX_PORT_X_TCP_PORT", "8080"),
        ("HAPAX_STOR_URL", "tcp://10.96.0.12:8080"),
    ] {
        let message = refusal("", &[(name, value)]);
        assert!(message.contains(&format!("unknown environment variable {name}")), "{message}");
    }
}

#[test]
fn relative_paths_are_relative_to_the_file() {
    let text = "[store]\nurl = \"file:./records\"\n[admin]\ntoken_file = \"token\"\naudit_dir = \"/var/log/a\"\n\
                [tls]\ncertificate = \"tls/cert.pem\"\nkey = \"../key.pem\"\n[upstream_options]\nca_file = \"./ca.pem\"";
    let (dir, config) = load(text, &[("HAPAX_ADMIN_TOKEN_FILE", "of-the-variable")]);
    let (config, at) = (config.unwrap(), |path: &str| dir.path().join(path));
    assert_eq!(config.store, StoreUrl::File(at("records")));
    let tls = config.tls.unwrap();
    assert_eq!((tls.certificate, tls.key), (at("tls/cert.pem"), at("../key.pem")));
    assert_eq!(config.upstream_options.ca_file, Some(at("ca.pem")));
    assert_eq!(config.admin.audit_dir, Some("/var/log/a".into()));
    // Elsewhere they are relative to the working directory.
    assert_eq!(config.admin.token_file, Some("of-the-variable".into()));
    let typed = |flags: Flags| flags.with("--store", ("store", "url"), Some("file:b"));
    assert_eq!(load_with(text, &[], typed).1.unwrap().store, StoreUrl::File("b".into()));
}

#[test]
fn every_path_option_is_relative_to_the_file() {
    let names_a_path = |known: &&OptionInfo| {
        known.section == "tls" || known.name.ends_with("_file") || known.name.ends_with("_dir")
    };
    let named: Vec<_> =
        known().iter().filter(names_a_path).map(|known| (&*known.section, &*known.name)).collect();
    assert_eq!(named, file::PATHS);
}

#[test]
fn flags_for_another_command_name_the_same_store() {
    let flags = Flags::new(Some("etc/my hapax.toml".into()))
        .with("--store", ("store", "url"), Some("postgres://app:hunter2@db/shop?schema=a&sslmode=require"))
        .with("--fast", ("store", "fast"), Some("redis://:hunter2@cache?prefix=a:"))
        .with("--listen", ("", "listen"), Some("127.0.0.1:1"));
    assert_eq!(
        flags.store_flags(),
        " --config 'etc/my hapax.toml' --store 'postgres://app@db/shop?schema=a&sslmode=require' \
         --fast 'redis://cache?prefix=a:'"
    );
    assert_eq!(Flags::new(None).store_flags(), "");
}
