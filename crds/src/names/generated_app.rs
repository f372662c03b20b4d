//! Names of generated apps: what an intent adds to no chart is an app of its own.

/// Stands between the short name of a kind and the name of the intent. No app of a composite application has it in its name.
const DOT: char = '.';

/// The generated app of an intent, from the short name of its kind and its own: `gai.banner`.
pub fn name(short: &str, intent: &str) -> String {
    format!("{short}{DOT}{intent}")
}

/// Whether an intent makes the app. It has no chart, no hooks, no tests and no values.
pub fn is(app: &str) -> bool {
    app.contains(DOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_fits_where_apps_are_stored_and_reported() {
        let longest = name("gai", &"x".repeat(53));
        assert!(longest.len() <= 63 && is(&longest) && !is("web"));
    }
}
