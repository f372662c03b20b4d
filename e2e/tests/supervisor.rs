//! In: a supervisor with programs. Out: nothing of them is left, however the process that wanted them ends.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use emco_e2e::supervisor::{Line, ProgramSpec, Supervisor};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

fn sleeper(supervisor: &Supervisor, name: &str) -> ProgramSpec {
    ProgramSpec {
        name: name.to_owned(),
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".to_owned(), "echo started; exec sleep 600".to_owned()],
        env: BTreeMap::new(),
        log: supervisor.root().join(format!("{name}.log")),
    }
}

/// What a process that was killed left behind is looked for until it is gone: nobody tells a stranger.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended; whoever inherits it has only not noticed yet.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// A process of its own that holds a supervisor with two programs, and what it says of them.
struct Holder {
    child: Child,
    root: PathBuf,
    supervisor: u32,
    programs: Vec<u32>,
}

impl Holder {
    /// Runs `a_holder_for_the_other_tests` of this very binary.
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_holder_for_the_other_tests", "--nocapture"])
            .env("EMCO_E2E_HOLD", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("HOLDING ").map(|(_, rest)| rest.to_owned()))
            .expect("the holder said nothing");
        let mut words = line.split_whitespace();
        let root = PathBuf::from(words.next().unwrap());
        let mut pids = words.map(|word| word.parse().unwrap());
        let supervisor = pids.next().unwrap();
        let holder = Self { child, root, supervisor, programs: pids.collect() };
        assert!(holder.root.is_dir());
        assert_eq!(holder.programs.len(), 2);
        assert!(holder.programs.iter().all(|&pid| is_alive(pid)));
        holder
    }

    fn leaves_nothing(&self) {
        eventually("the supervisor still runs", || !is_alive(self.supervisor));
        for &pid in &self.programs {
            eventually("a program still runs", || !is_alive(pid));
        }
        eventually("the folder is still there", || !self.root.exists());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_holder_for_the_other_tests() {
    let supervisor = Supervisor::start().await.unwrap();
    let first = supervisor.run(sleeper(&supervisor, "first")).await.unwrap();
    let second = supervisor.run(sleeper(&supervisor, "second")).await.unwrap();
    second.freeze().await.unwrap();
    if std::env::var_os("EMCO_E2E_HOLD").is_none() {
        // Alone it shows that dropping a supervisor leaves nothing.
        let (root, pids) = (supervisor.root().to_owned(), [supervisor.pid(), first.pid(), second.pid()]);
        drop((first, second, supervisor));
        assert!(!root.exists());
        assert!(pids.iter().all(|&pid| !is_alive(pid)));
        return;
    }
    println!("HOLDING {} {} {} {}", supervisor.root().display(), supervisor.pid(), first.pid(), second.pid());
    // Until it is killed, told to panic, or its own parent ends.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    assert!(!line.contains("panic"), "told to");
    std::process::exit(1);
}

#[test]
fn nothing_is_left_after_kill_9() {
    let holder = Holder::start();
    signal(holder.child.id(), Signal::KILL);
    holder.leaves_nothing();
}

#[test]
fn nothing_is_left_after_ctrl_c() {
    let holder = Holder::start();
    signal(holder.child.id(), Signal::INT);
    holder.leaves_nothing();
}

#[test]
fn nothing_is_left_after_an_exit_that_drops_nothing() {
    let mut holder = Holder::start();
    drop(holder.child.stdin.take());
    holder.leaves_nothing();
}

#[test]
fn nothing_is_left_after_a_panic() {
    use std::io::Write as _;
    let mut holder = Holder::start();
    holder.child.stdin.take().unwrap().write_all(b"panic\n").unwrap();
    holder.leaves_nothing();
}

#[test]
fn nothing_is_left_after_the_supervisor_is_asked_to_end() {
    let holder = Holder::start();
    signal(holder.supervisor, Signal::TERM);
    holder.leaves_nothing();
}

#[test]
fn programs_end_with_a_killed_supervisor_and_the_next_one_removes_its_folder() {
    let holder = Holder::start();
    signal(holder.supervisor, Signal::KILL);
    for &pid in &holder.programs {
        eventually("a program outlives its supervisor", || !is_alive(pid));
    }
    let next = Holder::start();
    eventually("the folder is still there", || !holder.root.exists());
    assert!(next.root.exists());
}

#[tokio::test]
async fn a_program_that_ends_says_how_and_keeps_its_log() {
    let supervisor = Supervisor::start().await.unwrap();
    let mut spec = sleeper(&supervisor, "short");
    spec.args = vec!["-c".to_owned(), "echo a last word; exit 3".to_owned()];
    let process = supervisor.run(spec).await.unwrap();
    assert_eq!(process.ended().await, "exit status: 3");
    assert_eq!(process.log_tail(5), "a last word");
    assert!(!process.is_running());
    assert!(process.freeze().await.is_err());
    process.kill().await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_not_there_ends_with_a_sentence() {
    let supervisor = Supervisor::start().await.unwrap();
    let mut spec = sleeper(&supervisor, "missing");
    spec.program = PathBuf::from("/nowhere/program");
    let process = supervisor.run(spec).await.unwrap();
    assert_eq!(process.ended().await, "exit status: 1");
    let log = process.log_tail(5);
    assert!(log.contains("cannot start /nowhere/program"), "{log}");
}

#[tokio::test]
async fn a_frozen_program_goes_on_when_it_is_thawed_and_can_be_killed_while_frozen() {
    let supervisor = Supervisor::start().await.unwrap();
    let process = supervisor.run(sleeper(&supervisor, "cold")).await.unwrap();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    };
    process.freeze().await.unwrap();
    assert_eq!(state(), 'T', "it has not stopped yet");
    process.thaw().await.unwrap();
    eventually("it is still stopped", || state() != 'T');
    process.freeze().await.unwrap();
    process.kill().await.unwrap();
    assert!(!is_alive(process.pid()));
}

#[tokio::test]
async fn a_line_can_be_slow_silent_refusing_and_good_again() {
    let supervisor = Supervisor::start().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = supervisor.proxy(listener.local_addr().unwrap().port()).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    echo(&mut stream).await.unwrap();

    proxy.set(Line::Slow(100)).await.unwrap();
    let start = Instant::now();
    echo(&mut stream).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(200));

    proxy.set(Line::Silent).await.unwrap();
    let silent = tokio::time::timeout(Duration::from_millis(300), echo(&mut stream)).await;
    assert!(silent.is_err(), "a black hole answered");
    proxy.set(Line::Good).await.unwrap();
    let mut held_up = [0; 5];
    stream.read_exact(&mut held_up).await.unwrap();
    assert_eq!(&held_up, b"hello");

    proxy.set(Line::Refusing).await.unwrap();
    assert!(echo(&mut stream).await.is_err(), "a closed connection answered");
    let mut refused = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    assert!(echo(&mut refused).await.is_err(), "a refused connection answered");

    proxy.set(Line::Good).await.unwrap();
    let mut again = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    echo(&mut again).await.unwrap();
}

async fn echo(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"hello").await?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await?;
    assert_eq!(&answer, b"hello");
    Ok(())
}

#[test]
fn a_program_whose_parent_has_ended_already_does_not_start() {
    let output = Command::new(env!("CARGO_BIN_EXE_emco-e2e"))
        .args(["launch", "1", "--", "/bin/echo", "started"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(Path::new("/bin/echo").exists());
}

/// `emco-e2e up` with a hub and an edge, and the folder that it names.
fn start_planes() -> (Child, PathBuf) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_emco-e2e"))
        .args(["up", "--edges", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut root = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        if let Some(dir) = line.strip_prefix("bed ") {
            root = Some(PathBuf::from(dir));
        }
        if line == "ready" {
            return (child, root.expect("no folder was named"));
        }
    }
    panic!("the planes did not start: {:?}", child.wait());
}

/// The processes whose command line names the folder.
fn processes_of(root: &Path) -> Vec<String> {
    let root = root.display().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&root)).collect()
}

#[test]
fn no_program_and_no_file_of_real_planes_is_left_after_kill_9() {
    let (mut child, root) = start_planes();
    // etcd, two API servers, two controller-managers, a scheduler and kwok.
    assert_eq!(processes_of(&root).len(), 7, "{:#?}", processes_of(&root));
    signal(child.id(), Signal::KILL);
    child.wait().unwrap();
    eventually("a program still runs", || processes_of(&root).is_empty());
    eventually("the folder is still there", || !root.exists());
}

#[test]
fn real_planes_are_gone_when_ctrl_c_is_done() {
    let (mut child, root) = start_planes();
    signal(child.id(), Signal::INT);
    eventually("it does not end", || !is_alive(child.id()));
    assert!(child.wait().unwrap().success());
    assert_eq!(processes_of(&root), Vec::<String>::new());
    assert!(!root.exists());
}

/// A supervisor that is spoken to by hand, on a machine with room for two planes.
fn supervisor_with_room_for_two(cache: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_emco-e2e"))
        .arg("supervise")
        .env("EMCO_TEST_PLANES", "2")
        .env("XDG_CACHE_HOME", cache)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ask_for_planes(supervisor: &mut Child, planes: usize) {
    ask(supervisor, planes, false);
}

/// `beside`: another bed of the same process.
fn ask(supervisor: &mut Child, planes: usize, beside: bool) {
    use std::io::Write as _;
    let line =
        format!("{{\"id\": 1, \"wish\": {{\"Lease\": {{\"planes\": {planes}, \"beside\": {beside}}}}}}}\n");
    supervisor.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
}

fn answer(supervisor: &mut Child) -> String {
    BufReader::new(supervisor.stdout.take().unwrap()).lines().next().unwrap().unwrap()
}

#[test]
fn planes_beyond_the_room_of_the_machine_wait_until_others_end() {
    let cache = tempfile::tempdir().unwrap();
    let granted = r#"{"Answer":{"id":1,"result":{"Ok":"Done"}}}"#;
    let mut first = supervisor_with_room_for_two(cache.path());
    // More than there is room for gets all there is.
    ask_for_planes(&mut first, 3);
    assert_eq!(answer(&mut first), granted);

    let mut second = supervisor_with_room_for_two(cache.path());
    ask_for_planes(&mut second, 1);
    let said = BufReader::new(second.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    assert_eq!(said, "waiting: 1 control planes are wanted and 0 may start now");
    drop(first.stdin.take());
    assert_eq!(answer(&mut second), granted);
    drop(second.stdin.take());
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
}

#[test]
fn a_bed_beside_another_takes_what_is_free_while_others_wait() {
    let cache = tempfile::tempdir().unwrap();
    let granted = r#"{"Answer":{"id":1,"result":{"Ok":"Done"}}}"#;
    let mut first = supervisor_with_room_for_two(cache.path());
    ask(&mut first, 1, false);
    assert_eq!(answer(&mut first), granted);
    // Has its turn next, and waits for the end of the first.
    let mut waiting = supervisor_with_room_for_two(cache.path());
    ask(&mut waiting, 2, false);
    let said = BufReader::new(waiting.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    assert_eq!(said, "waiting: 2 control planes are wanted and 1 may start now");
    // The first ends only after this one.
    let mut beside = supervisor_with_room_for_two(cache.path());
    ask(&mut beside, 1, true);
    assert_eq!(answer(&mut beside), granted);
    drop((beside.stdin.take(), first.stdin.take()));
    assert_eq!(answer(&mut waiting), granted);
    drop(waiting.stdin.take());
    for mut one in [first, waiting, beside] {
        assert!(one.wait().unwrap().success());
    }
}
