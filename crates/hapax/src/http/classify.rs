//! What an answer means for its key: pin, release or uncertain. One table.
