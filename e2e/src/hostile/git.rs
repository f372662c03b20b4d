//! A Git server whose packs are chains of differences, each named before what it builds on.

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::json;
use sha1::{Digest as _, Sha1};

use super::{Running, Size, allow, deploy};
use crate::bed::Bed;
use crate::https::Server;

/// As many as are fetched at once.
const SERVERS: usize = 4;
/// Bytes of an object and of the difference that makes it.
const OBJECT: u8 = 16;
/// The commit that the branch is at, which is in no pack.
const COMMIT: &str = "00000000000000000000000000000000000000c0";
/// Content of one packet.
const PACKET: usize = 65_000;

pub(super) async fn begin(bed: &Bed, project: &str, size: Size) -> Result<Running> {
    // Within the objects and bytes that a pack may have.
    let pack = match size {
        Size::Least | Size::Small => pack(8, 1000),
        Size::Full => pack(120, 4000),
    };
    let router = Router::new()
        .route("/{number}/info/refs", get(advertise))
        .route("/{number}/git-upload-pack", post(answer))
        .with_state(Bytes::from(pack));
    let server = Server::plain(router).await?;
    allow(bed, project, &[format!("{}/", server.url())]).await?;
    let mut running = Running::default();
    for number in 0..SERVERS {
        let url = format!("{}/{number}", server.url());
        let source = json!({"git": {"url": url, "ref": {"branch": "main"}}});
        let name = format!("git-{number}");
        running.objects.extend(deploy(bed, project, &name, &source, &[]).await?.objects);
    }
    running.servers.push(server);
    Ok(running)
}

async fn advertise() -> Response {
    let mut body = Vec::new();
    for text in ["version 2\n", "ls-refs\n", "fetch=shallow filter\n"] {
        line(&mut body, text.as_bytes());
    }
    body.extend_from_slice(b"0000");
    ([(CONTENT_TYPE, "application/x-git-upload-pack-advertisement")], body).into_response()
}

async fn answer(State(pack): State<Bytes>, asked: Bytes) -> Response {
    let mut body = Vec::new();
    if asked.windows(7).any(|word| word == b"ls-refs") {
        line(&mut body, format!("{COMMIT} refs/heads/main\n").as_bytes());
    } else {
        line(&mut body, b"packfile\n");
        for chunk in pack.chunks(PACKET) {
            let mut packet = vec![1];
            packet.extend_from_slice(chunk);
            line(&mut body, &packet);
        }
    }
    body.extend_from_slice(b"0000");
    ([(CONTENT_TYPE, "application/x-git-upload-pack-result")], body).into_response()
}

fn line(body: &mut Vec<u8>, content: &[u8]) {
    body.extend_from_slice(format!("{:04x}", content.len() + 4).as_bytes());
    body.extend_from_slice(content);
}

/// A pack of so many chains of so many objects, the ends of all chains first and what they begin with last.
fn pack(chains: u32, depth: u32) -> Vec<u8> {
    let mut pack = b"PACK".to_vec();
    pack.extend_from_slice(&2_u32.to_be_bytes());
    pack.extend_from_slice(&(chains * (depth + 1)).to_be_bytes());
    for at in (0..=depth).rev() {
        for chain in 0..chains {
            if at == 0 {
                // A blob as it is, shorter than sixteen bytes need to be told in one byte less.
                head(&mut pack, 3, OBJECT);
                stored(&mut pack, &content(chain, 0));
                continue;
            }
            let mut delta = vec![OBJECT, OBJECT, OBJECT];
            delta.extend_from_slice(&content(chain, at));
            head(&mut pack, 7, OBJECT + 3);
            pack.extend_from_slice(&name(&content(chain, at - 1)));
            stored(&mut pack, &delta);
        }
    }
    let sum = Sha1::digest(&pack);
    pack.extend_from_slice(&sum);
    pack
}

fn content(chain: u32, at: u32) -> Vec<u8> {
    format!("{chain:08x}{at:08x}").into_bytes()
}

/// The name that Git gives a blob.
fn name(content: &[u8]) -> Vec<u8> {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    hash.finalize().to_vec()
}

/// Kind and size of an entry, for sizes from 16 to 2,047.
fn head(pack: &mut Vec<u8>, kind: u8, size: u8) {
    pack.extend_from_slice(&[0x80 | (kind << 4) | (size & 15), size >> 4]);
}

/// Content as zlib stores what it does not compress: half a million encoders would take longer than what is attacked.
fn stored(pack: &mut Vec<u8>, content: &[u8]) {
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
    pack.extend_from_slice(&[0x78, 0x01, 0x01]);
    pack.extend_from_slice(&length.to_le_bytes());
    pack.extend_from_slice(&(!length).to_le_bytes());
    pack.extend_from_slice(content);
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in content {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    pack.extend_from_slice(&((high << 16) | low).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_itself_takes_the_pack_and_finds_every_object() {
        let dir = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.args(args).current_dir(dir.path()).env("HOME", dir.path());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        git(&["init", "-q", "."]);
        std::fs::write(dir.path().join("chains.pack"), pack(3, 10)).unwrap();
        git(&["index-pack", "chains.pack"]);
        let found = git(&["verify-pack", "-v", "chains.pack"]);
        assert_eq!(found.lines().filter(|line| line.contains(" blob ")).count(), 33, "{found}");
        assert!(found.lines().any(|line| line.contains(&hex::encode(name(&content(2, 10))))), "{found}");
    }
}
