//! Runs the real Git: its commands, and the server that it has for HTTP.

use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;

use crate::remote::testing::Reply;

pub fn git(home: &Path, folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(["AUTHOR", "COMMITTER"].iter().flat_map(|who| {
            [(format!("GIT_{who}_NAME"), "ann"), (format!("GIT_{who}_EMAIL"), "ann@example.com")]
        }))
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// One request as the program answers it.
pub fn backend(root: &Path, request: &http::Request<Bytes>) -> Reply {
    let header = |name: &str| request.headers().get(name).map_or("", |value| value.to_str().unwrap());
    let mut program = Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", root)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", request.method().as_str())
        .env("PATH_INFO", request.uri().path())
        .env("QUERY_STRING", request.uri().query().unwrap_or_default())
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", request.body().len().to_string())
        .env("HTTP_GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut program.stdin.take().unwrap(), request.body()).unwrap();
    let output = program.wait_with_output().unwrap().stdout;
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let (mut status, mut kind) = (200, String::new());
    for line in std::str::from_utf8(&output[..end]).unwrap().lines() {
        match line.split_once(": ").unwrap() {
            ("Status", text) => status = text[..3].parse().unwrap(),
            ("Content-Type", text) => text.clone_into(&mut kind),
            _ => {}
        }
    }
    let mut reply = Reply::text(status, "", output[end + 4..].to_vec());
    reply.headers = vec![("content-type", kind)];
    reply
}
