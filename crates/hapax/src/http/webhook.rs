//! The receiver of webhooks: whose signature to check, and which id to go by.
