//! In: a process id. Out: the CPU time and memory of that process, from `/proc`.

use std::time::Duration;

use anyhow::{Context, Result};

/// What a process has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user and kernel, all threads, since its start.
    pub cpu: Duration,
    /// Resident memory now, in bytes.
    pub rss_bytes: u64,
    /// The most resident memory it ever had, in bytes.
    pub peak_rss_bytes: u64,
}

impl Usage {
    /// Reads the usage of a running process.
    pub fn of(pid: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let cpu = cpu_ticks(&read("stat")?).context("/proc/PID/stat is not as expected")?;
        let status = read("status")?;
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Ok(Self {
            cpu: Duration::from_millis(cpu.saturating_mul(1000) / per_second),
            rss_bytes: bytes(&status, "VmRSS:").context("/proc/PID/status names no VmRSS")?,
            peak_rss_bytes: bytes(&status, "VmHWM:").context("/proc/PID/status names no VmHWM")?,
        })
    }
}

/// utime + stime: the 12th and 13th word behind the program's name, which may itself hold spaces and parentheses.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace().skip(11);
    Some(words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?)
}

fn bytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_a_name_with_spaces() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 50 25 0 0 20 0 9 0 1 2 3";
        assert_eq!(cpu_ticks(stat), Some(75));
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(bytes("Name:\tx\nVmRSS:\t   12 kB\n", "VmRSS:"), Some(12 * 1024));
    }

    #[test]
    fn this_process_has_a_usage() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.rss_bytes > 0 && usage.peak_rss_bytes >= usage.rss_bytes);
    }
}
