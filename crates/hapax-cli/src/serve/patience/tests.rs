use std::future::{pending, ready};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn it_lasts_until_the_limit_or_until_somebody_asks_again() {
    let patience = Patience::new(HOUR, pending());
    assert_eq!(patience.with(tokio::task::yield_now()).await, Some(()));
    assert!(patience.left() <= HOUR);
    let over = Patience::new(Duration::ZERO, pending());
    assert_eq!(over.with(pending::<()>()).await, None);
    assert_eq!(over.left(), Duration::ZERO);
    assert_eq!(over.with(ready("done")).await, Some("done"), "what has ended is not lost");
    assert_eq!(Patience::new(HOUR, ready(())).with(pending::<()>()).await, None);
}
