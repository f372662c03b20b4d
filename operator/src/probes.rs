//! Serves /livez and /readyz on a thread and a listener of their own: neither busy work nor other clients delay a probe.
//! Nothing here asks the hub: an outage of the hub must not restart the operator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use emco_controllers::driver::lease::pulse::{BEAT, Pulse, STUCK, Silence};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::listener;
use crate::readiness::Readiness;

/// Silence of the work after which it is not ready.
const BUSY: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Vitals {
    readiness: Readiness,
    /// Seconds since the work was last seen to run.
    silent: Arc<AtomicU64>,
}

/// Starts the thread, which serves as long as the process lives.
pub fn start(listener: std::net::TcpListener, readiness: Readiness, pulse: Arc<Pulse>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the runtime of probes cannot be made")?;
    let spawned = thread::Builder::new()
        .name("probes".to_owned())
        .spawn(move || runtime.block_on(serve(listener, readiness, pulse)));
    spawned.map(drop).context("the thread of probes cannot be started")
}

async fn serve(listener: std::net::TcpListener, readiness: Readiness, pulse: Arc<Pulse>) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "probes cannot be served"),
    };
    let vitals = Vitals { readiness, silent: Arc::default() };
    let router =
        Router::new().route("/livez", get(alive)).route("/readyz", get(ready)).with_state(vitals.clone());
    tokio::join!(listener::serve(listener, router), listen(&vitals, pulse));
}

async fn listen(vitals: &Vitals, pulse: Arc<Pulse>) {
    let mut silence = Silence::of(pulse);
    loop {
        sleep(BEAT).await;
        vitals.silent.store(silence.look().as_secs(), Ordering::Relaxed);
    }
}

/// Busy work is alive; work that did nothing for minutes is not.
async fn alive(State(vitals): State<Vitals>) -> Response {
    let silent = Duration::from_secs(vitals.silent.load(Ordering::Relaxed));
    if silent < STUCK {
        return "ok\n".into_response();
    }
    let text = format!("work: it has not answered for {} s\n", silent.as_secs());
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn ready(State(vitals): State<Vitals>) -> Response {
    let silent = Duration::from_secs(vitals.silent.load(Ordering::Relaxed));
    let mut text = String::new();
    if silent >= BUSY {
        text = format!("work: it is busy and has not answered for {} s\n", silent.as_secs());
    }
    for (name, why) in vitals.readiness.missing() {
        text += &format!("{name}: {why}\n");
    }
    if text.is_empty() {
        return "ok\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn answer(response: Response) -> (u16, String) {
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 4096).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn busy_work_is_alive_and_not_ready_and_stuck_work_is_neither() {
        let vitals = Vitals { readiness: Readiness::default(), silent: Arc::default() };
        for (silent, live, is_ready) in [(0, 200, 200), (9, 200, 200), (60, 200, 503), (120, 503, 503)] {
            vitals.silent.store(silent, Ordering::Relaxed);
            let (code, text) = answer(alive(State(vitals.clone())).await).await;
            assert_eq!(code, live, "{silent} s: {text}");
            let (code, text) = answer(ready(State(vitals.clone())).await).await;
            assert_eq!(code, is_ready, "{silent} s: {text}");
        }
    }

    #[test]
    fn probes_are_answered_while_all_threads_of_the_work_are_busy() {
        use std::io::{Read, Write};
        use std::net::{TcpListener, TcpStream};
        use std::sync::atomic::AtomicBool;

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let pulse = Arc::new(Pulse::default());
        start(listener, Readiness::default(), Arc::clone(&pulse)).unwrap();
        let work = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let done = Arc::new(AtomicBool::new(false));
        for _ in 0..2 {
            let done = Arc::clone(&done);
            work.spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let ask = |path: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        let begun = std::time::Instant::now();
        // Until it is seen that the work is busy, and for as long as that takes it is alive.
        while !ask("/readyz").contains("it is busy and has not answered for") {
            assert!(ask("/livez").starts_with("HTTP/1.1 200"));
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(100));
        }
        done.store(true, Ordering::Relaxed);
    }
}
