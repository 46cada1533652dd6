use super::{TOOLS, Tool, is_installed, names};

#[test]
fn a_tool_is_installed_if_its_probe_succeeds() {
    let probe = |probe| Tool { probe, packages: &[], why: "" };
    assert!(is_installed(&probe(&["true"])));
    assert!(!is_installed(&probe(&["false"])));
    assert!(!is_installed(&probe(&["no-such-program"])));
}

#[test]
fn every_tool_has_a_package() {
    assert!(TOOLS.iter().all(|tool| !tool.packages.is_empty()));
    let known = [
        "cc",
        "c++",
        "python3",
        "chromium",
        "npm",
        "python3",
        "curl",
        "promtool",
        "systemd-analyze",
        "/usr/sbin/nginx",
        "redis-server",
        "sh",
        "/usr/sbin/pgbouncer",
        "setpriv",
        "java",
        "faketime",
        "openssl",
        "git",
    ];
    assert_eq!(names(TOOLS), known);
}
