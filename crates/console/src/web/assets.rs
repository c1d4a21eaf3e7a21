//! The embedded files of the pages. Their names contain a hash of their content, so browsers may keep them for ever.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use ring::digest::{SHA256, digest};

use crate::pages::AssetPaths;

/// Hexadecimal digits of the hash in a name.
const HASH_DIGITS: usize = 12;

struct Asset {
    /// The path with the hash of the content.
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

impl Asset {
    fn new(name: &str, extension: &str, content_type: &'static str, bytes: &'static [u8]) -> Self {
        let hash = const_hex::encode(digest(&SHA256, bytes));
        let path = format!("/assets/{name}-{}.{extension}", &hash[..HASH_DIGITS]);
        // There are three of them, and they are needed until the process ends.
        Self { path: path.leak(), content_type, bytes }
    }
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    [
        Asset::new("console", "css", "text/css; charset=utf-8", include_bytes!("../../assets/console.css")),
        Asset::new(
            "console",
            "js",
            "text/javascript; charset=utf-8",
            include_bytes!("../../assets/console.js"),
        ),
        Asset::new("icon", "svg", "image/svg+xml", include_bytes!("../../assets/icon.svg")),
    ]
});

pub(super) fn paths() -> AssetPaths {
    let [style, script, icon] = &*ASSETS;
    AssetPaths { style: style.path, script: script.path, icon: icon.path }
}

/// The file with this path; `None` if there is none, or another version of it.
pub(super) fn find(path: &str) -> Option<Response> {
    let asset = ASSETS.iter().find(|asset| asset.path == path)?;
    let mut response = asset.bytes.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(CACHE_CONTROL, forever);
    Some(response)
}
