//! Makes what pages have in common: the frame, banners, chips, reasons and times.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{DOCTYPE, Markup, html};
use sha2::{Digest as _, Sha256};

use super::book;
use super::view::View;
use crate::cli::args::status::Verdict;
use crate::cli::output::printable;

/// Way to the first page from a page of the first level.
pub const TOP: &str = "./";
/// The way from the page of a deployment.
pub const DEPLOYMENT: &str = "../../";
/// The way from a page of reasons.
pub const REASONS: &str = "../";

/// A page: what is swapped when something changes, and what says which it is.
pub struct Page {
    /// In a word, for the script and for tests.
    pub kind: &'static str,
    pub title: String,
    /// Way to the first page from here.
    pub root: &'static str,
    /// Text that is read out when it changed.
    pub news: String,
    /// Digest of the plan that it shows.
    pub plan: Option<String>,
    pub body: Markup,
}

impl Page {
    /// Digest of what is shown: pages that say the same have the same.
    pub fn seen(&self) -> String {
        let digest = Sha256::digest(self.body.0.as_bytes());
        URL_SAFE_NO_PAD.encode(digest.iter().take(12).copied().collect::<Vec<u8>>())
    }

    /// The part that is swapped.
    pub fn main(&self) -> Markup {
        html! {
            main #main tabindex="-1" data-page=(self.kind) data-seen=(self.seen())
                data-plan=(self.plan.as_deref().unwrap_or_default()) data-news=(self.news) {
                (self.body)
            }
        }
    }

    /// All of it.
    pub fn document(&self, view: &View) -> Markup {
        let Self { root, kind, .. } = self;
        let current = |page: &str| (*kind == page).then_some("page");
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (printable(&self.title)) " · EMCO" }
                    link rel="stylesheet" href={ (root) "style.css" };
                    script src={ (root) "script.js" } defer {}
                }
                body {
                    a.skip href="#main" { "Skip to content" }
                    header {
                        p.brand { "EMCO" }
                        nav aria-label="Pages" {
                            a href=(root) aria-current=[current("deployments")] { "Deployments" }
                            a href={ (root) "clusters" } aria-current=[current("clusters")] { "Clusters" }
                        }
                        p #scope {
                            @match &view.namespace {
                                Some(namespace) => { "namespace " strong { (said(namespace)) } },
                                None => "all namespaces",
                            }
                            " of " span.hub { (said(&view.hub)) }
                        }
                        noscript { a #reload href="" { "Reload" } }
                    }
                    p #lost role="alert" hidden {}
                    p #news .quiet role="status" {}
                    (self.main())
                }
            }
        }
    }
}

/// Warnings that make all of it doubtful.
pub fn banners(view: &View) -> Markup {
    html! {
        @if let Some(why) = &view.refused { p #trouble .banner.bad role="alert" { (said(why)) } }
        @else if let Some(why) = &view.trouble {
            p #trouble .banner.bad role="alert" { (said(why)) "; what is shown is what it last said." }
        }
        @if !view.pulse.message.is_empty() {
            p #pulse .banner.bad[!view.pulse.is_trusted()] role="alert" { (said(&view.pulse.message)) }
        }
        @if let Some(note) = &view.note { p #note .banner { (said(note)) } }
    }
}

/// A text that others have a say in: it stays a text, and its direction stays its own.
pub fn said(text: &str) -> Markup {
    html! { bdi { (printable(text)) } }
}

/// The beginning of a text.
pub fn short(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// State of something: each has a colour and a shape, and the word beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Busy,
    Bad,
    Unknown,
    Waits,
}

impl Tone {
    const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Bad => "bad",
            Self::Unknown => "unknown",
            Self::Waits => "waits",
        }
    }

    const fn shape(self) -> &'static str {
        match self {
            Self::Good => "●",
            Self::Busy => "◐",
            Self::Bad => "▲",
            Self::Unknown => "○",
            Self::Waits => "◆",
        }
    }

    /// That of a condition's status.
    pub fn of_status(status: &str) -> Self {
        match status {
            "True" => Self::Good,
            "False" => Self::Bad,
            _ => Self::Unknown,
        }
    }
}

impl From<Verdict> for Tone {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Ready => Self::Good,
            Verdict::Progressing | Verdict::Removing => Self::Busy,
            Verdict::Failed | Verdict::Unreachable => Self::Bad,
            Verdict::Unknown => Self::Unknown,
        }
    }
}

/// A word with its shape and colour.
pub fn chip(word: &str, tone: Tone) -> Markup {
    html! {
        span.chip data-state=(printable(word)) data-tone=(tone.word()) {
            span aria-hidden="true" { (tone.shape()) " " } (printable(word))
        }
    }
}

/// A reason with the way to what helps against it.
pub fn reason(root: &str, kind: Option<&str>, name: &str) -> Markup {
    let name = printable(name);
    html! {
        @match kind.filter(|kind| book::reason(kind, &name).is_some()) {
            Some(kind) => a.cure href={ (root) "reasons/" (kind) "#" (name) } { (name) },
            None => span.cure { (name) },
        }
    }
}

/// Words of the book, with its code.
pub fn prose(text: &str) -> Markup {
    html! {
        @for (is_code, part) in book::pieces(text) {
            @if is_code { code { (part) } } @else { (part) }
        }
    }
}

/// A moment, as RFC 3339 has it.
pub fn time(moment: &str) -> Markup {
    let plain = moment.replacen('T', " ", 1).replacen('Z', " UTC", 1);
    html! { time datetime=(moment) { (plain) } }
}

/// A number that is read at a glance.
pub fn number(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_and_texts_are_cut_between_characters() {
        let numbers = [0, 999, 1000, 10_000, 1_234_567].map(number);
        assert_eq!(numbers, ["0", "999", "1,000", "10,000", "1,234,567"]);
        assert_eq!((short("übel", 1), short("übel", 4)), (Cow::from("ü…"), Cow::from("übel")));
    }

    #[test]
    fn markup_in_a_text_stays_a_text() {
        let bad = "<img src=x onerror=alert(1)>\"'&\u{1b}[31m";
        let text = said(bad).into_string();
        assert_eq!(text, "<bdi>&lt;img src=x onerror=alert(1)&gt;&quot;'&amp;\u{fffd}[31m</bdi>");
        for markup in [chip(bad, Tone::Bad), reason(TOP, Some("Cluster"), bad), time(bad), prose(bad)] {
            let text = markup.into_string();
            assert!(!text.contains("<img") && !text.contains("\"'"), "{text}");
        }
    }

    #[test]
    fn a_reason_that_the_book_knows_is_a_link_and_another_is_not() {
        let cluster = reason(DEPLOYMENT, Some("Cluster"), "NoClusterProvider").into_string();
        assert!(cluster.contains("../../reasons/Cluster#NoClusterProvider"), "{cluster}");
        let row = reason(TOP, Some("SyncShard"), "Unreachable").into_string();
        assert_eq!(row, r#"<a class="cure" href="./reasons/SyncShard#Unreachable">Unreachable</a>"#);
        assert_eq!(reason(TOP, None, "Odd").into_string(), r#"<span class="cure">Odd</span>"#);
    }

    #[test]
    fn moments_are_absolute() {
        let markup = time("2026-11-21T07:00:00Z").into_string();
        assert_eq!(markup, r#"<time datetime="2026-11-21T07:00:00Z">2026-11-21 07:00:00 UTC</time>"#);
    }
}
