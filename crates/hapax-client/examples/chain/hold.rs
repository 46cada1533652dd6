//! [`Hold`]: stops a handler at a point, so that its process can be killed there. No part of a service.

use super::processes;

/// A point in a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Point {
    BeforeEffect,
    AfterEffect,
}

/// Where the handlers of a service stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold(pub(crate) Option<Point>);

/// The line that is printed there.
pub(crate) const HELD: &str = "held";

impl Hold {
    pub(crate) async fn before_effect(&self) {
        self.at(Point::BeforeEffect).await;
    }

    pub(crate) async fn after_effect(&self) {
        self.at(Point::AfterEffect).await;
    }

    async fn at(self, point: Point) {
        if self.0 == Some(point) {
            processes::tell(HELD);
            std::future::pending::<()>().await;
        }
    }
}
