//! Reads the metrics of operators at the addresses that their logs name.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One that runs answers in milliseconds. One that a test has stopped does not.
const PATIENCE: Duration = Duration::from_secs(1);
const REQUEST: &[u8] = b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
/// Of one answer.
const MOST_BYTES: u64 = 16 << 20;

/// What a log names last as the address of a flag.
pub fn listening(log: &str, flag: &str) -> Option<SocketAddr> {
    let flag = format!("\"{flag}\"");
    let line = log.lines().rfind(|line| line.contains("listening") && line.contains(&flag))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("address="))?.parse().ok()
}

/// The metrics at these addresses. Where no operator is left, another program may have the port: its answer does not count.
pub async fn of(addresses: &BTreeSet<SocketAddr>) -> String {
    let asked = addresses.iter().map(|address| tokio::time::timeout(PATIENCE, at(*address)));
    let pages = join_all(asked).await.into_iter().filter_map(|asked| asked.ok()?.ok());
    pages.filter(|page| page.contains("emco_")).collect()
}

async fn at(address: SocketAddr) -> Result<String> {
    let mut connection = TcpStream::connect(address).await.context("the port of metrics")?;
    connection.write_all(REQUEST).await?;
    let mut page = Vec::new();
    connection.take(MOST_BYTES).read_to_end(&mut page).await.context("the metrics")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "
2026-11-27T10:00:00Z  INFO listening address=127.0.0.1:1 flag=\"--listen\"
2026-11-27T10:00:00Z  INFO listening address=127.0.0.1:2 flag=\"--probe-listen\"
2026-11-27T11:00:00Z  INFO listening address=127.0.0.1:3 flag=\"--listen\"
2026-11-27T11:00:01Z  INFO leading
";

    #[test]
    fn the_last_life_of_an_operator_says_where_it_listens() {
        let at = |flag: &str| listening(LOG, flag).map(|address| address.port());
        assert_eq!((at("--listen"), at("--probe-listen"), at("--debug-listen")), (Some(3), Some(2), None));
    }

    /// Answers once, so.
    async fn answering(page: &'static str) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            connection.read_exact(&mut vec![0; REQUEST.len()]).await.unwrap();
            let answer = format!("HTTP/1.0 200 OK\r\n\r\n{page}");
            connection.write_all(answer.as_bytes()).await.unwrap();
        });
        address
    }

    #[tokio::test]
    async fn a_secret_in_a_metric_is_found_and_other_ports_are_passed_over() {
        let operator = answering("emco_build_info{version=\"hunter2-hunter2\"} 1\n").await;
        let other = answering("<html>hunter2-hunter2</html>").await;
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent_address = silent.local_addr().unwrap();
        let addresses = BTreeSet::from([operator, other, gone, silent_address]);
        let page = of(&addresses).await;
        assert!(!page.contains("html"), "{page}");
        let secret = serde_json::json!({
            "metadata": {"name": "s", "namespace": "n"}, "data": {"password": "aHVudGVyMi1odW50ZXIy"},
        });
        let secrets = super::super::Secrets::of(&serde_json::from_value(secret).unwrap());
        let shown = secrets.shown_in(&page).unwrap();
        assert_eq!(shown, "Secret n/s, key password is shown: emco_build_info{version=\"(the secret)\"} 1");
    }
}
