//! Shows what the kernel knows of this process, read at each scrape, under the names that Prometheus' own libraries use.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

#[derive(Debug)]
pub(super) struct Process {
    started: f64,
}

impl Process {
    pub fn new() -> Self {
        Self { started: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        if let Some(seconds) = cpu_seconds() {
            let cpu = ConstCounter::new(seconds);
            let help = "Processor time in user and system mode";
            cpu.encode(encoder.encode_descriptor("cpu", help, Some(&Unit::Seconds), cpu.metric_type())?)?;
        }
        let mut gauge = |name: &str, help: &str, unit: Option<&Unit>, value: Option<f64>| {
            let Some(value) = value else { return Ok(()) };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)
        };
        gauge("resident_memory", "Memory in RAM", Some(&Unit::Bytes), memory_bytes("VmRSS:"))?;
        gauge("virtual_memory", "Address space", Some(&Unit::Bytes), memory_bytes("VmSize:"))?;
        gauge("open_fds", "Open files and connections", None, open_files())?;
        gauge("max_fds", "The most files and connections that may be open", None, most_files())?;
        gauge("start_time", "Unix time of the start", Some(&Unit::Seconds), Some(self.started))
    }
}

/// A line of `/proc/self/status`, which counts KiB; `None` where the kernel says nothing.
fn memory_bytes(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0)
}

/// `utime` and `stime`, the 14th and 15th field of `/proc/self/stat` (`man 5 proc_pid_stat`). The name before them may have spaces.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
    let [user, system] = ticks[..] else { return None };
    let a_second = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some((user + system) / f64::from(a_second))
}

fn open_files() -> Option<f64> {
    let count = std::fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(count).ok().map(f64::from)
}

/// The soft limit of open files; none is shown where there is none.
fn most_files() -> Option<f64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    u32::try_from(limit).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_memory_processor_time_and_files() {
        let begun = cpu_seconds().unwrap();
        let mut text = String::new();
        while cpu_seconds().unwrap() - begun < 0.02 {
            text.push('x');
        }
        assert!(memory_bytes("VmRSS:").unwrap() > 1e6 && memory_bytes("VmSize:") >= memory_bytes("VmRSS:"));
        assert!(open_files().unwrap() >= 3.0 && most_files() > open_files());
    }
}
