//! Proves that something is not on a cluster. What removes, forgets or completes asks for an [`Absent`], and only this module
//! makes one (`docs/decisions/proof-of-absence.md`).

use std::collections::BTreeSet;

use emco_engine::apis::ApiResource;
use emco_engine::identity::Identity;
use emco_engine::path::ApiPath;
use serde_json::Value;

use super::definitions::{self, group_of, was_established};
use super::edge::{Edge, Session};
use super::errors::{Retry, Trouble};
use super::observe::{Look, Seen};
use crate::api::{ApiError, ApiResult, Method, Request};

/// Objects per page: their names are short.
const PAGE: &str = "500";

/// Proof that a cluster does not have an object of ours, or any object of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Absent(());

/// Proof that a cluster serves every kind that is defined there: what no list of a served kind shows is nowhere.
#[derive(Clone, Copy, Debug)]
pub struct AllServed(());

/// Objects that are not there any more, or are not ours to remove.
#[derive(Debug, Default)]
pub struct Gone(BTreeSet<Identity>);

impl Gone {
    /// Records a proof.
    pub fn insert(&mut self, id: Identity, _: Absent) {
        self.0.insert(id);
    }

    /// Records an object that stays: released, or wanted under another name of its kind.
    pub fn stays(&mut self, id: Identity) {
        self.0.insert(id);
    }

    pub fn contains(&self, id: &Identity) -> bool {
        self.0.contains(id)
    }

    pub fn remove(&mut self, id: &Identity) {
        self.0.remove(id);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Absent {
    /// The server answers that it has no object of this name.
    pub fn of_answer(error: &ApiError, name: &str) -> Option<Self> {
        error.lacks(name).then_some(Self(()))
    }

    /// The kind was listed completely, and the watch since then does not show the object.
    pub const fn of_watch(look: &Look) -> Option<Self> {
        match look {
            Look::Absent => Some(Self(())),
            Look::There(_) | Look::Unknown => None,
        }
    }

    /// The object of this name belongs to another owner.
    pub fn of_others(seen: &Seen, owner: &str) -> Option<Self> {
        (seen.owner.as_deref() != Some(owner)).then_some(Self(()))
    }
}

/// Proves that a cluster has no objects of a kind: no definition makes it, and no other server answers for its group.
///
/// # Errors
/// The kind is defined, its server does not answer, or these credentials may not see definitions: nothing is known.
pub async fn kind(edge: &Edge, session: &Session, group: &str, kind: &str) -> Result<Absent, Trouble> {
    let asker = Asker { edge, session, about: Some(of(group, kind)) };
    // What discovery still lists is asked for again: a proxy may answer 404 for a server that is not there.
    if let Some(resource) = session.apis.preferred(group, kind)
        && asker.serves(&resource.group, &resource.version, kind).await?
    {
        let text = format!("the cluster serves {}, and answers 404 for its objects", of(group, kind));
        return Err(missing(&text));
    }
    for service in asker.names(SERVICES).await?.iter().filter(|name| group_of(name) == group) {
        if asker.is_aggregated(service).await? {
            let version = service.split('.').next().unwrap_or_default();
            if asker.serves(group, version, kind).await? {
                edge.refresh_apis();
                return Err(missing(&format!("the cluster serves {} again", of(group, kind))));
            }
        }
    }
    let defined = asker.names(DEFINITIONS).await?;
    for name in defined.iter().filter(|name| !group.is_empty() && group_of(name) == group) {
        let Some(definition) = asker.object(DEFINITIONS, name).await? else { continue };
        let defines = definition.pointer("/spec/names/kind").and_then(Value::as_str) == Some(kind);
        if defines && was_established(&definition) {
            edge.refresh_apis();
            return Err(missing(&unserved(name)));
        }
    }
    Ok(Absent(()))
}

/// Proves that every kind that the cluster defines is among those that it serves.
///
/// # Errors
/// One is not, or these credentials may not see definitions.
pub async fn all_served(edge: &Edge, session: &Session) -> Result<AllServed, Trouble> {
    let asker = Asker { edge, session, about: None };
    let served = |test: &dyn Fn(&ApiResource) -> bool| session.apis.resources.iter().any(test);
    for service in &asker.names(SERVICES).await? {
        let (version, group) = service.split_once('.').unwrap_or((service, ""));
        if served(&|r| r.group == group && r.version == version) || !asker.is_aggregated(service).await? {
            continue;
        }
        if asker.serves_anything(group, version).await? {
            edge.refresh_apis();
            return Err(missing(&format!("the API {group}/{version} is served, and was not a moment ago")));
        }
    }
    for name in &asker.names(DEFINITIONS).await? {
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        if served(&|r| r.group == group && r.plural == plural) {
            continue;
        }
        if asker.object(DEFINITIONS, name).await?.is_some_and(|definition| was_established(&definition)) {
            edge.refresh_apis();
            return Err(missing(&unserved(name)));
        }
    }
    Ok(AllServed(()))
}

/// A collection of definitions: of kinds, or of servers for groups.
#[derive(Clone, Copy)]
struct Collection {
    path: &'static str,
    /// As rights name it.
    resource: &'static str,
}

const DEFINITIONS: Collection = Collection {
    path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    resource: "customresourcedefinitions.apiextensions.k8s.io",
};
const SERVICES: Collection = Collection {
    path: "/apis/apiregistration.k8s.io/v1/apiservices",
    resource: "apiservices.apiregistration.k8s.io",
};

/// Asks one cluster, and knows what for.
struct Asker<'a> {
    edge: &'a Edge,
    session: &'a Session,
    about: Option<String>,
}

impl Asker<'_> {
    async fn get(&self, request: Request) -> ApiResult<Value> {
        self.session.send(self.edge, request).await
    }

    fn trouble(&self, collection: Collection, error: &ApiError) -> Trouble {
        let what = match &self.about {
            Some(kind) => format!("objects of {kind} are left, which the cluster does not serve now"),
            None => "any kind is missing from what the cluster serves".to_owned(),
        };
        match error.code() {
            401 | 403 => {
                let text = format!(
                    "whether {what}, cannot be seen: grant the credentials get and list of {}",
                    collection.resource
                );
                Trouble::new("Forbidden", &text, Retry::Slowly)
            }
            404 => missing(&format!("whether {what}, cannot be seen: {}", collection.resource)),
            _ => Trouble::of_request(error),
        }
    }

    /// Names of all objects of a collection.
    async fn names(&self, of: Collection) -> Result<Vec<String>, Trouble> {
        let mut names = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let mut request = Request::new(Method::Get, of.path).metadata().query("limit", PAGE);
            if let Some(next) = next.take() {
                request = request.query("continue", next);
            }
            let page = self.get(request).await.map_err(|error| self.trouble(of, &error))?;
            let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let name = |item: &Value| item.pointer("/metadata/name")?.as_str().map(str::to_owned);
            names.extend(items.iter().filter_map(name));
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => next = Some(token.to_owned()),
                _ => return Ok(names),
            }
        }
    }

    /// One of them; `None` when it went meanwhile.
    async fn object(&self, of: Collection, name: &str) -> Result<Option<Value>, Trouble> {
        match self.get(Request::new(Method::Get, ApiPath::new(of.path).then(name))).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if Absent::of_answer(&error, name).is_some() => Ok(None),
            Err(error) => Err(self.trouble(of, &error)),
        }
    }

    /// Whether another server answers for a version of a group; an error while that one is down.
    async fn is_aggregated(&self, service: &str) -> Result<bool, Trouble> {
        let Some(object) = self.object(SERVICES, service).await? else { return Ok(false) };
        if !definitions::is_aggregated(&object) {
            return Ok(false);
        }
        if definitions::is_available(&object) {
            return Ok(true);
        }
        Err(missing(&definitions::unavailable(service)))
    }

    /// Kinds of a version of a group, as its own server says now.
    async fn kinds(&self, group: &str, version: &str) -> Result<Vec<String>, Trouble> {
        let path = if group.is_empty() {
            ApiPath::new("/api").then(version)
        } else {
            ApiPath::new("/apis").then(group).then(version)
        };
        let answer = match self.get(Request::new(Method::Get, path)).await {
            Ok(answer) => answer,
            Err(error) if error.code() == 404 => return Ok(Vec::new()),
            Err(error) => return Err(Trouble::of_request(&error)),
        };
        let Some(items) = answer.get("resources").and_then(Value::as_array) else {
            return Err(missing(&format!("the API {group}/{version} does not say what it serves")));
        };
        let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
        let whole = items.iter().filter(|item| text(item, "name").is_some_and(|name| !name.contains('/')));
        Ok(whole.filter_map(|item| text(item, "kind")).collect())
    }

    async fn serves(&self, group: &str, version: &str, kind: &str) -> Result<bool, Trouble> {
        Ok(self.kinds(group, version).await?.iter().any(|served| served == kind))
    }

    async fn serves_anything(&self, group: &str, version: &str) -> Result<bool, Trouble> {
        Ok(!self.kinds(group, version).await?.is_empty())
    }
}

fn of(group: &str, kind: &str) -> String {
    if group.is_empty() { format!("kind {kind}") } else { format!("kind {kind} of {group}") }
}

fn unserved(name: &str) -> String {
    format!("{}: waiting", definitions::unserved(name))
}

fn missing(text: &str) -> Trouble {
    Trouble::new("KindMissing", text, Retry::Soon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::withheld::Subject;

    fn answer(code: u16, message: &str) -> ApiError {
        let (reason, causes) = ("NotFound".to_owned(), Vec::new());
        ApiError::Status { code, reason, message: message.to_owned(), retry_after: None, causes }
    }

    #[test]
    fn a_404_of_a_secret_proves_its_absence_with_its_words_withheld() {
        let path = ApiPath::core("shop", "secrets").then("w");
        let subject = Subject::of(&path);
        for (message, proves) in [
            ("secrets \"w\" not found", true),
            ("secrets \"other\" not found", false),
            ("the server could not find the requested resource", false),
        ] {
            let withheld = Subject::withhold::<()>(subject.as_ref(), Err(answer(404, message))).unwrap_err();
            assert_eq!(Absent::of_answer(&withheld, "w").is_some(), proves, "{message}: {withheld}");
        }
    }

    #[test]
    fn only_an_answer_that_names_the_object_proves_its_absence() {
        for (code, message, proves) in [
            (404, "widgets.example.com \"w\" not found", true),
            (404, "configmaps \"w\" not found", true),
            (404, "configmaps \"other\" not found", false),
            (404, "the server could not find the requested resource", false),
            (404, "404 page not found", false),
            (404, "", false),
            (403, "widgets.example.com \"w\" not found", false),
            (503, "service unavailable", false),
        ] {
            assert_eq!(Absent::of_answer(&answer(code, message), "w").is_some(), proves, "{code} {message}");
        }
    }
}
