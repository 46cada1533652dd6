//! The slice of the model that runs with every change, and the list of defects kept from rotting.

mod model;
mod teeth;
