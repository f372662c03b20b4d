//! Says which test, or which part of one, cannot run on this machine, and why.

use std::io::Write as _;

/// Prints `skipped: NAME: WHY`. The harness keeps to itself what a test prints that passes, but not this; the runner of the tests
/// counts such lines by name.
pub fn skip(name: &str, why: &str) {
    // At the start of a line, whatever the harness has begun to print, and at once, so that nothing gets in between.
    let line = format!("\nskipped: {name}: {why}\n");
    let mut out = std::io::stdout().lock();
    // Without an output there is nobody to tell.
    drop(out.write_all(line.as_bytes()).and_then(|()| out.flush()));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_skipped_test_says_so_past_the_harness() {
        const WITHIN: &str = "EMCO_TEST_WITHIN_ITSELF";
        if std::env::var_os(WITHIN).is_some() {
            println!("the harness keeps this");
            skip("a_test", "needs zsh");
            return;
        }
        let mut this = Command::new(std::env::current_exe().unwrap());
        this.args(["skip::tests::a_skipped_test_says_so_past_the_harness", "--exact"]).env(WITHIN, "yes");
        let output = this.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        assert!(said.lines().any(|line| line == "skipped: a_test: needs zsh"), "{said}");
        assert!(!said.contains("the harness keeps this"), "{said}");
    }
}
