//! Reads and writes which hub a cluster belongs to. A cluster belongs to the hub that wrote its installation id into
//! ConfigMap `hub` of namespace `emco-system` there: two hubs never work on one cluster without somebody having said
//! so.

use emco_engine::identity::ClusterId;
use serde_json::{Value, json};

use crate::api::{ApiError, ApiResult, ApiServer, Content, Method, Request};

/// Where it is, on every cluster.
pub const NAMESPACE: &str = "emco-system";
const NAMESPACES: &str = "/api/v1/namespaces";
const MAPS: &str = "/api/v1/namespaces/emco-system/configmaps";
const CLAIM: &str = "/api/v1/namespaces/emco-system/configmaps/hub";
/// The name of the ConfigMap.
const MAP: &str = "hub";

/// What a cluster says of its hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// Not read.
    #[default]
    Unknown,
    /// It belongs to nobody.
    Absent,
    /// It belongs to this installation.
    Held {
        /// Its id.
        installation: String,
        /// Since when.
        since: String,
        /// How far the hub's store had come when it last worked here: a resourceVersion of the hub; 0 = not told.
        seen: u64,
    },
    /// The credentials do not allow to read it: the server's words.
    Unreadable(String),
}

impl Claim {
    /// Whether this installation claimed the cluster before it was registered as it is now. Who lets go of a cluster in good
    /// order gives its claim back.
    pub fn precedes(&self, ours: &str, registered: Option<jiff::Timestamp>) -> bool {
        let Self::Held { installation, since, seen: _ } = self else { return false };
        let since = since.parse::<jiff::Timestamp>().ok();
        installation == ours
            && since.zip(registered).is_some_and(|(claimed, registered)| claimed < registered)
    }
}

/// Reads it. Only what may pass by itself is an error.
pub async fn read(server: &dyn ApiServer) -> ApiResult<Claim> {
    Ok(read_at(server).await?.0)
}

/// Reads it, with the resourceVersion that it was written at; 0 = it is not there, or may not be read.
pub async fn read_at(server: &dyn ApiServer) -> ApiResult<(Claim, u64)> {
    match server.send(Request::new(Method::Get, CLAIM)).await {
        Ok(object) => Ok((of(&object), written_at(&object))),
        Err(error) if error.lacks(MAP) => Ok((Claim::Absent, 0)),
        Err(error) if error.is_not_found() => Err(unproven(&error)),
        Err(ApiError::Status { code: 401 | 403, message, .. }) => Ok((Claim::Unreadable(message), 0)),
        Err(error) => Err(error),
    }
}

fn unproven(error: &ApiError) -> ApiError {
    let words = super::wire::cut(&error.to_string(), 96);
    super::wire::protocol(&format!(
        "ConfigMap {NAMESPACE}/{MAP}, which tells whose hub the cluster is, is answered 404 without its name: check that the address leads to the API server itself ({words})"
    ))
}

/// The resourceVersion of its ConfigMap; 0 = none.
pub fn written_at(object: &Value) -> u64 {
    let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn of(object: &Value) -> Claim {
    let text =
        |key: &str| object.pointer(&format!("/data/{key}")).and_then(Value::as_str).unwrap_or_default();
    match text("installation") {
        "" => Claim::Absent,
        installation => Claim::Held {
            installation: super::wire::cut(installation, 128),
            since: super::wire::cut(text("since"), 64),
            seen: text("seen").parse().unwrap_or_default(),
        },
    }
}

/// What confirms that a cluster is taken over from exactly this claim: the installation and since when it holds the cluster. A
/// confirmation of an earlier claim confirms nothing later.
pub fn confirmation(installation: &str, since: &str) -> String {
    [installation, since].map(shell_safe).join("@")
}

/// An edge's words for a command that a person runs in a shell: each character that means something there becomes `_`.
pub fn shell_safe(words: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-.:+".contains(c) { c } else { '_' };
    words.chars().map(plain).collect()
}

/// What is said of a cluster of another installation.
pub fn refusal(cluster: &ClusterId, claim: &Claim) -> String {
    let (installation, since) = match claim {
        Claim::Held { installation, since, seen: _ } => (installation.as_str(), since.as_str()),
        _ => ("", ""),
    };
    format!(
        "cluster {cluster} belongs to another EMCO hub (installation {installation}, since {since}): nothing is applied or removed there. Delete it from that hub first."
    )
}

/// The request that writes how far the hub's store has come.
pub fn note(seen: u64) -> Request {
    Request::new(Method::Patch, CLAIM).body(Content::Merge, &json!({"data": {"seen": seen.to_string()}}))
}

/// Writes it, where it still is as `before` says, as if nothing had been done there yet.
pub async fn take(server: &dyn ApiServer, before: &Claim, installation: &str, since: &str) -> ApiResult<()> {
    let data = json!({"installation": installation, "since": since});
    let made = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MAP, "namespace": NAMESPACE}, "data": data});
    let post = |path: &'static str, body: &Value| Request::new(Method::Post, path).body(Content::Json, body);
    if *before == Claim::Absent {
        match server.send(post(MAPS, &made)).await {
            // Without its namespace, or with a map that says nothing.
            Err(error) if error.lacks(NAMESPACE) => {
                let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
                match server.send(post(NAMESPACES, &space)).await {
                    Err(error) if !error.already_exists() => return Err(error),
                    _ => {}
                }
                server.send(post(MAPS, &made)).await?;
                return Ok(());
            }
            Err(error) if error.already_exists() => {}
            other => return other.map(drop),
        }
    }
    let live = server.send(Request::new(Method::Get, CLAIM)).await?;
    let now = of(&live);
    // Claimed by ourselves a moment ago, which nobody has read yet.
    if *before == Claim::Absent
        && matches!(&now, Claim::Held { installation: holder, .. } if holder == installation)
    {
        return Ok(());
    }
    if now != *before {
        return Err(ApiError::Protocol("the claim changed meanwhile".to_owned()));
    }
    let mut fresh = live;
    if let Some(map) = fresh.as_object_mut() {
        map.insert("data".to_owned(), data);
    }
    // With the resourceVersion that was read: who was faster wins.
    server.send(Request::new(Method::Put, CLAIM).body(Content::Json, &fresh)).await.map(drop)
}

/// Takes it off, if it is this installation's.
pub async fn give_back(server: &dyn ApiServer, installation: &str) -> ApiResult<()> {
    let live = match server.send(Request::new(Method::Get, CLAIM)).await {
        Err(error) if error.lacks(MAP) => return Ok(()),
        Err(error) if error.is_not_found() => return Err(unproven(&error)),
        other => other?,
    };
    if !matches!(of(&live), Claim::Held { installation: holder, .. } if holder == installation) {
        return Ok(());
    }
    let metadata = live.get("metadata").cloned().unwrap_or_default();
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {
        "uid": metadata.get("uid"), "resourceVersion": metadata.get("resourceVersion")}});
    match server.send(Request::new(Method::Delete, CLAIM).body(Content::Json, &options)).await {
        Err(error) if !error.lacks(MAP) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryServer;

    fn held(installation: &str) -> Claim {
        Claim::Held { installation: installation.to_owned(), since: "now".to_owned(), seen: 0 }
    }

    #[tokio::test]
    async fn a_cluster_is_claimed_once_and_only_its_holder_lets_go_of_it() {
        let edge = MemoryServer::new();
        assert_eq!(read(&edge).await.unwrap(), Claim::Absent);
        take(&edge, &Claim::Absent, "one", "now").await.unwrap();
        assert_eq!(read(&edge).await.unwrap(), held("one"));
        take(&edge, &Claim::Absent, "one", "later").await.unwrap();
        assert_eq!(read(&edge).await.unwrap(), held("one"), "twice is once");
        assert!(take(&edge, &Claim::Absent, "two", "now").await.is_err(), "it is taken");
        give_back(&edge, "two").await.unwrap();
        assert_eq!(read(&edge).await.unwrap(), held("one"));
        edge.send(note(7)).await.unwrap();
        let marked = read(&edge).await.unwrap();
        assert!(matches!(marked, Claim::Held { seen: 7, .. }), "{marked:?}");
        assert!(take(&edge, &held("one"), "two", "now").await.is_err(), "it changed meanwhile");
        take(&edge, &marked, "two", "now").await.unwrap();
        assert_eq!(read(&edge).await.unwrap(), held("two"));
        give_back(&edge, "two").await.unwrap();
        give_back(&edge, "two").await.unwrap();
        assert_eq!(read(&edge).await.unwrap(), Claim::Absent);
    }

    /// Answers 404 as what is no whole API server does: it names no object.
    #[derive(Clone, Copy)]
    struct Elsewhere(&'static str);

    #[async_trait::async_trait]
    impl ApiServer for Elsewhere {
        async fn send(&self, request: Request) -> ApiResult<Value> {
            assert_eq!(request.method, Method::Get, "nothing is written there");
            Err(ApiError::Status {
                code: 404,
                reason: "NotFound".to_owned(),
                message: self.0.to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        }

        async fn watch(
            &self,
            _: Request,
        ) -> ApiResult<futures::stream::BoxStream<'static, ApiResult<crate::api::WatchEvent>>> {
            unreachable!("nobody watches a claim")
        }
    }

    #[tokio::test]
    async fn a_404_that_does_not_name_the_claim_is_no_free_cluster() {
        for words in [
            "the server could not find the requested resource",
            "localhost:443 does not serve this path",
            "configmaps \"other\" not found",
            "",
        ] {
            let error = read(&Elsewhere(words)).await.expect_err(words);
            assert!(error.to_string().contains("ConfigMap emco-system/hub"), "{error}");
            assert!(give_back(&Elsewhere(words), "one").await.is_err(), "{words}");
        }
        assert_eq!(read(&Elsewhere("configmaps \"hub\" not found")).await.unwrap(), Claim::Absent);
    }

    #[test]
    fn a_confirmation_is_safe_in_a_shell_and_names_one_claim() {
        assert_eq!(confirmation("a-1", "2026-03-01T11:59:59.5Z"), "a-1@2026-03-01T11:59:59.5Z");
        assert_ne!(confirmation("a", "2026-03-01T11:59:59Z"), confirmation("a", "2026-03-01T12:00:00Z"));
        assert_eq!(confirmation("$(rm -rf /)", "`x`;\n'y'"), "__rm_-rf___@_x____y_");
    }

    #[test]
    fn a_claim_of_ours_that_is_older_than_the_registration_tells_of_a_past() {
        let claim = |installation: &str, since: &str| Claim::Held {
            installation: installation.to_owned(),
            since: since.to_owned(),
            seen: 0,
        };
        let registered = "2026-03-01T12:00:00Z".parse().ok();
        assert!(claim("ours", "2026-03-01T11:59:59Z").precedes("ours", registered));
        assert!(!claim("ours", "2026-03-01T12:00:01.5Z").precedes("ours", registered));
        assert!(!claim("theirs", "2026-01-01T00:00:00Z").precedes("ours", registered));
        assert!(!claim("ours", "long ago").precedes("ours", registered));
        assert!(!claim("ours", "2026-01-01T00:00:00Z").precedes("ours", None));
        assert!(!Claim::Absent.precedes("ours", registered));
    }
}
