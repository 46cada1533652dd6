//! Every refusal, in one table: code, status, text.
