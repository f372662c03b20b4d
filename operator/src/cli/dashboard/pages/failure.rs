//! Says why there is nothing to show.

use maud::html;

use super::super::parts::{Page, banners, said};
use super::super::view::View;

/// A page with a sentence, and a way on.
pub fn page(view: &View, root: &'static str, why: &str, way: Option<&(String, &'static str)>) -> Page {
    let body = html! {
        (banners(view))
        h1 { "There is nothing to show" }
        p #error .banner.bad { (said(why)) }
        p {
            @if let Some((to, words)) = way { a href=(to) { (words) } " · " }
            a href=(root) { "All deployments" }
        }
    };
    Page { kind: "error", title: "Error".to_owned(), root, news: why.to_owned(), plan: None, body }
}
