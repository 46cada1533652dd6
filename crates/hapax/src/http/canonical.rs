//! One spelling for requests that say the same: path, query, forms, multipart.
