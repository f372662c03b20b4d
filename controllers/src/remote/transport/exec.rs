//! Runs a command in a container, without input and terminal, by the WebSocket protocol of `kubectl exec`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::super::kubeconfig::provider;
use super::super::wire::{self, ReadLimits, protocol};
use super::{Edge, connect};
use crate::api::{ApiResult, Request};

/// Newest first. In all of them the first byte of a message is its channel.
const PROTOCOLS: &str = "v5.channel.k8s.io, v4.channel.k8s.io";
/// What a server that speaks the protocol adds to the key (RFC 6455).
const ACCEPTED: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Largest frame that is read.
const LARGEST_FRAME: usize = 1 << 20;

const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// What a command wrote, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Of its standard output.
    pub stdout: Vec<u8>,
    /// Of its standard error.
    pub stderr: Vec<u8>,
    /// The server's Status of its end; none where that was not waited for.
    pub status: Option<Value>,
    /// It wrote more, or did not end in time.
    pub cut: bool,
}

impl Edge {
    /// Runs the command of a request of `pods/exec`, until it ends, or the limits are reached. It goes on then: nobody can end it.
    pub async fn exec(&self, request: Request, limits: ReadLimits) -> ApiResult<Executed> {
        let key = nonce()?;
        let mut request = self.finish(wire::http_request(&self.credentials.base, request, false)?)?;
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOLS));
        let nonce = HeaderValue::from_str(&key).map_err(|_| protocol("a nonce is no header"))?;
        headers.insert(SEC_WEBSOCKET_KEY, nonce);
        let mut sender = connect::upgradable(&self.credentials, &self.dialer, &self.settings).await?;
        let response = match timeout(self.settings.answer_begins, sender.send_request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(connect::lost(&self.server, &error)),
            Err(_) => return Err(self.late()),
        };
        if response.status() != http::StatusCode::SWITCHING_PROTOCOLS {
            let (head, body) = response.into_parts();
            let body = wire::collect(&self.server, body, self.settings.answer).await?;
            let refused = wire::answer(&self.server, head.status.as_u16(), &head.headers, body).await;
            let odd = |_| protocol(&format!("{} answers a command with {}", self.server, head.status));
            return Err(refused.map_or_else(|error| error, odd));
        }
        let accepted = STANDARD.encode(Sha1::digest(format!("{key}{ACCEPTED}")));
        let said = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        if said.is_none_or(|said| said.as_bytes() != accepted.as_bytes()) {
            return Err(protocol(&format!("{} does not speak WebSocket", self.server)));
        }
        let upgraded = hyper::upgrade::on(response).await;
        let upgraded = upgraded.map_err(|error| connect::lost(&self.server, &error))?;
        Ok(Messages::new(TokioIo::new(upgraded)).read(limits).await)
    }
}

fn nonce() -> ApiResult<String> {
    let mut bytes = [0_u8; 16];
    provider().secure_random.fill(&mut bytes).map_err(|_| protocol("there is no randomness"))?;
    Ok(STANDARD.encode(bytes))
}

/// A frame of the protocol.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    last: bool,
    opcode: u8,
    payload: Bytes,
}

/// The stream is not what the protocol has.
#[derive(Debug, PartialEq, Eq)]
struct Broken;

/// Takes the next frame off a buffer; none where more bytes have to come.
fn next(buffer: &mut BytesMut) -> Result<Option<Frame>, Broken> {
    let bytes = &buffer[..];
    let &[first, second, ..] = bytes else { return Ok(None) };
    let (head, length) = match (second & 0x7f, bytes) {
        (126, [_, _, a, b, ..]) => (4, u64::from(u16::from_be_bytes([*a, *b]))),
        (127, [_, _, a, b, c, d, e, f, g, h, ..]) => {
            (10, u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]))
        }
        (126 | 127, _) => return Ok(None),
        (short, _) => (2, u64::from(short)),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= LARGEST_FRAME).ok_or(Broken)?;
    // Servers do not mask.
    if second & 0x80 != 0 {
        return Err(Broken);
    }
    if bytes.len() < head + length {
        return Ok(None);
    }
    let mut frame = buffer.split_to(head + length);
    frame.advance(head);
    Ok(Some(Frame { last: first & 0x80 != 0, opcode: first & 0x0f, payload: frame.freeze() }))
}

/// Messages of a server.
struct Messages<S> {
    stream: S,
    buffer: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Messages<S> {
    fn new(stream: S) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    async fn read(mut self, limits: ReadLimits) -> Executed {
        let mut done = Executed::default();
        let read = timeout(limits.time, self.until_ended(&mut done, limits.bytes)).await;
        done.cut |= read.is_err();
        done
    }

    /// Reads until the server says how the command ended, or ends itself, or there is more output than `most`.
    async fn until_ended(&mut self, done: &mut Executed, most: usize) {
        let mut message = BytesMut::new();
        while let Some(frame) = self.frame().await {
            match frame.opcode {
                CONTINUATION | TEXT | BINARY => {
                    message.extend_from_slice(&frame.payload);
                    let whole = frame.last || message.len() > most;
                    if whole && take(done, &message.split(), most) {
                        return;
                    }
                }
                PING if self.answer(&frame.payload).await.is_err() => return,
                CLOSE => return,
                _ => {}
            }
        }
    }

    async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = next(&mut self.buffer).ok()? {
                return Some(frame);
            }
            let read = self.stream.read_buf(&mut self.buffer).await.ok()?;
            if read == 0 {
                return None;
            }
        }
    }

    /// Clients mask, if only with nothing.
    async fn answer(&mut self, ping: &[u8]) -> std::io::Result<()> {
        let ping = ping.get(..ping.len().min(125)).unwrap_or_default();
        let length = u8::try_from(ping.len()).unwrap_or(0);
        let mut pong = vec![0x80 | PONG, 0x80 | length, 0, 0, 0, 0];
        pong.extend_from_slice(ping);
        self.stream.write_all(&pong).await?;
        self.stream.flush().await
    }
}

/// Adds a message; true where it is the last one that counts.
fn take(done: &mut Executed, message: &[u8], most: usize) -> bool {
    let Some((channel, text)) = message.split_first() else { return false };
    let room = most.saturating_sub(done.stdout.len() + done.stderr.len());
    let kept = text.get(..text.len().min(room)).unwrap_or_default();
    match *channel {
        STDOUT => done.stdout.extend_from_slice(kept),
        STDERR => done.stderr.extend_from_slice(kept),
        STATUS => {
            done.status = serde_json::from_slice(text).ok();
            return true;
        }
        _ => return false,
    }
    done.cut |= kept.len() < text.len();
    done.cut
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            short @ 0..=125 => bytes.push(u8::try_from(short).unwrap()),
            long => {
                bytes.push(126);
                bytes.extend_from_slice(&u16::try_from(long).unwrap().to_be_bytes());
            }
        }
        bytes.extend_from_slice(payload);
        bytes
    }

    async fn read(sent: Vec<u8>, most: usize) -> (Executed, Vec<u8>) {
        let (client, mut server) = tokio::io::duplex(1 << 16);
        server.write_all(&sent).await.unwrap();
        let limits = ReadLimits { bytes: most, time: Duration::from_secs(5) };
        let done = Messages::new(client).read(limits).await;
        let mut answered = Vec::new();
        server.read_to_end(&mut answered).await.unwrap();
        (done, answered)
    }

    #[tokio::test]
    async fn output_and_status_come_by_channel_and_a_ping_is_answered() {
        let status = json!({"status": "Failure", "reason": "NonZeroExitCode"});
        let long = [&[STDOUT][..], &[b'x'; 300]].concat();
        let sent = [
            // Servers open channels with empty messages.
            frame(0x80 | BINARY, &[STDOUT]),
            frame(0x80 | PING, b"there?"),
            frame(BINARY, &[STDERR, b'o']),
            frame(0x80 | CONTINUATION, b"h"),
            frame(0x80 | BINARY, &long),
            frame(0x80 | BINARY, &[&[STATUS][..], status.to_string().as_bytes()].concat()),
            frame(0x80 | BINARY, &[STDOUT, b'!']),
        ];
        let (done, answered) = read(sent.concat(), 1024).await;
        assert_eq!((done.stdout.len(), done.stderr.as_slice(), done.cut), (300, &b"oh"[..], false));
        assert_eq!(done.status, Some(status));
        assert_eq!(answered, [&[0x80 | PONG, 0x80 | 6, 0, 0, 0, 0][..], b"there?"].concat());
    }

    #[tokio::test]
    async fn more_output_than_the_limit_is_cut() {
        let (done, _) = read(frame(0x80 | BINARY, &[STDOUT, b'a', b'b', b'c']), 2).await;
        assert_eq!((done.stdout.as_slice(), done.cut, done.status), (&b"ab"[..], true, None));
    }

    #[test]
    fn a_frame_is_taken_when_it_is_whole_and_refused_when_it_is_odd() {
        let whole = frame(0x80 | BINARY, b"abc");
        for length in 0..whole.len() {
            assert_eq!(next(&mut BytesMut::from(&whole[..length])), Ok(None));
        }
        let mut buffer = BytesMut::from(&[&whole[..], b"rest"].concat()[..]);
        let taken = next(&mut buffer).unwrap().unwrap();
        assert_eq!((taken.last, taken.opcode, &taken.payload[..]), (true, BINARY, &b"abc"[..]));
        assert_eq!(&buffer[..], b"rest");
        let huge = [&[0x82, 127][..], &u64::MAX.to_be_bytes()].concat();
        assert_eq!(next(&mut BytesMut::from(&huge[..])), Err(Broken));
        assert_eq!(next(&mut BytesMut::from(&[0x82, 0x81, 0, 0, 0, 0, 0][..])), Err(Broken), "it is masked");
    }
}
