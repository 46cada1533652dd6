use super::{TOOLS, Tool, is_there, names};

#[test]
fn a_tool_is_there_only_when_its_probe_succeeds() {
    let probe = |probe| Tool { probe, packages: &[], why: "" };
    assert!(is_there(&probe(&["true"])));
    assert!(!is_there(&probe(&["false"])));
    assert!(!is_there(&probe(&["no-such-program"])));
}

#[test]
fn every_tool_can_be_installed() {
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
