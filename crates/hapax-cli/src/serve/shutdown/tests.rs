use std::future::{pending, ready};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn it_expires_at_the_limit_or_on_a_second_request() {
    let deadline = ShutdownDeadline::new(HOUR, pending());
    assert_eq!(deadline.limit(tokio::task::yield_now()).await, Some(()));
    assert!(deadline.remaining() <= HOUR);
    let expired = ShutdownDeadline::new(Duration::ZERO, pending());
    assert_eq!(expired.limit(pending::<()>()).await, None);
    assert_eq!(expired.remaining(), Duration::ZERO);
    assert_eq!(expired.limit(ready("done")).await, Some("done"), "a finished result is returned");
    assert_eq!(ShutdownDeadline::new(HOUR, ready(())).limit(pending::<()>()).await, None);
}
