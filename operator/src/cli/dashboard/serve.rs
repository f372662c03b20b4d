//! Answers requests that have the link: pages, their streams, the two assets, and forms.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::sync::watch;

use super::ask::{Ask, List, Missing};
use super::connections::Known;
use super::link::{Link, Way};
use super::look::Looks;
use super::outcome::Outcomes;
use super::pages::deployment::Look;
use super::pages::{clusters, deployment, deployments, failure, reasons};
use super::parts::{DEPLOYMENT, Page, TOP};
use super::view::View;
use super::{decision, live};
use crate::cli::args::is_label;
use crate::cli::hub::Hub;

const STYLE: &str = include_str!("assets/style.css");
const SCRIPT: &str = include_str!("assets/script.js");
const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Headers of every answer: a page runs and loads nothing but its own, is in no frame, is kept nowhere, and leaves no trace of its
/// address with others.
static SECURITY: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The state behind the pages.
pub struct Site {
    pub hub: Arc<Hub>,
    link: Link,
    pub views: watch::Receiver<Arc<View>>,
    pub looks: Looks,
    pub outcomes: Outcomes,
}

/// A page by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Deployments,
    Clusters,
    Deployment(String, String),
    Reasons(String),
}

impl Place {
    /// Reads the path after the secret.
    fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        match parts.as_slice() {
            [""] => Some(Self::Deployments),
            ["clusters"] => Some(Self::Clusters),
            ["deployments", namespace, name] if is_label(namespace) && is_name(name) => {
                Some(Self::Deployment((*namespace).to_owned(), (*name).to_owned()))
            }
            ["reasons", kind] => Some(Self::Reasons((*kind).to_owned())),
            _ => None,
        }
    }

    /// The filters that it has.
    const fn list(&self) -> List {
        match self {
            Self::Deployments => List::Deployments,
            Self::Clusters => List::Clusters,
            Self::Deployment(..) => List::Places,
            Self::Reasons(_) => List::Nothing,
        }
    }

    /// Way to the first page from here.
    const fn root(&self) -> &'static str {
        match self {
            Self::Deployments | Self::Clusters => TOP,
            Self::Deployment(..) => DEPLOYMENT,
            Self::Reasons(_) => super::parts::REASONS,
        }
    }
}

/// True where a text may be the name of an object.
fn is_name(text: &str) -> bool {
    (1..=253).contains(&text.len()) && text.split('.').all(is_label)
}

impl Site {
    /// A site of a hub behind a link.
    pub fn new(hub: Arc<Hub>, link: Link, views: watch::Receiver<Arc<View>>) -> Self {
        Self { hub, link, views, looks: Looks::default(), outcomes: Outcomes::default() }
    }

    /// The newest view.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.views.borrow())
    }

    /// A page of a view. `shown` is the digest that the browser shows, where it may decide on it.
    pub async fn page(
        &self,
        place: &Place,
        view: &View,
        ask: &Ask,
        shown: Option<&str>,
    ) -> (StatusCode, Page) {
        let page = match place {
            Place::Deployments => deployments::page(view, ask),
            Place::Clusters => clusters::page(view, ask),
            Place::Deployment(namespace, name) => match view.deployment(namespace, name) {
                Some(one) => {
                    let more = self.looks.at(&self.hub, one).await;
                    let of = (namespace.clone(), name.clone());
                    let outcome = ask.said.and_then(|number| self.outcomes.get(number, &of));
                    let stale = one.digest().zip(shown).is_some_and(|(digest, shown)| digest != shown);
                    let look = Look { one, more: &more, outcome: outcome.as_ref(), stale };
                    let page = deployment::page(view, ask, &look);
                    // What was not looked at stays so where a browser asks for the stream anew.
                    let plan = shown.filter(|_| stale).map(str::to_owned);
                    page.map(|page| Page { plan: plan.or(page.plan), ..page })
                }
                None => Err(Missing::of(format!("there is no deployment {namespace}/{name}"))),
            },
            Place::Reasons(kind) => {
                reasons::page(kind).ok_or_else(|| Missing::of(format!("there are no reasons of kind {kind}")))
            }
        };
        match page {
            Ok(page) => (StatusCode::OK, page),
            Err(why) => {
                // A reader beyond the end is led back to it.
                let last = why.last.map(|last| (ask.at(last), "Last page"));
                (StatusCode::NOT_FOUND, failure::page(view, place.root(), &why.said, last.as_ref()))
            }
        }
    }
}

/// Answers one request.
pub async fn answer(site: Arc<Site>, request: Request<Incoming>, known: Known) -> Response<Body> {
    let mut response = match site.link.admit(request.method(), request.uri(), request.headers()) {
        Err(refused) => text(refused.status, TEXT, refused.said.to_owned()),
        Ok(way) => {
            known.store(true, Ordering::Relaxed);
            match way {
                Way::Slash => see_other(&site.link.root()),
                Way::In(path) => route(&site, &path, request).await,
            }
        }
    };
    for (name, value) in &SECURITY {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn route(site: &Arc<Site>, path: &str, request: Request<Incoming>) -> Response<Body> {
    let packed = takes_gzip(request.headers());
    if request.method() == Method::POST {
        return match Place::of(path) {
            Some(Place::Deployment(namespace, name)) => {
                decision::take(site, (namespace, name), request.map(Body::new)).await
            }
            _ => text(StatusCode::METHOD_NOT_ALLOWED, TEXT, "nothing is sent here".to_owned()),
        };
    }
    let (status, kind, content) = match path {
        "style.css" => (StatusCode::OK, "text/css; charset=utf-8", STYLE.to_owned()),
        "script.js" => (StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT.to_owned()),
        _ => {
            let view = site.view();
            let Some(place) = Place::of(path) else {
                // Links are relative to the depth of the address.
                let root = match path.matches('/').count() {
                    0 => TOP,
                    1 => super::parts::REASONS,
                    _ => DEPLOYMENT,
                };
                let page = failure::page(&view, root, "there is no page with this address", None);
                return html(StatusCode::NOT_FOUND, &page, &view, packed);
            };
            let ask = match Ask::read(place.list(), request.uri().query().unwrap_or_default()) {
                Ok(ask) => ask,
                Err(why) => {
                    let all = ("?".to_owned(), "Show all");
                    let page = failure::page(&view, place.root(), &why, Some(&all));
                    return html(StatusCode::BAD_REQUEST, &page, &view, packed);
                }
            };
            if ask.live.is_some() {
                return live::stream(Arc::clone(site), place, ask);
            }
            let (status, page) = site.page(&place, &view, &ask, None).await;
            return html(status, &page, &view, packed);
        }
    };
    packable(status, kind, content, packed)
}

fn html(status: StatusCode, page: &Page, view: &View, packed: bool) -> Response<Body> {
    packable(status, HTML, page.document(view).into_string(), packed)
}

/// True where the browser reads gzip.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().split(',').any(|one| one.trim() == "gzip")
}

fn packable(status: StatusCode, kind: &'static str, content: String, packed: bool) -> Response<Body> {
    if !packed {
        return text(status, kind, content);
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(content.len() / 4), Compression::fast());
    // Memory takes all that is written.
    let Ok(bytes) = encoder.write_all(content.as_bytes()).and_then(|()| encoder.finish()) else {
        return text(status, kind, content);
    };
    let mut response = respond(status, kind, Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

/// An answer of some text.
pub fn text(status: StatusCode, kind: &'static str, content: String) -> Response<Body> {
    respond(status, kind, Body::from(content))
}

/// A short answer that is no page.
pub fn plain(status: StatusCode, content: &str) -> Response<Body> {
    text(status, TEXT, content.to_owned())
}

/// An answer of a kind.
pub fn respond(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Sends the browser to another page.
pub fn see_other(to: &str) -> Response<Body> {
    let mut response = plain(StatusCode::SEE_OTHER, "");
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

#[cfg(test)]
mod tests;
