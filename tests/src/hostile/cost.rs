//! The cost of a hostile case: time, and peak memory of this process. The peak includes all tests that run in parallel.

use std::time::Instant;

/// A case that is being measured.
#[derive(Debug)]
pub struct Cost {
    began: Instant,
}

impl Cost {
    /// Starts a measurement and resets the kernel's peak memory counter, where supported.
    pub fn begin() -> Self {
        // The file exists only on Linux.
        drop(std::fs::write("/proc/self/clear_refs", "5"));
        Self { began: Instant::now() }
    }

    /// Formats the cost, for example `slow layer: 120 ms, 31 MiB at most`.
    pub fn render(&self, name: &str) -> String {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        let peak =
            peak.and_then(|kib| kib.parse::<u64>().ok()).map_or_else(|| "?".to_owned(), |kib| (kib >> 10).to_string());
        format!("{name}: {} ms, {peak} MiB at most", self.began.elapsed().as_millis())
    }
}
