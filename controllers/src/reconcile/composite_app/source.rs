//! Says where an app's chart comes from, and with which credentials.

use emco_crds::composite_app::{App, ChartPin, ChartSource, GitChart, GitRef, OciChart};
use emco_crds::fields::KeyRef;
use emco_crds::{CompositeApp, Project};
use serde_json::Value;

use super::Refused;
use crate::api::ApiResult;
use crate::chart::{
    CHANGED, ChartCredentials, ChartError, FetchRequest, Git, MapKey, Oci, Reference, Repository, Source,
    Turn, digest,
};
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::sources;

/// The request for an app's chart.
pub fn request<'a>(
    project: &'a Project,
    (app, pinned): (&'a App, Option<&'a ChartPin>),
    (source, credentials): (Source, Option<ChartCredentials>),
    turn: &'a Turn,
) -> FetchRequest<'a> {
    // What the spec states must match the archive; else what was seen first must.
    let wanted = app.chart.digest.as_deref().or_else(|| pinned.map(|pin| pin.digest.as_str()));
    let sources = project.spec.chart_sources.as_deref();
    FetchRequest { source, credentials, sources, pinned: wanted, turn }
}

/// Where an app's chart is, and for whom; what the hub holds of it is read.
pub async fn origin(
    ctx: &Context,
    object: &CompositeApp,
    app: &App,
    pinned: Option<&ChartPin>,
) -> ApiResult<Result<(Source, Option<ChartCredentials>), Refused>> {
    let namespace = meta::namespace(object);
    let credentials = match &app.chart.secret_ref {
        None => None,
        Some(reference) => match sources::object(ctx, namespace, "Secret", &reference.name).await? {
            None => {
                let message = format!(
                    "Secret {} does not exist in namespace {namespace}: create it, or change chart.secretRef",
                    reference.name
                );
                return Ok(Err(("SecretNotFound", message)));
            }
            Some(secret) => match read_credentials(&secret, app) {
                Ok(credentials) => Some(credentials),
                Err(error) => {
                    return Ok(Err((error.reason(), format!("Secret {}: {error}", reference.name))));
                }
            },
        },
    };
    let source = if let Some(chart) = &app.chart.repository {
        Source::Repository(Repository {
            url: chart.url.clone(),
            name: chart.name.clone(),
            version: chart.version.clone(),
        })
    } else if let Some(OciChart { url, version, digest }) = app.chart.oci.clone() {
        Source::Oci(Oci { url, version, digest })
    } else if let Some(chart) = &app.chart.git {
        let Some(git) = git(chart, pinned) else {
            let message = "git.ref names no commit: set one of tag, branch, commit".to_owned();
            return Ok(Err(("ChartNotFound", message)));
        };
        Source::Git(git)
    } else if let Some(reference) = &app.chart.config_map_ref {
        let place = map_key(namespace, reference);
        let key = place.2.clone();
        if let Some(why) = sources::impossible("ConfigMap", &reference.name, &key) {
            let message = format!("{why}: change chart.configMapRef");
            return Ok(Err(("ConfigMapNotFound", message)));
        }
        let Some(map) = sources::object(ctx, namespace, "ConfigMap", &reference.name).await? else {
            ctx.charts.maps.gave(place, None);
            let message = format!(
                "ConfigMap {} does not exist in namespace {namespace}: create it with the chart's archive under {key}",
                reference.name
            );
            return Ok(Err(("ConfigMapNotFound", message)));
        };
        let bytes = sources::bytes(&map, &key);
        ctx.charts.maps.gave(place, bytes.as_deref().map(digest).as_deref());
        let Some(bytes) = bytes else {
            let message = format!(
                "ConfigMap {} has no key {key}: put the chart's archive under binaryData.{key}",
                reference.name
            );
            return Ok(Err(("ChartNotFound", message)));
        };
        Source::ConfigMap { label: format!("ConfigMap {}, key {key}", reference.name), bytes }
    } else {
        let message = "chart needs exactly one of repository, oci, git, configMapRef".to_owned();
        return Ok(Err(("ChartNotFound", message)));
    };
    Ok(Ok((source, credentials)))
}

/// Why there is no chart, in words. Of other bytes, with the object and the fields whose edit accepts them.
pub fn refusal(object: &CompositeApp, app: &App, error: &ChartError) -> Refused {
    let mut message = error.to_string();
    if error.reason() == CHANGED {
        let chart = format!("spec.apps[{}].chart", app.name);
        let ChartSource { repository, oci, git, .. } = &app.chart;
        let other = match (repository, oci, git) {
            (Some(_), ..) => format!(", or {chart}.repository.version to another version"),
            (_, Some(_), _) => format!(", or {chart}.oci.version to another version"),
            (.., Some(_)) => format!(", or {chart}.git.ref.commit to the commit that is meant"),
            (None, None, None) => "; `kubectl emco chart push FOLDER` does so".to_owned(),
        };
        let name = meta::name(object);
        message.push_str(&format!(
            "; check the source, then set {chart}.digest of CompositeApp {name} to the new digest{other}"
        ));
    }
    (error.reason(), message)
}

/// Where the archive is in a ConfigMap.
pub fn map_key(namespace: &str, reference: &KeyRef) -> MapKey {
    let key = reference.key.as_deref().unwrap_or("chart.tgz");
    (namespace.to_owned(), reference.name.clone(), key.to_owned())
}

/// A chart of a Git repository, at the commit that is pinned if one is.
fn git(chart: &GitChart, pinned: Option<&ChartPin>) -> Option<Git> {
    let GitRef { tag, branch, commit } = chart.ref_.clone();
    let reference = match (tag, branch, commit) {
        (Some(tag), ..) => Reference::Tag(tag),
        (_, Some(branch), _) => Reference::Branch(branch),
        (.., commit) => Reference::Commit(commit?),
    };
    let pinned = pinned.and_then(|pin| pin.commit.clone());
    Some(Git { url: chart.url.clone(), reference, path: chart.path.clone(), pinned })
}

fn read_credentials(secret: &Value, app: &App) -> Result<ChartCredentials, ChartError> {
    let keys =
        secret.get("data").and_then(Value::as_object).map(|data| data.keys().cloned().collect::<Vec<_>>());
    let data = keys
        .unwrap_or_default()
        .into_iter()
        .filter_map(|key| Some((key.clone(), sources::bytes(secret, &key)?)));
    let ChartSource { repository, oci, git, .. } = &app.chart;
    let url = repository.as_ref().map(|chart| chart.url.clone());
    let url = url.or_else(|| git.as_ref().map(|chart| chart.url.clone()));
    // Logins are looked up by host, and those of registries are written without a scheme.
    let url = url.or_else(|| oci.as_ref().map(|chart| chart.url.replacen("oci://", "https://", 1)));
    ChartCredentials::read(&data.collect(), url.as_deref())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chart::changed;

    fn said(chart: &Value) -> String {
        let spec = json!({"apps": [{"name": "web", "chart": chart}]});
        let object: CompositeApp = serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": {"name": "shop"}, "spec": spec,
        }))
        .unwrap();
        refusal(&object, &object.spec.apps[0], &changed("sha256:one", "sha256:two")).1
    }

    #[test]
    fn other_bytes_name_the_fields_and_the_object_that_accept_them() {
        let accepts = "then set spec.apps[web].chart.digest of CompositeApp shop to the new digest";
        for (chart, other) in [
            (json!({"configMapRef": {"name": "charts"}}), "; `kubectl emco chart push FOLDER` does so"),
            (
                json!({"repository": {"url": "https://example.com", "name": "web", "version": "1.0.0"}}),
                ", or spec.apps[web].chart.repository.version to another version",
            ),
            (
                json!({"oci": {"url": "oci://example.com/web", "version": "1.0.0"}}),
                ", or spec.apps[web].chart.oci.version to another version",
            ),
            (
                json!({"git": {"url": "https://example.com", "ref": {"tag": "v1"}}}),
                ", or spec.apps[web].chart.git.ref.commit to the commit that is meant",
            ),
        ] {
            let said = said(&chart);
            assert!(said.contains("pinned is sha256:one, the source gives sha256:two; check"), "{said}");
            assert!(said.ends_with(&format!("{accepts}{other}")), "{said}");
        }
    }

    #[test]
    fn other_refusals_are_said_as_they_are() {
        let app = App { name: "web".to_owned(), ..App::default() };
        let error = ChartError::new("ChartInvalid", "it is no chart");
        let object = CompositeApp::new("shop", emco_crds::CompositeAppSpec::default());
        assert_eq!(refusal(&object, &app, &error), ("ChartInvalid", "it is no chart".to_owned()));
    }
}
