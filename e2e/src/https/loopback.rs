//! Sends requests to a server on loopback, with exactly the headers that are given.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// For one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a server answered.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Such as 404.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// As it came, unpacked from chunks.
    pub body: Vec<u8>,
}

impl Reply {
    /// The first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Bytes of head and body.
    pub fn size(&self) -> usize {
        let head: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        head + self.body.len()
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").context("the head has no end")?;
        let head = String::from_utf8_lossy(&bytes[..end]);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let status = status.context("the first line has no status")?;
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut reply = Self { status, headers, body: bytes[end + 4..].to_vec() };
        if reply.header("transfer-encoding") == Some("chunked") {
            reply.body = of_chunks(&reply.body).context("a chunk is not whole")?;
        }
        Ok(reply)
    }
}

fn of_chunks(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|part| part == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).ok()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend(bytes.get(end + 2..end + 2 + size)?);
        bytes = bytes.get(end + 2 + size + 2..)?;
    }
}

/// Sends one request and reads the answer to its end. `Host` is the address, unless it is among the headers.
pub async fn send(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Reply> {
    let asked = async {
        let headers = [headers, &[("Connection", "close")]].concat();
        let mut stream = begin(port, method, path, &headers, body).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        Reply::parse(&bytes)
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await;
    // The path holds the secret of a link.
    answer.context("it does not answer")?.with_context(|| format!("{method} on port {port}"))
}

/// Sends one request and leaves the answer to be read.
pub async fn begin(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<TcpStream> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        text.push_str(&format!("Host: 127.0.0.1:{port}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    text.push_str(body);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.context("nobody listens there")?;
    stream.write_all(text.as_bytes()).await?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_chunks_is_put_together() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let reply = Reply::parse(bytes).unwrap();
        assert_eq!((reply.status, reply.text().as_str()), (200, "abcde"));
        assert!(Reply::parse(&bytes[..bytes.len() - 12]).is_err());
    }

    #[test]
    fn an_answer_says_its_status_its_headers_and_its_body() {
        let reply = Reply::parse(b"HTTP/1.1 404 Not Found\r\nX-A: b: c\r\n\r\nno\n").unwrap();
        assert_eq!((reply.status, reply.header("x-a"), reply.text().as_str()), (404, Some("b: c"), "no\n"));
        assert!(Reply::parse(b"HTTP/1.1").is_err());
    }
}
