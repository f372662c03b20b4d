//! Connections to the port of the metrics: some say nothing and stay, some ask once a second and never end.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Running;

/// More than one listener takes.
pub const IDLE: usize = 70;
/// Often enough to stay connected.
const EVERY: Duration = Duration::from_secs(1);

pub(super) fn begin(public: SocketAddr) -> Running {
    let mut running = Running::default();
    for number in 0..IDLE {
        running.tasks.spawn(async move {
            loop {
                // Who is cut off comes again.
                let _ = if number.is_multiple_of(2) { idle(public).await } else { ask(public).await };
                tokio::time::sleep(EVERY).await;
            }
        });
    }
    running
}

/// Says nothing until it is cut off.
async fn idle(public: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(public).await?;
    while stream.read(&mut [0; 64]).await? > 0 {}
    Ok(())
}

/// Asks again and again over one connection.
async fn ask(public: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(public).await?;
    let mut answer = [0; 4096];
    loop {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: emco\r\n\r\n").await?;
        if stream.read(&mut answer).await? == 0 {
            return Ok(());
        }
        tokio::time::sleep(EVERY).await;
    }
}
