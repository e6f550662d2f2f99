//! The console's style sheet, script and icon. Their names carry a digest of their content, so
//! browsers keep them until they change.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use web::{Result, not_found};

const STYLE: &str = include_str!("console.css");
const SCRIPT: &str = include_str!("console.js");
const ICON: &str = include_str!("icon.svg");

/// The path of the style sheet.
pub(crate) static STYLE_PATH: LazyLock<String> = LazyLock::new(|| path("console", STYLE, "css"));

/// Where the script is served. The path has a digest of it, so that browsers keep it for good.
pub(crate) static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| path("console", SCRIPT, "js"));

/// Where the icon is served; its path has a digest too.
pub(crate) static ICON_PATH: LazyLock<String> = LazyLock::new(|| path("icon", ICON, "svg"));

fn path(name: &str, content: &str, ending: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("/console/assets/{name}-{digest}.{ending}")
}

/// An asset by its name; every other name is unknown.
pub(crate) async fn asset(Path(name): Path<String>) -> Result<Response> {
    let assets = [
        (&*STYLE_PATH, "text/css; charset=utf-8", STYLE),
        (&*SCRIPT_PATH, "text/javascript; charset=utf-8", SCRIPT),
        (&*ICON_PATH, "image/svg+xml", ICON),
    ];
    let found = assets.into_iter().find(|(path, ..)| path.rsplit('/').next() == Some(name.as_str()));
    let (_, kind, content) = found.ok_or_else(not_found)?;
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "private, max-age=31536000, immutable")];
    Ok((headers, content).into_response())
}
