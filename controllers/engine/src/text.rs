//! Words that messages share.

/// Names in a list at most.
const LISTED: usize = 3;

/// The first of the names, and how many there are besides: `a, b, c and 2 more`.
pub fn listed(names: &[String]) -> String {
    let first = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(LISTED) {
        Some(more) if more > 0 => format!("{first} and {more} more"),
        _ => first,
    }
}

/// `1 cluster`, `2 clusters`.
pub fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
