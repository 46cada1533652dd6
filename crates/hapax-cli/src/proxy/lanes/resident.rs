//! [`Resident`]: a connection on its lane, which it may leave for another one between two requests.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::even::{Neighbours, Turns};
use super::{Lane, Lanes};
use crate::proxy::socket::Progress;

/// The task of a connection.
#[derive(Debug)]
pub(super) struct Resident<F> {
    /// Gone when it has left.
    connection: Option<Pin<Box<F>>>,
    progress: Arc<Progress>,
    lanes: Lanes,
    lane: usize,
    turns: Turns,
}

impl<F: Future<Output = ()> + Send + 'static> Resident<F> {
    /// Puts a connection on a lane.
    pub(super) fn spawn(connection: Pin<Box<F>>, progress: Arc<Progress>, lanes: &Lanes, lane: usize) {
        let turns = Turns::default();
        let resident = Self { connection: Some(connection), progress, lanes: lanes.clone(), lane, turns };
        lanes.0[lane].runtime.spawn(resident);
    }

    /// The lane that it should be on from now on, if that is another one.
    fn destination(&mut self) -> Option<usize> {
        let Lane { even, .. } = &self.lanes.0[self.lane];
        let load = |lane: usize| self.lanes.0[lane].load.so_far();
        let lanes = Neighbours { own: self.lane, count: self.lanes.0.len(), load };
        even.turn(&mut self.turns, &lanes, || self.progress.is_between())
    }
}

impl<F: Future<Output = ()> + Send + 'static> Future for Resident<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(()) };
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let Some(lane) = self.destination() else { return Poll::Pending };
        // The first thing that it does there is to look for its next request, and to send what is left to send.
        if let Some(connection) = self.connection.take() {
            self.progress.change_lanes();
            Self::spawn(connection, Arc::clone(&self.progress), &self.lanes, lane);
        }
        Poll::Ready(())
    }
}
