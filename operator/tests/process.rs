//! The program against a hub on loopback: what it waits for, what it serves meanwhile, how it stops.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A hub that serves nothing: every path is 404.
fn empty_hub() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || not_found(stream));
        }
    });
    address
}

fn not_found(mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().expect("a clone")).lines();
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() {
            let body = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"not found"}"#;
            let head = format!(
                "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port")
}

struct Operator {
    child: Child,
    /// Read all the time: a full pipe would stop the operator.
    logs: Option<JoinHandle<String>>,
    dir: PathBuf,
    listen: SocketAddr,
    probe: SocketAddr,
    debug: SocketAddr,
}

impl Operator {
    fn start(name: &str, hub: SocketAddr) -> Self {
        let dir = std::env::temp_dir().join(format!("emco-operator-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let kubeconfig = dir.join("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: 'http://{hub}'}}}}]\nusers: [{{name: c, user: {{token: very-secret-token}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n"
        );
        std::fs::write(&kubeconfig, text).expect("a file");
        let (listen, probe, debug) = (free_address(), free_address(), free_address());
        let mut child = Command::new(env!("CARGO_BIN_EXE_emco-operator"))
            .args(["run", "--log", "trace", "--log-format", "json", "--listen", &listen.to_string()])
            .args(["--probe-listen", &probe.to_string(), "--debug-listen", &debug.to_string(), "--state-dir"])
            .arg(dir.join("state"))
            .env_clear()
            .env("KUBECONFIG", &kubeconfig)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stderr = child.stderr.take().expect("its logs");
        let logs = std::thread::spawn(move || {
            let mut logs = String::new();
            stderr.read_to_string(&mut logs).expect("text");
            logs
        });
        Self { child, logs: Some(logs), dir, listen, probe, debug }
    }

    /// Asks until the answer contains `words`.
    #[allow(clippy::unused_self)] // it is the process that is asked
    fn ask_until(&self, address: SocketAddr, request: &str, words: &str) -> String {
        let end = Instant::now() + Duration::from_secs(30);
        let mut last = String::new();
        while Instant::now() < end {
            last = ask(address, request).unwrap_or_else(|error| error.to_string());
            if last.contains(words) {
                return last;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{request} never said {words}: {last}");
    }

    /// Tells it to stop; its logs.
    fn stop(mut self) -> String {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("a signal");
        let status = self.child.wait().expect("its end");
        let logs = self.logs.take().expect("its logs").join().expect("a thread");
        assert!(status.success(), "{status}: {logs}");
        logs
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn ask(address: SocketAddr, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(request.replace("HTTP", "HTTP/1.1\r\nHost: x\r\nConnection: close").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn without_crds_it_lives_waits_and_says_what_to_apply() {
    let operator = Operator::start("crds", empty_hub());
    let ready = operator.ask_until(operator.probe, "GET /readyz HTTP\r\n\r\n", "apply config/crd first");
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    assert!(ready.contains("hub: ") && ready.contains("syncshards.emco.io"), "{ready}");
    assert!(operator.ask_until(operator.probe, "GET /livez HTTP\r\n\r\n", "ok").starts_with("HTTP/1.1 200"));
    let metrics = operator.ask_until(operator.listen, "GET /metrics HTTP\r\n\r\n", "# EOF");
    for name in [
        "emco_build_info{version=",
        "emco_leader 0",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
    ] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    let state = operator.ask_until(operator.debug, "GET /debug/state HTTP\r\n\r\n", "missing");
    assert!(state.contains("apply config/crd first"), "{state}");
    let logs = operator.stop();
    assert!(logs.contains("waiting for the hub"), "{logs}");
    assert!(!logs.contains("very-secret-token"), "{logs}");
    for line in logs.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("a line of JSON");
    }
}

#[test]
fn an_unreachable_hub_is_waited_for_and_the_log_filter_changes_meanwhile() {
    let operator = Operator::start("hub", free_address());
    operator.ask_until(operator.probe, "GET /readyz HTTP\r\n\r\n", "cannot be reached");
    let change = "PUT /debug/log HTTP\r\nContent-Length: 18\r\n\r\nemco_operator=warn";
    let refused = operator.ask_until(
        operator.debug,
        "PUT /debug/log HTTP\r\nContent-Length: 8\r\n\r\nh2=trace",
        "credentials",
    );
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    operator.ask_until(operator.debug, change, "emco_operator=warn");
    operator.ask_until(operator.debug, "GET /debug/log HTTP\r\n\r\n", "emco_operator=warn");
    operator.stop();
}

/// A client that holds a connection open: `head` again and again, and whatever comes is read. It connects again when it is cut.
fn crowd(address: SocketAddr, head: &'static str, done: &Arc<AtomicBool>) -> JoinHandle<()> {
    let done = Arc::clone(done);
    std::thread::spawn(move || {
        while !done.load(Ordering::Relaxed) {
            // Not as fast as it can: the processor is not what is fought for here.
            std::thread::sleep(Duration::from_millis(100));
            let Ok(mut stream) = TcpStream::connect(address) else { continue };
            stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a time-out");
            while !done.load(Ordering::Relaxed) && stream.write_all(head.as_bytes()).is_ok() {
                match stream.read(&mut [0; 4096]) {
                    Ok(0) => break,
                    Err(error) if error.kind() != ErrorKind::WouldBlock => break,
                    _ => {}
                }
            }
        }
    })
}

#[test]
fn crowds_at_the_port_of_metrics_delay_no_probe_and_no_scrape() {
    let operator = Operator::start("crowd", free_address());
    operator.ask_until(operator.probe, "GET /livez HTTP\r\n\r\n", "ok");
    let done = Arc::new(AtomicBool::new(false));
    let mut crowds = Vec::new();
    for head in ["", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "GET /metrics HTTP/1.1\r\nX-Slow: "] {
        crowds.extend((0..70).map(|_| crowd(operator.listen, head, &done)));
    }
    // Those at the port of probes itself keep nobody out either.
    crowds.extend((0..70).map(|_| crowd(operator.probe, "", &done)));
    let (begun, mut longest, mut scraped) = (Instant::now(), Duration::ZERO, 0);
    while begun.elapsed() < Duration::from_secs(20) {
        for path in ["/livez", "/readyz"] {
            let asked = Instant::now();
            let answer = ask(operator.probe, &format!("GET {path} HTTP\r\n\r\n"));
            longest = longest.max(asked.elapsed());
            let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(answer.contains("ok") || answer.contains("hub: "), "{path}: {answer}");
        }
        let page = ask(operator.listen, "GET /metrics HTTP\r\n\r\n");
        scraped += usize::from(page.is_ok_and(|page| page.contains("# EOF")));
        std::thread::sleep(Duration::from_millis(200));
    }
    done.store(true, Ordering::Relaxed);
    assert!(longest < Duration::from_secs(1), "a probe took {longest:?}");
    assert!(scraped > 0, "nobody could read the metrics");
    for crowd in crowds {
        crowd.join().expect("a thread");
    }
    operator.stop();
}
