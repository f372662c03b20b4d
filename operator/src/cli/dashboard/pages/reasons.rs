//! Shows what the reasons of a kind mean and what helps: the troubleshooting page of the book, which this program carries with it.

use maud::html;

use super::super::book;
use super::super::parts::{Page, REASONS, prose};

/// All reasons of a kind; `None` where the book has none.
pub fn page(kind: &str) -> Option<Page> {
    let reasons = book::reasons(kind);
    if reasons.is_empty() {
        return None;
    }
    let body = html! {
        h1 { "Reasons of " (kind) }
        div.wide role="region" aria-label="Table of reasons" tabindex="0" {
            table #reasons {
                thead {
                    tr { th scope="col" { "Reason" } th scope="col" { "What it means" } th scope="col" { "What to do" } }
                }
                tbody {
                    @for reason in &reasons {
                        tr #(reason.name) {
                            th scope="row" { code { (reason.name) } }
                            td.prose { (prose(reason.meaning)) }
                            td.prose { (prose(reason.cure)) }
                        }
                    }
                }
            }
        }
    };
    let title = format!("Reasons of {kind}");
    Some(Page { kind: "reasons", title, root: REASONS, news: String::new(), plan: None, body })
}
