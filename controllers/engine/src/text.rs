//! Words that messages share.

/// `1 cluster`, `2 clusters`.
pub fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
