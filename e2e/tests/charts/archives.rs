//! In: archives that are made to do harm. Out: a refusal that names it, and an operator that goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use emco_e2e::operator::{binary_map, deployed};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tar::{EntryType, Header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{begin, deploy, has, said, says};

const CHART: &str = "apiVersion: v2\nname: note\nversion: 1.0.0\n";
/// Says what a file of the chart holds.
const READS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Files.Get \"out\" | quote }}}\n";

/// An archive with a good chart and one more entry.
fn archive(name: &str, kind: EntryType, link: &str, content: &[u8]) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    let mut add = |name: &str, kind, link: &str, content: &[u8]| {
        let mut header = Header::new_gnu();
        // By hand: the writer would refuse such names.
        for (to, from) in header.as_old_mut().name.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        for (to, from) in header.as_old_mut().linkname.iter_mut().zip(link.bytes()) {
            *to = from;
        }
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, content)
    };
    add("note/Chart.yaml", EntryType::Regular, "", CHART.as_bytes())?;
    add("note/templates/note.yaml", EntryType::Regular, "", READS.as_bytes())?;
    add(name, kind, link, content)?;
    Ok(tar.into_inner()?.finish()?)
}

fn source(key: &str) -> Value {
    json!({"configMapRef": {"name": "charts", "key": key}})
}

#[tokio::test]
async fn archives_that_lead_out_or_unpack_to_too_much_are_refused_and_links_lead_nowhere() {
    let bed = begin("archives", None).await.unwrap();
    bed.explain(async {
        let large = vec![0; 5 << 20];
        let mut bomb = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        for number in 0..60 {
            let mut header = Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(large.len() as u64);
            bomb.append_data(&mut header, format!("note/files/{number}"), large.as_slice())?;
        }
        let bomb = bomb.into_inner()?.finish()?;
        ensure!(bomb.len() < 900_000, "the bomb is packed into {} bytes", bomb.len());
        let bad = [
            (archive("note//etc/passwd", EntryType::Regular, "", b"x")?, "ChartInvalid", "absolute paths"),
            (
                archive("note/../../etc/passwd", EntryType::Regular, "", b"x")?,
                "ChartInvalid",
                "parent directory",
            ),
            (bomb, "ChartTooLarge", "more than 33554432 bytes"),
        ];
        let link = archive("note/out", EntryType::Symlink, "/etc/passwd", b"")?;
        let key = |number: usize| format!("note-{number}.tgz");
        let mut all: BTreeMap<_, _> =
            bad.iter().enumerate().map(|(number, (bytes, ..))| (key(number), bytes.clone())).collect();
        all.insert("link.tgz".to_owned(), link);
        binary_map(bed, "archives", "charts", all).await?;
        for (number, (_, reason, words)) in bad.iter().enumerate() {
            deploy(bed, "archives", &source(&key(number))).await?;
            has(&says(bed, "archives", reason).await?, &["app note", words]);
        }
        deploy(bed, "archives", &source("link.tgz")).await?;
        deployed(bed, "archives", "shop", 1).await?;
        ensure!(said(bed, "archives").await?.is_empty(), "the link led somewhere");
        Ok(())
    })
    .await;
}

/// Serves an index, and a chart of two gigabytes as far as it is read.
async fn answer(mut stream: TcpStream, sent: Arc<AtomicU64>) -> Result<()> {
    let mut request = [0; 4096];
    let read = stream.read(&mut request).await?;
    if request.get(..read).is_some_and(|request| request.starts_with(b"GET /index.yaml ")) {
        let index = json!({"entries": {"note": [{"version": "1.0.0", "urls": ["large.tgz"]}]}}).to_string();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", index.len());
        stream.write_all(format!("{head}{index}").as_bytes()).await?;
        return Ok(());
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2147483648\r\n\r\n").await?;
    let piece = vec![0; 64 << 10];
    loop {
        stream.write_all(&piece).await?;
        sent.fetch_add(piece.len() as u64, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_chart_of_two_gigabytes_is_refused_before_it_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&counted)));
        }
    });
    let bed = begin("gigabytes", Some(std::slice::from_ref(&url))).await.unwrap();
    bed.explain(async {
        deploy(bed, "gigabytes", &json!({"repository": {"url": url, "name": "note", "version": "1.0.0"}}))
            .await?;
        let message = says(bed, "gigabytes", "ChartTooLarge").await?;
        has(&message, &["app note", "large.tgz", "announces 2147483648 bytes", "33554432"]);
        let sent = sent.load(Ordering::SeqCst);
        ensure!(sent < 64 << 20, "{sent} bytes were read");
        Ok(())
    })
    .await;
}
