//! Gives handles to the programs and proxies of a supervisor of our own.
//!
//! Bound to no runtime: a test's runtime ends with the test, a shared bed lives on.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tokio::sync::{oneshot, watch};

use super::protocol::{Answer, Line, Message, ProcessSignal, ProgramSpec, Request, Wish};
use crate::launch;
use crate::usage::{Usage, is_stopped};

/// For the end of everything; a killed program may first have to write a core or leave the kernel.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks whether a program stands still.
const STOP_POLL: Duration = Duration::from_millis(2);

/// A running supervisor. Dropping it ends its programs and removes its folder, and waits for that.
pub struct Supervisor {
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
    shared: Arc<Mutex<Shared>>,
    root: PathBuf,
    /// Leases that it holds.
    leases: AtomicUsize,
}

/// Leases that all supervisors of this process hold.
static LEASES: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct Shared {
    last: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Result<Answer, String>>>,
    ends: BTreeMap<u64, watch::Sender<Option<String>>>,
    over: bool,
}

impl Shared {
    fn end_of(&mut self, process: u64) -> &watch::Sender<Option<String>> {
        self.ends.entry(process).or_insert_with(|| watch::channel(None).0)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supervisor {
    /// Starts a supervisor.
    pub async fn start() -> Result<Arc<Self>> {
        let mut child = Command::new(launch::own_binary()?)
            .arg("supervise")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C goes to the group of the terminal: the supervisor has to outlive it to clean up.
            .process_group(0)
            .spawn()
            .context("cannot start the supervisor")?;
        let (input, output) =
            (child.stdin.take(), child.stdout.take().context("no output of the supervisor")?);
        let shared = Arc::new(Mutex::new(Shared::default()));
        let reading = Arc::clone(&shared);
        std::thread::spawn(move || read_messages(output, &reading));
        let mut supervisor = Self {
            child: Mutex::new(child),
            input: Mutex::new(input),
            shared,
            root: PathBuf::new(),
            leases: AtomicUsize::new(0),
        };
        match supervisor.ask(Wish::Root).await? {
            Answer::Root(root) => supervisor.root = root,
            other => bail!("the supervisor answered {other:?} instead of its folder"),
        }
        Ok(Arc::new(supervisor))
    }

    /// The folder for all data, removed at the end.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The supervisor's own process.
    pub fn pid(&self) -> u32 {
        locked(&self.child).id()
    }

    /// Waits until the machine has room for `planes` more control planes.
    pub async fn lease(&self, planes: usize) -> Result<()> {
        let beside = LEASES.load(Ordering::SeqCst) > 0;
        self.ask(Wish::Lease { planes, beside }).await?;
        LEASES.fetch_add(1, Ordering::SeqCst);
        self.leases.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Starts a program that ends with the supervisor at the latest.
    pub async fn run(self: &Arc<Self>, spec: ProgramSpec) -> Result<Process> {
        let (name, log) = (spec.name.clone(), spec.log.clone());
        match self.ask(Wish::Start(spec)).await.with_context(|| format!("{name} did not start"))? {
            Answer::Started { process, pid } => {
                let ended = locked(&self.shared).end_of(process).subscribe();
                Ok(Process { supervisor: Arc::clone(self), id: process, pid, name, log, ended })
            }
            other => bail!("the supervisor answered {other:?} to the start of {name}"),
        }
    }

    /// A port of 127.0.0.1 in front of the port `to`.
    pub async fn proxy(self: &Arc<Self>, to: u16) -> Result<Proxy> {
        match self.ask(Wish::Proxy { to }).await? {
            Answer::Proxy { proxy, port } => Ok(Proxy { supervisor: Arc::clone(self), id: proxy, port }),
            other => bail!("the supervisor answered {other:?} to a wish for a proxy"),
        }
    }

    async fn ask(&self, wish: Wish) -> Result<Answer> {
        let receiver = {
            let (sender, receiver) = oneshot::channel();
            let mut shared = locked(&self.shared);
            if shared.over {
                bail!("the supervisor has ended");
            }
            shared.last += 1;
            let id = shared.last;
            shared.waiting.insert(id, sender);
            drop(shared);
            let mut text = serde_json::to_string(&Request { id, wish })?;
            text.push('\n');
            let mut input = locked(&self.input);
            let input = input.as_mut().context("the supervisor is ending")?;
            input.write_all(text.as_bytes()).context("the supervisor has ended")?;
            receiver
        };
        receiver.await.context("the supervisor has ended")?.map_err(|message| anyhow!(message))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        LEASES.fetch_sub(self.leases.load(Ordering::SeqCst), Ordering::SeqCst);
        drop(locked(&self.input).take());
        let mut child = locked(&self.child);
        let start = Instant::now();
        // Waiting for a process has no limit of its own.
        while matches!(child.try_wait(), Ok(None)) {
            if start.elapsed() > PATIENCE {
                eprintln!("the supervisor does not end: killing it, and with it its programs");
                let _ = child.kill().and_then(|()| child.wait());
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn read_messages(output: ChildStdout, shared: &Mutex<Shared>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(Message::Answer { id, result }) => {
                let waiting = locked(shared).waiting.remove(&id);
                // Whoever asked may have gone.
                let _ = waiting.map(|waiting| waiting.send(result));
            }
            Ok(Message::Ended { process, how }) => {
                drop(locked(shared).end_of(process).send_replace(Some(how)));
            }
            Err(error) => {
                eprintln!("the supervisor sent what cannot be read: {error}");
                break;
            }
        }
    }
    let mut shared = locked(shared);
    shared.over = true;
    shared.waiting.clear();
    for end in shared.ends.values() {
        end.send_if_modified(|how| {
            let running = how.is_none();
            if running {
                *how = Some("ended with its supervisor".to_owned());
            }
            running
        });
    }
}

/// A program that the supervisor runs. Dropping the handle does not end it.
pub struct Process {
    supervisor: Arc<Supervisor>,
    id: u64,
    pid: u32,
    name: String,
    log: PathBuf,
    ended: watch::Receiver<Option<String>>,
}

impl Process {
    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file with its output and errors.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last `lines` lines of its log, without the control bytes that a terminal would obey.
    pub fn log_tail(&self, lines: usize) -> String {
        crate::diagnose::tail(&self.log, lines)
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        self.ended.borrow().is_none()
    }

    /// Waits for its end and says how it ended, such as `exit status: 0` or `signal: 9 (SIGKILL)`.
    pub async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(how) => how.clone().unwrap_or_default(),
            Err(_) => "ended with its supervisor".to_owned(),
        }
    }

    /// Ends it at once, and answers when it has ended.
    pub async fn kill(&self) -> Result<()> {
        self.signal(ProcessSignal::Kill).await
    }

    /// Asks it to end (SIGTERM), and answers when it has ended. A frozen program ends when it is thawed.
    pub async fn terminate(&self) -> Result<()> {
        self.signal(ProcessSignal::Terminate).await
    }

    /// Stops it where it is (SIGSTOP): its connections stay open and nothing answers, once this returns.
    pub async fn freeze(&self) -> Result<()> {
        self.signal(ProcessSignal::Stop).await?;
        let stopped = async {
            while !is_stopped(self.pid)? {
                tokio::time::sleep(STOP_POLL).await;
            }
            Ok(())
        };
        let within = tokio::time::timeout(PATIENCE, stopped).await;
        within.unwrap_or_else(|_| bail!("{} still runs {PATIENCE:?} after SIGSTOP", self.name))
    }

    /// Lets it go on.
    pub async fn thaw(&self) -> Result<()> {
        self.signal(ProcessSignal::Continue).await
    }

    /// CPU time and memory so far.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid).with_context(|| format!("{} has no usage", self.name))
    }

    async fn signal(&self, signal: ProcessSignal) -> Result<()> {
        let wish = Wish::Signal { process: self.id, signal };
        self.supervisor.ask(wish).await.map(drop).with_context(|| format!("{signal:?} to {}", self.name))
    }
}

/// A port in front of another, whose line can be made bad.
pub struct Proxy {
    supervisor: Arc<Supervisor>,
    id: u64,
    port: u16,
}

impl Proxy {
    /// The port of 127.0.0.1 it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the line behaves like from now on, for present connections, too.
    pub async fn set(&self, line: Line) -> Result<()> {
        self.supervisor.ask(Wish::SetLine { proxy: self.id, line }).await.map(drop)
    }
}
