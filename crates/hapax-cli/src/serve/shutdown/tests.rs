use std::future::{pending, ready};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn it_lasts_until_the_limit_or_until_somebody_asks_again() {
    let deadline = ShutdownDeadline::new(HOUR, pending());
    assert_eq!(deadline.limit(tokio::task::yield_now()).await, Some(()));
    assert!(deadline.remaining() <= HOUR);
    let over = ShutdownDeadline::new(Duration::ZERO, pending());
    assert_eq!(over.limit(pending::<()>()).await, None);
    assert_eq!(over.remaining(), Duration::ZERO);
    assert_eq!(over.limit(ready("done")).await, Some("done"), "what has ended is not lost");
    assert_eq!(ShutdownDeadline::new(HOUR, ready(())).limit(pending::<()>()).await, None);
}
