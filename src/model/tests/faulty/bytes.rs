//! HTTP answers with faulty bytes: invalid status lines and headers, and bodies that are cut, of another type, or not
//! JSON.

use super::super::server::CannedAnswer;
use super::{ProtocolCase, hold};

/// Returns an answer with a successful status line, these headers, and exactly these bytes as its body.
fn behind(headers: &str, body: impl AsRef<[u8]>) -> CannedAnswer {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}connection: close\r\n\r\n");
    CannedAnswer::Raw([head.as_bytes(), body.as_ref()].concat())
}

/// Returns an answer whose body is a stream of server-sent events with this text.
pub(super) fn events(written: &str) -> CannedAnswer {
    behind("content-type: text/event-stream\r\n", written)
}

fn faults(protocol: &ProtocolCase, streamed: bool) -> Vec<(String, CannedAnswer)> {
    let (kind, good) = if streamed {
        ("content-type: text/event-stream\r\n", ProtocolCase::written(&protocol.stream))
    } else {
        ("content-type: application/json\r\n", protocol.whole.to_string())
    };
    let whole = |body: &str| behind(&format!("{kind}content-length: {}\r\n", body.len()), body);
    let raw = |bytes: &[u8]| CannedAnswer::Raw(bytes.to_vec());
    let head = |line: &str| raw(format!("{line}\r\n{kind}connection: close\r\n\r\n{good}").as_bytes());
    let length = |length: &str| behind(&format!("{kind}content-length: {length}\r\n"), &good);
    let cut = |bytes: usize| &good[..(0..=bytes).rev().find(|at| good.is_char_boundary(*at)).unwrap_or(0)];
    let page = "<html><body>502 Bad Gateway \u{1b}[31m</body></html>";
    let mut all = vec![
        ("nothing", CannedAnswer::Close),
        ("a head that breaks off", raw(b"HTTP/1.1 200 OK\r\ncontent-type: appl")),
        ("another protocol", raw(b"SSH-2.0-OpenSSH\r\n")),
        ("bytes", raw(b"\x00\xff\xfe\x16\x03\x01\r\n\r\n")),
        ("a version of tomorrow", head("HTTP/9.9 200 OK")),
        ("an invalid status", head("HTTP/1.1 fine")),
        ("a status of four digits", head("HTTP/1.1 2000 OK")),
        ("no content", raw(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")),
        ("a head of 500 kB", behind(&format!("{kind}x-long: {}\r\n", "x".repeat(500_000)), &good)),
        ("ten thousand headers", behind(&format!("{kind}{}", "x-many: y\r\n".repeat(10_000)), &good)),
        ("a header of bytes", behind(&format!("{kind}x-odd: \u{1}\u{7f}\r\n"), &good)),
        ("no length's body", length("0")),
        ("a length that is too long", length(&(good.len() + 9).to_string())),
        ("a length that is too short", length(&(good.len() / 2).to_string())),
        ("a length below 0", length("-5")),
        ("a length of twenty digits", length("99999999999999999999")),
        ("a length that is a word", length("many")),
        ("two lengths", length("10\r\ncontent-length: 20")),
        ("invalid chunks", behind(&format!("{kind}transfer-encoding: chunked\r\n"), &good)),
        (
            "an endless chunk",
            behind(&format!("{kind}transfer-encoding: chunked\r\n"), format!("ffffffffffffffff\r\n{good}")),
        ),
        (
            "a chunk without an end",
            behind(&format!("{kind}transfer-encoding: chunked\r\n"), format!("{:x}\r\n{good}", good.len())),
        ),
        ("invalid gzip", behind(&format!("{kind}content-encoding: gzip\r\n"), &good)),
        ("no kind", behind("", &good)),
        ("an empty content type", behind("content-type: \r\n", &good)),
        ("plain text", behind("content-type: text/plain\r\n", &good)),
        ("a picture", behind("content-type: image/png\r\n", b"\x89PNG\r\n\x1a\n\x00\x00")),
        ("a page", behind("content-type: text/html\r\n", page)),
        ("a page as what was asked for", whole(page)),
        (
            "bytes that are not UTF-8",
            behind(
                kind,
                good.replace("Next", "\u{1}")
                    .replace('\u{1}', "Ne")
                    .into_bytes()
                    .iter()
                    .map(|byte| if *byte == b'x' { 0xff } else { *byte })
                    .collect::<Vec<u8>>(),
            ),
        ),
        ("UTF-16", behind(kind, good.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())),
        ("a mark of its order", whole(&format!("\u{feff}{good}"))),
        ("zeros before it", whole(&format!("\0\0\0{good}"))),
        ("a million spaces", whole(&" ".repeat(1_000_000))),
        ("lists in lists", whole(&"[".repeat(50_000))),
        ("objects in objects", whole(&"{\"a\":".repeat(50_000))),
        ("events in its place", behind("content-type: text/event-stream\r\n", "data: {}\n\ndata: [DONE]\n\n")),
        ("events without data", whole("data\n\n:\n\nevent: \n\ndata: \n\nretry: -1\n\n")),
        ("an event of a megabyte without an end", whole(&format!("data: {}", "x".repeat(1_000_000)))),
    ];
    for (name, quarters) in
        [("nothing of it", 0), ("a quarter of it", 1), ("half of it", 2), ("three quarters of it", 3)]
    {
        all.push((name, whole(cut(good.len() * quarters / 4))));
    }
    let mut all: Vec<(String, CannedAnswer)> =
        all.into_iter().map(|(name, answer)| (name.to_owned(), answer)).collect();
    let bodies = [
        "null",
        "true",
        "7",
        "-0",
        "\"text\"",
        "[]",
        "{}",
        "[{}]",
        "[null]",
        "{\"a\":1,\"a\":2}",
        "{,}",
        "{'a': 1}",
        "{\"a\": 1,}",
        "NaN",
        "Infinity",
        "1e999999",
        "undefined",
        "\"\\ud800\"",
        "\"\u{1}\"",
        "{\"choices\":null}",
        "{\"choices\":[]}",
        "{\"choices\":[null]}",
        "{\"content\":[]}",
        "{\"content\":null}",
        "{\"output\":[]}",
        "{\"output\":null}",
        "{\"candidates\":[]}",
        "{\"candidates\":[null]}",
        "{\"candidates\":[{}]}",
        "{\"error\":{}}",
        "{\"error\":null}",
        "{\"error\":\"down\"}",
        "{\"error\":[]}",
        "{\"error\":7}",
        "{\"error\":{\"message\":null}}",
        "{\"error\":{\"code\":-5}}",
        "{\"error\":{\"code\":1e300}}",
        "{\"error\":{\"code\":200}}",
        "{\"type\":\"error\"}",
        "{\"object\":\"error\",\"message\":7}",
        "{\"detail\":[{\"loc\":[]}]}",
    ];
    for body in bodies {
        let body = if streamed { format!("data: {body}\n\n") } else { body.to_owned() };
        all.push((body.clone(), whole(&body)));
    }
    all
}

#[tokio::test]
async fn invalid_replies_are_server_errors_and_do_no_harm() {
    hold("bytes", 79, faults).await;
}
