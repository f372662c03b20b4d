//! Opens a port whose connections behave as a line should.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::protocol::Line;

const PIECE: usize = 16 * 1024;
const MAX_CONNECTIONS: usize = 4096;

/// A listening proxy; dropping it closes its connections.
pub(super) struct Listening {
    pub port: u16,
    pub line: watch::Sender<Line>,
}

/// Listens on a free port of 127.0.0.1.
pub(super) async fn listen(to: u16) -> Result<Listening> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen for the proxy")?;
    let port = listener.local_addr().context("the proxy has no address")?.port();
    let (line, state) = watch::channel(Line::Good);
    tokio::spawn(accept(listener, to, state));
    Ok(Listening { port, line })
}

async fn accept(listener: TcpListener, to: u16, state: watch::Receiver<Line>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut watched = state.clone();
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gone(&mut watched) => return,
        };
        let Ok((client, _)) = accepted else { continue };
        let state = state.clone();
        tokio::spawn(async move {
            connection(client, to, state).await;
            drop(permit);
        });
    }
}

/// Until the owner drops the proxy.
async fn gone(state: &mut watch::Receiver<Line>) {
    while state.changed().await.is_ok() {}
}

async fn connection(client: TcpStream, to: u16, mut state: watch::Receiver<Line>) {
    if !passes(&mut state).await {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { return };
    // The proxied line must be as quick as the real one unless told otherwise.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut watched = state.clone();
    let refused = async {
        let _ = watched.wait_for(|line| *line == Line::Refusing).await;
    };
    tokio::select! {
        () = refused => {}
        ((), ()) = async {
            tokio::join!(
                copy(from_client, to_server, state.clone()),
                copy(from_server, to_client, state.clone())
            )
        } => {}
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<Line>) {
    let mut piece = vec![0; PIECE];
    loop {
        let Ok(length) = from.read(&mut piece).await else { return };
        if length == 0 || !passes(&mut state).await {
            return;
        }
        let line = *state.borrow();
        if let Line::Slow(milliseconds) = line {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        }
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

/// Waits while the line is silent; false when connections are to be closed.
async fn passes(state: &mut watch::Receiver<Line>) -> bool {
    match state.wait_for(|line| *line != Line::Silent).await {
        Ok(line) => *line != Line::Refusing,
        Err(_) => false,
    }
}
