//! Lets threads yield to all others.

/// Niceness of work that tenants decide about. It gets a tenth of what others get where the processor is scarce: they hardly
/// notice it, and it still ends beside other programs of the machine.
pub const NICENESS: i32 = 10;

/// Lowers the priority of this thread, for good: an ordinary process may not raise it again. Where even that is refused, or it is as
/// low already, the thread stays as it is.
pub fn lower() {
    // On Linux, "this process" of the call is this thread. A privileged process would be raised to the niceness.
    if rustix::process::getpriority_process(None).is_ok_and(|niceness| niceness < NICENESS) {
        let _ = rustix::process::setpriority_process(None, NICENESS);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn niceness() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    #[test]
    fn a_thread_that_yields_leaves_the_others_as_they_are() {
        let before = niceness();
        let lowered = thread::spawn(|| {
            lower();
            niceness()
        });
        assert_eq!(lowered.join().unwrap(), before.max(NICENESS));
        assert_eq!(niceness(), before);
    }

    #[test]
    fn a_thread_that_yields_more_already_is_not_raised() {
        let lowered = thread::spawn(|| {
            rustix::process::setpriority_process(None, 19).unwrap();
            lower();
            niceness()
        });
        assert_eq!(lowered.join().unwrap(), 19);
    }
}
