//! Connections to the port of the metrics: some say nothing and stay, some ask once a second and never end.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Running;

/// More than one listener took at once.
pub const IDLE: usize = 70;
/// Beside them, who asks once a second and stays connected.
pub const ASKING: usize = 35;
const EVERY: Duration = Duration::from_secs(1);

pub(super) fn begin(public: SocketAddr) -> Running {
    let mut running = Running::default();
    for number in 0..IDLE + ASKING {
        running.tasks.spawn(async move {
            loop {
                // Who is cut off comes again.
                let _ = if number < IDLE { idle(public).await } else { ask(public).await };
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn seventy_connections_say_nothing_beside_those_that_ask() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let running = begin(listener.local_addr().unwrap());
        let mut streams = Vec::new();
        while streams.len() < IDLE + ASKING {
            streams.push(listener.accept().await.unwrap().0);
        }
        let mut asked = BTreeSet::new();
        while asked.len() < ASKING {
            for (at, stream) in streams.iter().enumerate() {
                if stream.try_read(&mut [0; 256]).is_ok_and(|bytes| bytes > 0) {
                    asked.insert(at);
                }
            }
            tokio::task::yield_now().await;
        }
        let silent = |at: &usize| {
            let read = streams[*at].try_read(&mut [0; 256]);
            read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        let idle = (0..streams.len()).filter(|at| !asked.contains(at)).filter(silent).count();
        assert_eq!((IDLE, idle), (70, 70));
        drop(running);
    }
}
