//! How much one key and one caller may ask for. Off unless set.
