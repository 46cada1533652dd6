use super::*;

#[test]
fn every_link_of_a_line_is_read() {
    let cases: [(&str, &[&str]); 9] = [
        ("", &[]),
        ("<a>", &[]),
        ("<a>; rel=\"describedby\"", &["a"]),
        ("<a>;rel=describedby", &["a"]),
        ("<a>; rel=\"next\", <b,c>; rel=\"describedby\"", &["b,c"]),
        ("<a>; title=\"x, <b>; rel=describedby\", <c>; REL=\"self DescribedBy\"; x", &["c"]),
        ("<a>; title=\"; rel=describedby\"; rel=next", &[]),
        ("<a>; title=\"\\\"; rel=describedby\"; rel=describedby, <b>; rel=describedby", &["a", "b"]),
        ("<a", &[]),
    ];
    for (line, targets) in cases {
        assert_eq!(described_by(line), targets, "{line}");
    }
}
