//! Answers of an HTTP server on which no client may rely.

/// Each of these says nothing, whatever was asked. `none` is the problem document with which the
/// institution says that it has none, and `other` one of another type.
pub fn useless_answers(none: &str, other: &str) -> Vec<(&'static str, Vec<u8>)> {
    let with_length = |status: &str, length: usize, body: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
            .into_bytes()
    };
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(10_000_000));
    vec![
        ("408", answer("408 Timeout", "application/problem+json", none)),
        ("429", answer("429 Slow", "application/problem+json", none)),
        ("500", answer("500 Error", "application/problem+json", none)),
        ("502 HTML", answer("502 Bad Gateway", "text/html", "<html>")),
        ("503 whose body says 404", answer("503 Unavailable", "application/problem+json", none)),
        ("504", answer("504 Timeout", "application/json", "")),
        ("404 HTML", answer("404 Not Found", "text/html", "<html>Not found</html>")),
        ("404 of a gateway", answer("404 Not Found", "application/json", "{\"message\":\"no Route matched\"}")),
        ("404 with another type", answer("404 Not Found", "application/problem+json", other)),
        ("404 as text", answer("404 Not Found", "text/plain", none)),
        (
            "404 without a media type",
            format!("HTTP/1.1 404 No\r\ncontent-length: {}\r\n\r\n{none}", none.len()).into_bytes(),
        ),
        ("404 in another charset", answer("404 Not Found", "application/problem+json; charset=iso-8859-1", none)),
        ("404 cut", answer("404 Not Found", "application/problem+json", &none[..none.len() - 1])),
        ("410", answer("410 Gone", "application/problem+json", none)),
        ("400 with that word", answer("400 Bad", "application/problem+json", none)),
        ("200 with that word", answer("200 OK", "application/problem+json", none)),
        ("200 empty", answer("200 OK", "application/json", "")),
        ("200 without a length", b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"txid\"".to_vec()),
        ("200 HTML", answer("200 OK", "text/html", "<html>")),
        ("200 half", with_length("200 OK", 900, "{\"txid\":")),
        ("200 another shape", answer("200 OK", "application/json", "[]")),
        ("201 null", answer("201 Created", "application/json", "null")),
        ("202", answer("202 Accepted", "application/json", "{}")),
        ("204", b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
        ("10 MB", answer("200 OK", "application/json", &large)),
        ("10 MB 404", answer("404 Not Found", "application/problem+json", &large)),
        ("304", b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()),
        ("no HTTP", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        ("nothing", Vec::new()),
    ]
}

/// An answer of these bytes.
pub fn answer(status: &str, media_type: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}
