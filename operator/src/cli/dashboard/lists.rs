//! Makes what lists have in common: filters, and the way to the next rows.

use maud::{Markup, html};

use super::ask::{Ask, List, ROWS};
use super::parts::number;
use crate::cli::output::printable;

/// The filters of a list, as a form; no script is needed to use it.
pub fn filter(list: List, ask: &Ask, names: &[(&str, &str)]) -> Markup {
    html! {
        form.filter role="search" aria-label={ "Filter " (list.rows()) } method="get" {
            @for (name, label) in names {
                @let words = list.words(name);
                p {
                    label for={ "f-" (name) } { (label) }
                    @if words.is_empty() {
                        input #{ "f-" (name) } name=(name) type="text" maxlength="253" autocomplete="off"
                            spellcheck="false" value=(printable(ask.get(name).unwrap_or_default()));
                    } @else {
                        select #{ "f-" (name) } name=(name) {
                            option value="" { "any" }
                            @for word in words {
                                option value=(word) selected[ask.get(name) == Some(word)] { (word) }
                            }
                        }
                    }
                }
            }
            p.act {
                button type="submit" { "Filter" }
                @if !ask.is_all() { a href="?" { "Show all" } }
            }
        }
    }
}

/// The range of rows that is shown, and links to others; nothing where all are. `place` is the part of the page that they are in.
pub fn pages(list: List, ask: &Ask, total: usize, place: &str) -> Markup {
    let (first, last) = ((ask.page - 1) * ROWS + 1, total.min(ask.page * ROWS));
    html! {
        @if total > ROWS {
            nav.pages aria-label={ "Pages of " (list.rows()) } {
                @if ask.page > 1 { a rel="prev" href={ (ask.at(ask.page - 1)) (place) } { "Previous" } }
                span { (number(first)) "-" (number(last)) " of " (number(total)) }
                @if last < total { a rel="next" href={ (ask.at(ask.page + 1)) (place) } { "Next" } }
            }
        }
    }
}
