//! Lets threads yield to all others.

use thread_priority::ThreadPriority;
use thread_priority::unix::{
    NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    thread_schedule_policy,
};

/// Threads of this policy run where no other one of the same container wants the processor. Whoever wakes beside one runs at once; beside a
/// thread that is merely nice, it would wait until a slice of time is over, at each hop between an edit and its cluster.
const IDLE: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);

/// Niceness of work that tenants decide about where the system refuses the policy. It gets a tenth of what others get.
const NICENESS: i32 = 10;

/// Lowers the priority of this thread, for good: an ordinary process may not raise it again. Where all of it is refused, the thread stays
/// as it is.
pub fn lower() {
    let before = rustix::process::getpriority_process(None);
    // Sets the policy first, and then the niceness that nothing asks for any more: that fails where it would be raised.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, IDLE);
    // On Linux, "this process" of the calls is this thread. A privileged process would have been raised.
    let Ok(before) = before else { return };
    let niceness = if is_low() { before } else { before.max(NICENESS) };
    if rustix::process::getpriority_process(None).is_ok_and(|now| now < niceness) {
        let _ = rustix::process::setpriority_process(None, niceness);
    }
}

/// Whether this thread runs only where no other one wants the processor.
pub fn is_low() -> bool {
    thread_schedule_policy().is_ok_and(|policy| policy == IDLE)
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
            (is_low(), niceness())
        });
        assert_eq!(lowered.join().unwrap(), (true, before));
        assert_eq!((is_low(), niceness()), (false, before));
    }

    #[test]
    fn a_thread_that_yields_more_already_is_not_raised() {
        let lowered = thread::spawn(|| {
            rustix::process::setpriority_process(None, 19).unwrap();
            lower();
            lower();
            (is_low(), niceness())
        });
        assert_eq!(lowered.join().unwrap(), (true, 19));
    }
}
