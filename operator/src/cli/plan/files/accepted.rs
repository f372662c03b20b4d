//! Asks the hub whether it would store objects of files: a dry run, which stores nothing. Rules of fields are the API server's.

use emco_crds::kinds::Writer;
use emco_crds::names::manager;
use kube::api::PostParams;
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::overlay::{Edits, Laid};
use crate::cli::hub::Hub;

/// An object that the hub would not store.
#[derive(Debug, Serialize)]
pub struct Unaccepted {
    pub object: String,
    pub reason: String,
    pub message: String,
}

/// What the hub would not store, and notes on what it was not asked about: deployments first, then what stands ever further from them.
pub async fn ask(hub: &Hub, edits: &Edits) -> anyhow::Result<(Vec<Unaccepted>, Vec<String>)> {
    let mut answers: Vec<((Writer, bool), Asked<'_>)> = Vec::new();
    macro_rules! ask_each {
        ($($store:ident: $kind:ident, $called:literal, $writer:ident, $files:ident, $($column:ident),*;)*) => {
            $(ask_each!(@$files $writer $store $kind);)*
        };
        (@Digests $writer:ident $store:ident $kind:ident) => {
            let mut asked = Asked { hub, unaccepted: Vec::new(), unasked: Vec::new() };
            for laid in &edits.$store {
                asked.one(&ask_each!(@$writer $kind laid), laid).await?;
            }
            answers.push(((Writer::$writer, stringify!($kind) != "DeploymentIntentGroup"), asked));
        };
        // What only plans read is laid over the hub's, and the hub is not asked about it.
        (@$files:ident $writer:ident $store:ident $kind:ident) => { let _ = &edits.$store; };
        (@Hub $kind:ident $laid:ident) => { Api::<emco_crds::$kind>::all(hub.client.clone()) };
        (@$writer:ident $kind:ident $laid:ident) => {{
            let namespace = $laid.object.namespace().unwrap_or_default();
            Api::<emco_crds::$kind>::namespaced(hub.client.clone(), &namespace)
        }};
    }
    emco_crds::each_kind!(all => ask_each);
    answers.sort_by_key(|(rank, _)| *rank);
    let (mut unaccepted, mut unasked) = (Vec::new(), Vec::new());
    for (_, asked) in answers {
        unaccepted.extend(asked.unaccepted);
        unasked.extend(asked.unasked);
    }
    Ok((unaccepted, unasked))
}

struct Asked<'a> {
    hub: &'a Hub,
    unaccepted: Vec<Unaccepted>,
    unasked: Vec<String>,
}

impl Asked<'_> {
    async fn one<K>(&mut self, api: &Api<K>, laid: &Laid<K>) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
    {
        let params = PostParams { dry_run: true, field_manager: Some(manager::CLI.to_owned()) };
        let name = laid.object.name_any();
        let answer = if laid.exists {
            api.replace(&name, &params, &laid.object).await
        } else {
            let mut fresh = laid.object.clone();
            let meta = fresh.meta_mut();
            (meta.uid, meta.creation_timestamp, meta.generation) = (None, None, None);
            api.create(&params, &fresh).await
        };
        let place = laid.object.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let object = format!("{} {place}{name}", K::kind(&()));
        match answer {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if is_unknown_right(status.code, &status.message) => {
                self.unasked
                    .push(format!("whether the hub would store {object} is not known: {}", status.message));
            }
            // A namespace that is missing has a sentence of the operator's own.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                let (reason, message) = (status.reason.clone(), status.message.clone());
                self.unaccepted.push(Unaccepted { object, reason, message });
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {
                anyhow::bail!("{object} was changed on the hub meanwhile: plan again");
            }
            Err(error) => return Err(self.hub.sentence(&error, "ask about", &object)),
        }
        Ok(())
    }
}

/// Whether it is the user who may not, and not the object that may not be: API servers say both with one code.
fn is_unknown_right(code: u16, message: &str) -> bool {
    let verbs = [" cannot create resource ", " cannot update resource "];
    code == 403 && verbs.iter().any(|verb| message.contains(verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_no_refusal_of_the_object() {
        let rbac = "projects.emco.io \"a\" is forbidden: User \"me\" cannot update resource \"projects\" in API group \"emco.io\" at the cluster scope";
        assert!(is_unknown_right(403, rbac));
        let policy = "projects.emco.io \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        assert!(!is_unknown_right(403, policy) && !is_unknown_right(422, rbac));
    }
}
