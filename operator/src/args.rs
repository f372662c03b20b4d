//! Reads and checks the settings of the command line and the environment.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use emco_controllers::remote::dialer::{NoProxy, Proxy, literal};
use ipnet::IpNet;

/// EMCO: composite applications on many clusters.
#[derive(Parser, Debug)]
#[command(name = "emco-operator", version = crate::version::VERSION.as_str(), about, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run the operator against the hub of KUBECONFIG, or of the cluster it runs in.
    Run(Box<RunArgs>),
    /// Print the `CustomResourceDefinitions` as YAML.
    Crds,
    /// Print the version.
    Version,
}

/// How logs look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

#[derive(clap::Args, Debug)]
pub struct RunArgs {
    /// The operator's own namespace on the hub; made if absent.
    #[arg(long, env = "EMCO_NAMESPACE", default_value = "emco-system", value_parser = namespace)]
    pub namespace: String,

    /// Directory for the identity of this replica and the cache of charts.
    #[arg(long, env = "EMCO_STATE_DIR", default_value = "/var/lib/emco", value_name = "DIR")]
    pub state_dir: PathBuf,

    /// Serves /metrics.
    #[arg(long, env = "EMCO_LISTEN", default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    pub listen: SocketAddr,

    /// Serves /livez and /readyz, on a thread of their own.
    #[arg(long, env = "EMCO_PROBE_LISTEN", default_value = "0.0.0.0:8082", value_name = "ADDRESS")]
    pub probe_listen: SocketAddr,

    /// Serves /debug/state and /debug/log; a loopback address.
    #[arg(long, env = "EMCO_DEBUG_LISTEN", default_value = "127.0.0.1:8081", value_name = "ADDRESS", value_parser = loopback)]
    pub debug_listen: SocketAddr,

    /// How logs look.
    #[arg(long, env = "EMCO_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// What is logged: a level, or levels by module such as `info,emco_controllers::sync=debug`.
    #[arg(long, env = "EMCO_LOG", default_value = "info", value_name = "FILTER", value_parser = crate::telemetry::parse)]
    pub log: String,

    /// Range of addresses that clusters may have although it is loopback, link-local or the hub's; repeat, or separate by
    /// commas.
    #[arg(long, env = "EMCO_ALLOW_EDGE_ADDRESS", value_name = "CIDR", value_delimiter = ',', value_parser = range)]
    pub allow_edge_address: Vec<IpNet>,

    /// Name or address by which others reach the hub's API server, beside the one that the operator uses: refused to what
    /// tenants name, as that one is; repeat, or separate by commas.
    #[arg(long, env = "EMCO_HUB_HOST", value_name = "HOST", value_delimiter = ',', value_parser = host)]
    pub hub_host: Vec<String>,

    /// HTTP proxy for charts and clusters at public addresses, as http://host:port or http://user:password@host:port. Other
    /// addresses are dialled directly.
    #[arg(long, env = "EMCO_PROXY", value_name = "URL", hide_env_values = true, value_parser = proxy)]
    pub proxy: Option<ProxyText>,

    /// Public host that is dialled without the proxy: a name or domain (with all names below), an address, a range, or * for all;
    /// repeat, or separate by commas.
    #[arg(long, env = "EMCO_NO_PROXY", value_name = "HOST", value_delimiter = ',', value_parser = NoProxy::entry)]
    pub no_proxy: Vec<String>,

    /// File of further authorities, in PEM, that sources of charts may have their certificates from, besides the public ones and a
    /// chart's own.
    #[arg(long, env = "EMCO_CA_BUNDLE", value_name = "FILE")]
    pub ca_bundle: Option<PathBuf>,

    /// Requests in flight per cluster, watches apart. Two more are kept: one for probes, one for projects that have none.
    #[arg(long, env = "EMCO_EDGE_IN_FLIGHT", default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub edge_in_flight: u16,

    /// Connections being made at once.
    #[arg(long, env = "EMCO_MAX_CONNECTS", default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub max_connects: u16,

    /// Seconds that stored manifests are kept after the last revision or shard that names them.
    #[arg(long, env = "EMCO_UNREFERENCED_SECONDS", default_value_t = 900, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=604_800))]
    pub unreferenced_seconds: u32,

    /// Mebibytes that the stored revisions of all deployments may take together. Beyond, what adds to them is refused, so that no project
    /// fills the hub's etcd.
    #[arg(long, env = "EMCO_STORED_MEBIBYTES", default_value_t = 1536, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub stored_mebibytes: u32,
}

/// What stands behind `--proxy`. Judged later: an error of the command line would quote it, with its password.
#[derive(Clone, Debug)]
pub struct ProxyText(Result<Proxy, String>);

#[allow(clippy::unnecessary_wraps)] // the form of a value parser
fn proxy(text: &str) -> Result<ProxyText, String> {
    Ok(ProxyText(Proxy::parse(text)))
}

impl RunArgs {
    /// The proxy, if there is one.
    pub fn proxy(&self) -> anyhow::Result<Option<Proxy>> {
        let read = self.proxy.as_ref().map(|ProxyText(read)| read.clone()).transpose();
        read.map_err(|why| anyhow::anyhow!("--proxy: {why}"))
    }
}

fn namespace(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = |c: char| c.is_ascii_alphanumeric();
    if (1..=63).contains(&text.len())
        && text.bytes().all(good)
        && text.starts_with(ends)
        && text.ends_with(ends)
    {
        return Ok(text.to_owned());
    }
    Err("a namespace has 1 to 63 lower-case letters, digits and dashes, and a dash neither first nor last"
        .to_owned())
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "write an address with a port, such as 127.0.0.1:8081".to_owned())?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err("it shows the operator's inner state and must be a loopback address, such as 127.0.0.1:8081"
        .to_owned())
}

fn host(text: &str) -> Result<String, String> {
    let text = text.trim();
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if literal(text).is_some() || (1..=253).contains(&text.len()) && text.bytes().all(good) {
        return Ok(text.to_owned());
    }
    Err("write a name or an address without port and path, such as api.hub.example.com or 203.0.113.7"
        .to_owned())
}

fn range(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let parsed = text.parse::<IpNet>().or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from));
    parsed.map_err(|_| "write an address or a range, such as 127.0.0.0/8 or fd00::/8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_the_hub_are_names_and_addresses_without_a_port() {
        let read = |host: &str| Args::try_parse_from(["emco-operator", "run", "--hub-host", host]);
        for good in ["api.hub.example.com", "203.0.113.7,fd00::1", "[fd00::1]"] {
            let Command::Run(args) = read(good).unwrap().command else { panic!("run is run") };
            assert_eq!(args.hub_host.len(), good.split(',').count());
        }
        for wrong in ["https://api.hub.example.com", "api.hub.example.com:6443", "api hub", ""] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("--hub-host") && error.contains("without port and path"), "{error}");
        }
    }

    #[test]
    fn hosts_without_the_proxy_are_read_by_entry_or_refused_with_the_flag() {
        let read = |hosts: &str| Args::try_parse_from(["emco-operator", "run", "--no-proxy", hosts]);
        let Command::Run(args) = read(".example.com, 203.0.113.0/24,*").unwrap().command else {
            panic!("run is run")
        };
        assert_eq!(args.no_proxy, [".example.com", "203.0.113.0/24", "*"]);
        let error = read("example.com:443").err().unwrap().to_string();
        assert!(error.contains("--no-proxy") && error.contains("without scheme, port"), "{error}");
    }

    #[test]
    fn a_proxy_that_cannot_be_read_is_refused_without_being_quoted() {
        let read = |proxy: &str| {
            let Command::Run(args) =
                Args::try_parse_from(["emco-operator", "run", "--proxy", proxy]).unwrap().command
            else {
                panic!("run is run")
            };
            assert!(!format!("{args:?}").contains("hunter2"), "{args:?}");
            args.proxy()
        };
        assert_eq!(read("http://ann:hunter2@proxy:3128").unwrap().unwrap().to_string(), "proxy:3128");
        let error = read("socks5://ann:hunter2@proxy").unwrap_err().to_string();
        assert!(error.starts_with("--proxy: write") && !error.contains("hunter2"), "{error}");
    }
}
