//! Reads from `/proc` the CPU time and memory of a process, and whether it is stopped.

use std::time::Duration;

use anyhow::{Context, Result};

/// What a process has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user and kernel, all threads, since its start.
    pub cpu: Duration,
    /// Resident memory now, in bytes.
    pub rss_bytes: u64,
    /// The part of it that is of no file, such as the program's own: what the allocator holds, in bytes.
    pub anonymous_bytes: u64,
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
            anonymous_bytes: bytes(&status, "RssAnon:").context("/proc/PID/status names no RssAnon")?,
            peak_rss_bytes: bytes(&status, "VmHWM:").context("/proc/PID/status names no VmHWM")?,
        })
    }
}

/// Whether each thread of a process is stopped. The signal reaches one of them first: the others run on until it has passed
/// the stop on, which is late where processors are scarce.
///
/// # Errors
/// When the process has ended.
pub fn is_stopped(pid: u32) -> Result<bool> {
    let threads = format!("/proc/{pid}/task");
    for thread in std::fs::read_dir(&threads).with_context(|| format!("cannot read {threads}"))? {
        // A thread may end meanwhile.
        let Ok(stat) = std::fs::read_to_string(thread?.path().join("stat")) else { continue };
        if state(&stat) != Some("T") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The word behind the program's name, which may itself hold spaces and parentheses.
fn state(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().next()
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
        assert_eq!(state(stat), Some("S"));
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(bytes("Name:\tx\nVmRSS:\t   12 kB\n", "VmRSS:"), Some(12 * 1024));
    }

    #[test]
    fn this_process_has_a_usage() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.anonymous_bytes > 0 && usage.rss_bytes > usage.anonymous_bytes);
        assert!(usage.peak_rss_bytes >= usage.rss_bytes);
    }
}
