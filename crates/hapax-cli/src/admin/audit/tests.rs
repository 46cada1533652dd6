use super::*;
use crate::admin::auth::Via;

fn ada() -> Actor {
    Actor { name: "Ada".to_owned(), via: Via::Api, address: "127.0.0.1".to_owned() }
}

async fn act(audit: &Audit, action: Action) -> u64 {
    let number = audit.begin(&ada(), action, Some("ab".to_owned()), Some("why".to_owned())).await.unwrap();
    audit.end(number, "done").await.unwrap();
    number
}

#[tokio::test]
async fn an_entry_says_who_when_what_which_why_and_what_came_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(Some(dir.path())).unwrap();
    act(&audit, Action::Delete).await;
    drop(audit);
    let entries = Audit::open(Some(dir.path())).unwrap().entries(None, 10);
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(
        (entry.actor.as_str(), entry.address.as_str(), entry.via.as_str()),
        ("Ada", "127.0.0.1", "api")
    );
    assert_eq!((entry.action, entry.number), (Action::Delete, 1));
    assert_eq!(entry.id.as_deref(), Some("ab"));
    assert_eq!(entry.reason.as_deref(), Some("why"));
    assert_eq!(entry.result.as_deref(), Some("done"));
    assert!(entry.at.starts_with("20"), "{}", entry.at);
}

#[tokio::test]
async fn what_was_begun_and_not_ended_is_seen_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(Some(dir.path())).unwrap();
    audit.begin(&ada(), Action::Release, None, None).await.unwrap();
    drop(audit);
    let audit = Audit::open(Some(dir.path())).unwrap();
    assert_eq!(audit.entries(None, 10)[0].result, None);
    assert_eq!(act(&audit, Action::Delete).await, 2, "numbers go on");
}

#[tokio::test]
async fn lines_are_only_ever_added_also_after_one_that_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    act(&Audit::open(Some(dir.path())).unwrap(), Action::Delete).await;
    let mut torn = std::fs::read(&path).unwrap();
    torn.extend_from_slice(b"{\"number\":2,\"at");
    std::fs::write(&path, &torn).unwrap();
    let audit = Audit::open(Some(dir.path())).unwrap();
    assert_eq!(audit.entries(None, 10).len(), 1);
    act(&audit, Action::Release).await;
    let after = std::fs::read(&path).unwrap();
    assert!(after.starts_with(&torn));
    let again = Audit::open(Some(dir.path())).unwrap().entries(None, 10);
    assert_eq!(again.iter().map(|entry| entry.action).collect::<Vec<_>>(), [Action::Release, Action::Delete]);
}

#[tokio::test]
async fn a_line_without_end_is_skipped_and_not_held() {
    let dir = tempfile::tempdir().unwrap();
    let mut content = vec![b'x'; 300_000];
    content.push(b'\n');
    std::fs::write(dir.path().join("audit.jsonl"), content).unwrap();
    let audit = Audit::open(Some(dir.path())).unwrap();
    assert_eq!(audit.entries(None, 10), []);
    assert_eq!(act(&audit, Action::Delete).await, 1);
}

#[tokio::test]
async fn pages_go_back_in_time_and_memory_is_bounded() {
    let audit = Audit::open(None).unwrap();
    for _ in 0..ENTRIES_MAX + 5 {
        audit.begin(&ada(), Action::Login, None, None).await.unwrap();
    }
    let first = audit.entries(None, 3);
    let numbers = |entries: &[Entry]| entries.iter().map(|entry| entry.number).collect::<Vec<_>>();
    assert_eq!(numbers(&first), [2005, 2004, 2003]);
    assert_eq!(numbers(&audit.entries(Some(2003), 2)), [2002, 2001]);
    assert_eq!(audit.entries(None, usize::MAX).len(), ENTRIES_MAX);
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    Audit::open(Some(dir.path())).unwrap();
    let mode = std::fs::metadata(dir.path().join("audit.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_log_that_cannot_be_opened_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let failure = Audit::open(Some(&dir.path().join("missing"))).unwrap_err();
    assert_eq!(failure.code(), Code::AuditFailed);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("audit.jsonl")).unwrap();
    assert_eq!(Audit::open(Some(dir.path())).unwrap_err().code(), Code::AuditFailed);
}
