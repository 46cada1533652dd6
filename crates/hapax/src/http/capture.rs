//! Response to record and back: what is stored of a response, and what a replay is made of.
