//! The message at the start: addresses, the generated token, and the commands of the demo.

use std::net::SocketAddr;

use hapax_core::Promise;
use http::Uri;
use serde_json::json;

use crate::demo;
use crate::failure::Failure;
use crate::output::Output;

/// The contents of the message.
pub(super) struct Banner {
    pub(super) listen: SocketAddr,
    pub(super) is_tls: bool,
    pub(super) admin: Option<SocketAddr>,
    /// The token, if it was generated at this start.
    pub(super) token: Option<String>,
    pub(super) demo: Option<Uri>,
    /// Printed in JSON only: otherwise it is in the log.
    pub(super) promise: Option<Promise>,
}

impl Banner {
    pub(super) fn print(&self, output: Output) -> Result<(), Failure> {
        let scheme = if self.is_tls { "https" } else { "http" };
        let listen = format!("{scheme}://{}", self.listen);
        let console = self.admin.map(|admin| format!("http://{admin}/"));
        let tries = self.demo.as_ref().map(|_| demo::tries(&listen));
        if output.json {
            return output.document(&json!({
                "listen": listen,
                "console": console,
                "token": self.token,
                "promise": self.promise.map(Promise::words),
                "demo": self.demo.as_ref().map(ToString::to_string),
                "tries": tries.map(|tries| tries.map(|(_, typed)| typed)),
            }));
        }
        let mut lines = vec![format!("hapax listens on {listen}")];
        if let Some(demo) = &self.demo {
            lines.push(format!("the upstream is the orders API of the demo on {demo}"));
        }
        if let Some(console) = console {
            lines.push(format!("the console is at {console}"));
        }
        if let Some(token) = &self.token {
            lines.push(format!("admin token, generated for this run: {token}"));
        }
        for (shows, typed) in tries.into_iter().flatten() {
            lines.push(format!("\n# {shows}\n{typed}"));
        }
        output.text(&lines.join("\n"))
    }
}
