//! `Content-Encoding: gzip` of streamed answers, for callers that accept it.

use std::io::{self, Write};

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use axum::response::AppendHeaders;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The bytes themselves.
    Identity,
    /// Gzip (RFC 1952), without a time: the same bytes give the same body.
    Gzip,
}

/// Writer of an encoded body.
pub enum Encoder<'a> {
    /// Writes the bytes themselves.
    Identity(&'a mut dyn Write),
    /// Writes them compressed.
    Gzip(Box<GzEncoder<&'a mut dyn Write>>),
}

impl Encoding {
    /// The encoding of the answer to a request with these headers: gzip, where the caller names it.
    pub fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let takes_gzip = accepted.flat_map(|value| value.split(',')).any(|item| accepts(item, "gzip"));
        if takes_gzip { Self::Gzip } else { Self::Identity }
    }

    /// The headers of the answer.
    pub fn headers(self) -> AppendHeaders<Vec<(axum::http::HeaderName, &'static str)>> {
        let encoding = (self == Self::Gzip).then_some((CONTENT_ENCODING, "gzip"));
        AppendHeaders(encoding.into_iter().chain([(VARY, "accept-encoding")]).collect())
    }

    /// A writer of the body to `out`.
    pub fn encoder(self, out: &mut dyn Write) -> Encoder<'_> {
        match self {
            Self::Identity => Encoder::Identity(out),
            Self::Gzip => Encoder::Gzip(Box::new(GzEncoder::new(out, Compression::default()))),
        }
    }
}

/// Whether an item of `Accept-Encoding` accepts an encoding: it names it, and its weight is not 0.
fn accepts(item: &str, name: &str) -> bool {
    let mut parts = item.split(';').map(str::trim);
    let is_named = parts.next().is_some_and(|named| named.eq_ignore_ascii_case(name));
    let is_none = |part: &str| part.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0_f32));
    is_named && !parts.any(is_none)
}

impl Encoder<'_> {
    /// Writes the end of the body.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Self::Identity(_) => Ok(()),
            Self::Gzip(encoder) => encoder.finish().map(drop),
        }
    }
}

impl Write for Encoder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Identity(out) => out.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Identity(out) => out.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_those_who_name_it() {
        for (accepted, expected) in [
            ("gzip", Encoding::Gzip),
            ("br, GZIP;q=0.5", Encoding::Gzip),
            ("deflate,gzip", Encoding::Gzip),
            ("gzip;q=0", Encoding::Identity),
            ("gzip; q=0.000", Encoding::Identity),
            ("identity", Encoding::Identity),
            ("x-gzip", Encoding::Identity),
            ("*", Encoding::Identity),
            ("", Encoding::Identity),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, accepted.parse().unwrap())]);
            assert_eq!(Encoding::of(&headers), expected, "{accepted}");
        }
        assert_eq!(Encoding::of(&HeaderMap::new()), Encoding::Identity);
    }
}
