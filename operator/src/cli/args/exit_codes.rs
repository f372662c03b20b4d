//! Says how commands end, at the end of their help.

/// What is said of commands that have no codes of their own.
pub const EXIT_CODES: &str = "Exit codes: 0 everything is as wanted, 1 an error, 2 a command line that cannot be understood, 3 \
                              something is not as wanted (not ready, differing, orphaned, unknown).";

/// What is said of commands that only print something.
pub const PRINTED_EXIT_CODES: &str =
    "Exit codes: 0 it was printed, 1 an error, 2 a command line that cannot be understood.";

/// What is said of commands that become kubectl.
pub const KUBECTL_EXIT_CODES: &str = "Exit codes: those of kubectl, which runs in the place of this program; before it does, 1 an error, \
                                      2 a command line that cannot be understood.";

/// What is said at the end of the help of `plan`.
pub const PLAN_EXIT_CODES: &str = "Exit codes: 0 nothing would change, 1 an error, 2 something would change (and a command line that cannot \
                                   be understood), 4 the change is refused, or a cluster would refuse it (with -f, no cluster is asked).";

/// What is said at the end of the help of `digest`.
pub const DIGEST_EXIT_CODES: &str = "Exit codes: 0 every deployment has its digest, 1 an error, 2 a command line that cannot be understood, \
                                     3 something is missing, which is named.";

/// What is said at the end of the help of `wait`.
pub const WAIT_EXIT_CODES: &str = "Exit codes: 0 it is so, 1 it cannot come (the change is refused, or clusters failed) or an error (there is \
                                   no such deployment, or it was deleted meanwhile), 2 a command line that cannot be understood, 3 it was \
                                   not so before the time was over.";

/// Said at the end of the help of `explain`.
pub const EXPLAIN_EXIT_CODES: &str = "Exit codes: 0 it was explained, 1 an error, 2 a command line that cannot be understood, 4 the last change \
                                      is refused: why is said first, then what runs is explained.";

/// What is said at the end of the help of `dashboard`.
pub const DASHBOARD_EXIT_CODES: &str =
    "Exit codes: 0 it was ended by Ctrl-C, 1 an error, 2 a command line that cannot be understood.";
