//! Runs programs as requested on standard input, until it closes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, Read as _, Write as _};
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::protocol::{Answer, Message, ProcessSignal, ProgramSpec, Request, Wish};
use super::proxy::{self, Listening};
use super::root::Root;
use super::slots;
use crate::launch;

/// Longer requests are refused.
const MAX_REQUEST: u64 = 1 << 20;

/// Serves until standard input closes or a signal asks for the end; afterwards nothing is left.
///
/// Must run on the main thread: programs are tied to the thread that starts them.
pub fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime of the supervisor")?;
    let result = runtime.block_on(async {
        let mut serving = Serving::new()?;
        let result = serving.run().await;
        serving.end().await;
        result
    });
    // A thread may still wait for a slot.
    runtime.shutdown_background();
    result
}

struct Serving {
    root: Root,
    running: BTreeMap<u64, Running>,
    proxies: BTreeMap<u64, Listening>,
    slots: Vec<File>,
    last: u64,
    ends: mpsc::UnboundedSender<(u64, String)>,
    // One message per program started.
    ended: mpsc::UnboundedReceiver<(u64, String)>,
}

struct Running {
    pid: Pid,
    /// Requests to answer when the program has ended.
    waiting: Vec<u64>,
}

impl Serving {
    fn new() -> Result<Self> {
        let (ends, ended) = mpsc::unbounded_channel();
        Ok(Self {
            root: Root::new()?,
            running: BTreeMap::new(),
            proxies: BTreeMap::new(),
            slots: Vec::new(),
            last: 0,
            ends,
            ended,
        })
    }

    async fn run(&mut self) -> Result<()> {
        let mut requests = read_requests();
        let (slots_taken, mut taken) = mpsc::channel(1);
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for signals")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot watch for signals")?;
        let mut hangup = signal(SignalKind::hangup()).context("cannot watch for signals")?;
        loop {
            tokio::select! {
                // Ends come first, so that no signal goes to the number of a process that has ended.
                biased;
                Some((process, how)) = self.ended.recv() => self.note_end(process, how),
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                _ = hangup.recv() => return Ok(()),
                Some((id, result)) = taken.recv() => {
                    let result: Result<Vec<File>> = result;
                    answer(id, result.map(|slots| { self.slots.extend(slots); Answer::Done }));
                }
                request = requests.recv() => match request {
                    None => return Ok(()),
                    Some(Request { id, wish: Wish::Lease { planes, beside } }) => {
                        let slots_taken = slots_taken.clone();
                        tokio::task::spawn_blocking(move || slots_taken.blocking_send((id, slots::take(planes, beside))));
                    }
                    Some(Request { id, wish }) => {
                        if let Some(result) = self.fulfil(id, wish).await.transpose() {
                            answer(id, result);
                        }
                    }
                },
            }
        }
    }

    /// `None` when the answer comes later.
    async fn fulfil(&mut self, id: u64, wish: Wish) -> Result<Option<Answer>> {
        match wish {
            Wish::Root => Ok(Some(Answer::Root(self.root.dir.clone()))),
            Wish::Lease { .. } => bail!("a lease is not taken here"),
            Wish::Start(spec) => self.start(&spec).await.map(Some),
            Wish::Signal { process, signal } => self.send_signal(id, process, signal),
            Wish::Proxy { to } => {
                let listening = proxy::listen(to).await?;
                let port = listening.port;
                self.last += 1;
                self.proxies.insert(self.last, listening);
                Ok(Some(Answer::Proxy { proxy: self.last, port }))
            }
            Wish::SetLine { proxy, line } => {
                let listening = self.proxies.get(&proxy).with_context(|| format!("no proxy {proxy}"))?;
                listening.line.send_replace(line);
                Ok(Some(Answer::Done))
            }
        }
    }

    async fn start(&mut self, spec: &ProgramSpec) -> Result<Answer> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&spec.log)
            .with_context(|| format!("cannot open {}", spec.log.display()))?;
        let mut command = Command::from(launch::tied_and_told(&spec.program)?);
        let mut child = command
            .args(&spec.args)
            .envs(&spec.env)
            .current_dir(&self.root.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", spec.name))?;
        let number = child.id().ok_or_else(|| anyhow!("{} ended at once", spec.name))?;
        if let Some(told) = child.stdout.take() {
            told.take(1)
                .read_to_end(&mut Vec::new())
                .await
                .context("cannot wait for the program to be tied")?;
        }
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw).context("not a process id")?;
        self.last += 1;
        let process = self.last;
        let ends = self.ends.clone();
        tokio::spawn(async move {
            let how = match child.wait().await {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            };
            let _ = ends.send((process, how));
        });
        self.running.insert(process, Running { pid, waiting: Vec::new() });
        Ok(Answer::Started { process, pid: number })
    }

    fn send_signal(&mut self, id: u64, process: u64, signal: ProcessSignal) -> Result<Option<Answer>> {
        let ending = matches!(signal, ProcessSignal::Kill | ProcessSignal::Terminate);
        let Some(running) = self.running.get_mut(&process) else {
            if ending {
                return Ok(Some(Answer::Done));
            }
            bail!("the program has ended already");
        };
        let signal = match signal {
            ProcessSignal::Stop => Signal::STOP,
            ProcessSignal::Continue => Signal::CONT,
            ProcessSignal::Terminate => Signal::TERM,
            ProcessSignal::Kill => Signal::KILL,
        };
        kill_process(running.pid, signal).context("cannot signal the program")?;
        if ending {
            running.waiting.push(id);
            return Ok(None);
        }
        Ok(Some(Answer::Done))
    }

    fn note_end(&mut self, process: u64, how: String) {
        let ended = self.running.remove(&process);
        tell(&Message::Ended { process, how });
        for id in ended.into_iter().flat_map(|running| running.waiting) {
            answer(id, Ok(Answer::Done));
        }
    }

    /// Kills what runs, and answers when all of it has ended.
    async fn end(&mut self) {
        self.proxies.clear();
        for running in self.running.values() {
            // It may have ended just now.
            let _ = kill_process(running.pid, Signal::KILL);
        }
        while !self.running.is_empty() {
            match self.ended.recv().await {
                Some((process, _)) => drop(self.running.remove(&process)),
                None => return,
            }
        }
    }
}

fn answer(id: u64, result: Result<Answer>) {
    tell(&Message::Answer { id, result: result.map_err(|error| format!("{error:#}")) });
}

/// Whoever does not listen any more has closed our standard input, too, and we are about to end.
fn tell(message: &Message) {
    let mut out = std::io::stdout().lock();
    let _ = serde_json::to_writer(&mut out, message);
    let _ = out.write_all(b"\n").and_then(|()| out.flush());
}

/// Requests from standard input; the channel closes with it.
fn read_requests() -> mpsc::Receiver<Request> {
    let (sender, receiver) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = String::new();
        loop {
            line.clear();
            match input.by_ref().take(MAX_REQUEST).read_line(&mut line) {
                Ok(length) if length > 0 => {}
                _ => return,
            }
            match serde_json::from_str(&line) {
                Ok(request) => {
                    if sender.blocking_send(request).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    eprintln!("the supervisor was sent what it cannot read, and ends: {error}");
                    return;
                }
            }
        }
    });
    receiver
}
