use super::{first_version, locked, required};

#[test]
fn versions_are_read_from_lock_files() {
    let lock = "[[package]]\nname = \"axum\"\nversion = \"0.8.9\"\n\n[[package]]\nname = \"axum-core\"\nversion = \"0.5.1\"\n";
    assert_eq!(locked(lock, "axum").unwrap(), "0.8.9");
    assert!(locked(lock, "hyper").is_err());
    let requirements = "# The packages.\nfastapi==1.2.3\nasgi-fastapi==4.5.6\n";
    assert_eq!(required(requirements, "asgi-fastapi").unwrap(), "4.5.6");
    assert!(required(requirements, "asgi").is_err());
}

#[test]
fn versions_are_read_from_what_servers_print() {
    assert_eq!(first_version("nginx version: nginx/1.22.1").unwrap(), "1.22.1");
    assert_eq!(first_version("HAProxy version 2.6.12-1 2023/12/16 - https://x").unwrap(), "2.6.12-1");
    assert!(first_version("no digits").is_err());
}
