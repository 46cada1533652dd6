//! The bounded model check that runs with every change, and the validity of the list of defects.

mod events;
mod model;
mod teeth;
