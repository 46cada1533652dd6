use super::*;
use crate::auth::Via;

/// Large enough that no test but those of rotation fills a file.
const BYTES_MAX: u64 = 1 << 20;

fn open(directory: &Path) -> Result<Audit, Failure> {
    Audit::open(Some(directory), BYTES_MAX)
}

fn ada() -> Actor {
    Actor { name: "Ada".to_owned(), via: Via::Api, address: "127.0.0.1".to_owned() }
}

async fn act(audit: &Audit, action: Action) -> u64 {
    let number = audit.begin(&ada(), action, Some("ab".to_owned()), Some("why".to_owned())).await.unwrap();
    audit.end(number, "done").await.unwrap();
    number
}

#[tokio::test]
async fn an_entry_has_operator_time_action_record_reason_and_result() {
    let dir = tempfile::tempdir().unwrap();
    let audit = open(dir.path()).unwrap();
    act(&audit, Action::Delete).await;
    drop(audit);
    let entries = open(dir.path()).unwrap().entries(None, 10);
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
async fn an_action_without_a_result_is_shown_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let audit = open(dir.path()).unwrap();
    audit.begin(&ada(), Action::Release, None, None).await.unwrap();
    drop(audit);
    let audit = open(dir.path()).unwrap();
    assert_eq!(audit.entries(None, 10)[0].result, None);
    assert_eq!(act(&audit, Action::Delete).await, 2, "numbering continues");
}

#[tokio::test]
async fn lines_are_appended_after_an_incomplete_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    act(&open(dir.path()).unwrap(), Action::Delete).await;
    let mut torn = std::fs::read(&path).unwrap();
    torn.extend_from_slice(b"{\"number\":2,\"at");
    std::fs::write(&path, &torn).unwrap();
    let audit = open(dir.path()).unwrap();
    assert_eq!(audit.entries(None, 10).len(), 1);
    act(&audit, Action::Release).await;
    let after = std::fs::read(&path).unwrap();
    assert!(after.starts_with(&torn));
    drop(audit);
    let again = open(dir.path()).unwrap().entries(None, 10);
    assert_eq!(again.iter().map(|entry| entry.action).collect::<Vec<_>>(), [Action::Release, Action::Delete]);
}

#[tokio::test]
async fn an_overlong_line_is_skipped_without_buffering() {
    let dir = tempfile::tempdir().unwrap();
    let mut content = vec![b'x'; 300_000];
    content.push(b'\n');
    std::fs::write(dir.path().join("audit.jsonl"), content).unwrap();
    let audit = open(dir.path()).unwrap();
    assert_eq!(audit.entries(None, 10), []);
    assert_eq!(act(&audit, Action::Delete).await, 1);
}

#[tokio::test]
async fn pages_are_newest_first_and_memory_is_bounded() {
    let audit = Audit::open(None, BYTES_MAX).unwrap();
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
fn the_directory_is_created_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("logs/hapax");
    open(&made).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&made), mode(&made.join("audit.jsonl"))), (0o700, 0o600));
}

#[tokio::test]
async fn processes_that_share_a_directory_have_separate_logs() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()).unwrap(), open(dir.path()).unwrap());
    act(&first, Action::Delete).await;
    act(&second, Action::Release).await;
    let names = [&first, &second].map(|audit| audit.path().unwrap().file_name().unwrap().to_owned());
    assert_eq!(names, ["audit.jsonl", "audit-2.jsonl"]);
    drop((first, second));
    let actions =
        |audit: &Audit| audit.entries(None, 10).iter().map(|entry| entry.action).collect::<Vec<_>>();
    let (first, second) = (open(dir.path()).unwrap(), open(dir.path()).unwrap());
    assert_eq!((actions(&first), actions(&second)), (vec![Action::Delete], vec![Action::Release]));
}

#[tokio::test]
async fn an_incomplete_line_corrupts_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let audit = open(dir.path()).unwrap();
    let path = audit.path().unwrap();
    audit.write_to(std::fs::File::open(&path).unwrap());
    assert_eq!(audit.begin(&ada(), Action::Delete, None, None).await.unwrap_err().code(), Code::AuditFailed);
    // Like a disk that becomes full during the write.
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    std::io::Write::write_all(&mut file, b"{\"number\":1,\"at").unwrap();
    audit.write_to(file);
    act(&audit, Action::Release).await;
    act(&audit, Action::Delete).await;
    drop(audit);
    let entries = open(dir.path()).unwrap().entries(None, 10);
    let found: Vec<_> = entries.iter().map(|entry| (entry.action, entry.result.as_deref())).collect();
    assert_eq!(found, [(Action::Delete, Some("done")), (Action::Release, Some("done"))]);
}

#[test]
fn a_log_that_cannot_be_opened_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let failure = open(&dir.path().join("file")).unwrap_err();
    assert_eq!(failure.code(), Code::AuditFailed);
    assert!(failure.text().contains("audit_dir"), "{}", failure.text());
}

#[cfg(unix)]
#[test]
fn a_log_that_is_not_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("audit.jsonl")).unwrap();
    assert_eq!(open(dir.path()).unwrap_err().code(), Code::AuditFailed);
}

#[tokio::test]
async fn a_full_file_is_rotated_and_no_action_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let names = || {
        let entries = std::fs::read_dir(dir.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".jsonl"));
        names.sort();
        names
    };
    // Each line exceeds the limit of a file, so each has its own file; the process ends after each of them.
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let audit = Audit::open(Some(dir.path()), 10).unwrap();
        numbers.push(act(&audit, Action::Delete).await);
        let open = audit.begin(&ada(), Action::Release, None, None).await.unwrap();
        drop(audit);
        let audit = Audit::open(Some(dir.path()), 10).unwrap();
        audit.end(open, "done").await.unwrap();
        numbers.push(open);
    }
    assert_eq!(numbers, [1, 2, 3, 4]);
    let rotated: Vec<_> = (1..=7).map(|number| format!("audit.{number}.jsonl")).collect();
    assert_eq!(names(), [&rotated[..], &["audit.jsonl".to_owned()]].concat());
    let lines: usize = names()
        .iter()
        .map(|name| std::fs::read_to_string(dir.path().join(name)).unwrap().lines().count())
        .sum();
    assert_eq!(lines, 8);
    let audit = Audit::open(Some(dir.path()), 10).unwrap();
    assert_eq!(audit.entries(None, 1)[0].result.as_deref(), Some("done"), "of the last rotated file");
}

#[tokio::test]
async fn numbering_continues_after_a_crash_during_rotation() {
    let dir = tempfile::tempdir().unwrap();
    act(&open(dir.path()).unwrap(), Action::Delete).await;
    std::fs::rename(dir.path().join("audit.jsonl"), dir.path().join("audit.9.jsonl")).unwrap();
    assert_eq!(act(&Audit::open(Some(dir.path()), 10).unwrap(), Action::Delete).await, 2);
    assert!(dir.path().join("audit.10.jsonl").exists(), "the next number");
}

#[tokio::test]
async fn a_log_that_cannot_be_rotated_keeps_growing() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(Some(dir.path()), 10).unwrap();
    // A file cannot be renamed to the name of a directory.
    std::fs::create_dir(dir.path().join("audit.1.jsonl")).unwrap();
    act(&audit, Action::Delete).await;
    assert_eq!(std::fs::read_to_string(dir.path().join("audit.jsonl")).unwrap().lines().count(), 2);
}

/// `/proc/thread-self/comm` accepts writes and cannot be synced.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_action_whose_line_cannot_be_synced_does_not_begin() {
    let dir = tempfile::tempdir().unwrap();
    let audit = open(dir.path()).unwrap();
    let mut unsynced = std::fs::OpenOptions::new().write(true).open("/proc/thread-self/comm").unwrap();
    std::io::Write::write_all(&mut unsynced, b"audited").unwrap();
    audit.write_to(unsynced);
    let refused = audit.begin(&ada(), Action::Delete, None, None).await.unwrap_err();
    assert_eq!(refused.code(), Code::AuditFailed);
    assert_eq!(audit.entries(None, 10), []);
}
