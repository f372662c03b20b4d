//! In: the address of an operator's metrics. Out: a real Prometheus that scrapes it and has our rules, and its answers.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::programs::{Program, Programs};
use serde_json::Value;

use super::folder;

/// Prometheus, asked over HTTP.
pub struct Prometheus {
    address: String,
}

impl Prometheus {
    /// Starts one that scrapes the operator each second and loads the rules.
    pub async fn start(bed: &Bed, programs: &Programs, target: &str) -> Result<Self> {
        let dir = bed.dir().join("prometheus");
        std::fs::create_dir(&dir)?;
        let rules = folder().join("rules.yaml").canonicalize()?;
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{}]
scrape_configs:
- job_name: emco-operator
  static_configs:
  - {{targets: [\"{target}\"], labels: {{namespace: emco-system, pod: emco-operator-0}}}}
",
            rules.display()
        );
        std::fs::write(dir.join("prometheus.yml"), config)?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let args = [
            format!("--config.file={}", dir.join("prometheus.yml").display()),
            format!("--storage.tsdb.path={}", dir.join("data").display()),
            format!("--web.listen-address={address}"),
        ];
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        bed.run("prometheus", programs.path(Program::Prometheus)?, &args, &[]).await?;
        Ok(Self { address })
    }

    /// The answer of one path of its API; an error while it does not answer.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        let query: Vec<String> =
            query.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
        let request = format!(
            "GET /api/v1/{path}?{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            query.join("&"),
            self.address
        );
        let answer = exchange(&self.address, &request).await?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
        let start = body.find('{').context("no JSON in the answer")?;
        let end = body.rfind('}').context("no JSON in the answer")?;
        let value: Value = serde_json::from_str(&body[start..=end]).with_context(|| body.to_owned())?;
        ensure!(value["status"] == "success", "{path}: {value}");
        Ok(value["data"].clone())
    }

    /// How many series an expression has now.
    pub async fn series(&self, expression: &str) -> Result<usize> {
        let data =
            self.get("query", &[("query", expression)]).await.with_context(|| expression.to_owned())?;
        Ok(data["result"].as_array().map_or(0, Vec::len))
    }
}

async fn exchange(address: &str, request: &str) -> Result<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |out, byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => out + &char::from(byte).to_string(),
        _ => out + &format!("%{byte:02X}"),
    })
}
