//! Prism as a judge: it stands between an adapter and a player, and holds every message of a
//! conversation without faults against the institution's own document. The documents are not part
//! of this project: `CENTAVO_RAIL_DOCUMENTS` names their folder.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::tool::{self, Running};

/// Prism before a player.
pub(crate) struct Judge {
    /// The address at which it listens.
    pub(crate) url: String,
    folder: PathBuf,
    _prism: Running,
}

impl Judge {
    /// Starts Prism with a document, which `corrected` may change, before the player at `upstream`;
    /// `None` if it, or the document, is missing.
    pub(crate) async fn start(
        folder: &Path,
        document: &str,
        corrected: impl FnOnce(&str) -> String,
        upstream: &str,
    ) -> Option<Self> {
        let documents = std::env::var_os("CENTAVO_RAIL_DOCUMENTS").map(PathBuf::from);
        let Some(text) = documents.and_then(|path| std::fs::read_to_string(path.join(document)).ok()) else {
            println!("NOT CHECKED: CENTAVO_RAIL_DOCUMENTS names no folder with {document}");
            return None;
        };
        let mut prism = tool::node_program("@stoplight/prism-cli", "dist/index.js")?;
        let path = folder.join(document);
        std::fs::write(&path, corrected(&text)).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port_text = port.to_string();
        prism.arg("proxy").arg(path).arg(upstream).args(["--errors", "--host", "127.0.0.1", "--port", &port_text]);
        let log = std::fs::File::create(folder.join("prism.log")).unwrap();
        let prism = Running(prism.stdout(log.try_clone().unwrap()).stderr(log).stdin(Stdio::null()).spawn().unwrap());
        let judge = Self { url: format!("http://127.0.0.1:{port}"), folder: folder.to_owned(), _prism: prism };
        for _ in 0..600 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Some(judge);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("Prism does not listen: {}", judge.log());
    }

    /// What it has written.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("prism.log")).unwrap_or_default()
    }
}
