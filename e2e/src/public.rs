//! Leads an HTTP proxy on loopback to servers of ours that play public addresses, and nowhere else. It lives on threads of its
//! own: the runtime of a test ends with the test.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The one proxy of this process.
pub struct Internet {
    port: u16,
    state: &'static State,
}

#[derive(Default)]
struct State {
    /// Address and port, as asked for, to where it really is.
    known: Mutex<BTreeMap<String, SocketAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Internet {
    /// Starts it when it is wanted first.
    ///
    /// # Panics
    /// When this machine has no free port on loopback.
    pub fn get() -> &'static Self {
        static STATE: OnceLock<State> = OnceLock::new();
        static THIS: OnceLock<Internet> = OnceLock::new();
        THIS.get_or_init(|| {
            let state = STATE.get_or_init(State::default);
            let listener = TcpListener::bind("127.0.0.1:0").expect("no free port on loopback");
            let port = listener.local_addr().expect("a listener has an address").port();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    std::thread::spawn(move || {
                        // Whoever hangs up is gone.
                        let _ = state.tunnel(stream);
                    });
                }
            });
            Self { port, state }
        })
    }

    /// As `--proxy` takes it.
    pub fn proxy(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Lets a server of ours play a public address, such as `203.0.113.7:443`.
    pub fn play(&self, public: &str, server: SocketAddr) {
        self.state.known.lock().unwrap_or_else(PoisonError::into_inner).insert(public.to_owned(), server);
    }

    /// All addresses that were asked for until now.
    pub fn asked(&self) -> Vec<String> {
        self.state.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl State {
    fn tunnel(&self, mut from: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && head.len() < 8192 {
            from.read_exact(&mut byte)?;
            head.extend(byte);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let wanted =
            head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(wanted.to_owned());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(wanted).copied();
        let Some(address) = known else {
            return from.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
        };
        let mut to = TcpStream::connect(address)?;
        from.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        let (mut back_from, mut back_to) = (to.try_clone()?, from.try_clone()?);
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut back_from, &mut back_to);
            let _ = back_to.shutdown(Shutdown::Write);
        });
        std::io::copy(&mut from, &mut to)?;
        to.shutdown(Shutdown::Write)
    }
}
