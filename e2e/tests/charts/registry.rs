//! In: charts that Helm pushed into real registries. Out: they run; wrong logins, other bytes and other hosts are named.

use anyhow::{Result, ensure};
use emco_crds::CompositeApp;
use emco_crds::conditions::types;
use emco_e2e::operator::{deployed, is, look_again, still_says, wait};
use emco_e2e::registry::{Guard, LOGIN, Registry, docker_config};
use emco_e2e::tokens::Tokens;
use serde_json::{Value, json};

use super::{STAGE, begin, deploy, has, login, note, said, says};

fn oci(registry: &Registry, version: &str) -> Value {
    json!({"oci": {"url": format!("oci://{}/charts/note", registry.host()), "version": version}})
}

fn guarded(registry: &Registry, version: &str) -> Value {
    let mut source = oci(registry, version);
    source["secretRef"] = json!({"name": "login"});
    source
}

async fn registry(name: &str, guard: Guard<'_>) -> Result<Registry> {
    let (bed, _) = STAGE.get().await?;
    Registry::start(bed, name, guard).await
}

#[tokio::test]
async fn a_chart_of_a_registry_runs_by_version_and_by_digest_and_stays_what_it_was() {
    let registry = registry("anonymous", Guard::Nobody).await.unwrap();
    // Plain http is for registries that an admin lists so.
    let bed = begin("anonymous", Some(&[format!("http://{}/", registry.host())])).await.unwrap();
    bed.explain(async {
        let first = registry.push(&note("1.0.0+build.7", "one"), "charts").await?;
        deploy(bed, "anonymous", &oci(&registry, "1.0.0+build.7")).await?;
        deployed(bed, "anonymous", "shop", 1).await?;
        ensure!(said(bed, "anonymous").await? == "one");

        registry.push(&note("1.0.0+build.7", "other"), "charts").await?;
        look_again(bed, "anonymous", "shop", "one").await?;
        let message = says(bed, "anonymous", "ChartDigestChanged").await?;
        has(&message, &["app note", "the same version now has other bytes", "sha256:"]);
        still_says(bed, "anonymous", "shop", "ChartDigestChanged").await?;
        ensure!(said(bed, "anonymous").await? == "one", "what runs stays");

        // By digest it is what it was, whatever the tag is now.
        let url = format!("oci://{}/charts/note", registry.host());
        deploy(bed, "anonymous", &json!({"oci": {"url": url, "digest": first}})).await?;
        wait(bed, "anonymous", "shop", |app: &CompositeApp| {
            let status = app.status.as_ref();
            if status.and_then(|status| status.observed_generation) != app.metadata.generation {
                return Err("the last change was not looked at yet".to_owned());
            }
            is(status, types::READY, "True")
        })
        .await?;
        ensure!(said(bed, "anonymous").await? == "one");
        deploy(bed, "anonymous", &oci(&registry, "9.9.9")).await?;
        has(&says(bed, "anonymous", "ChartNotFound").await?, &["app note", "/manifests/9.9.9", "404"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_registry_with_a_password_and_an_authority_of_its_own_wants_both() {
    let registry = registry("password", Guard::Password).await.unwrap();
    let bed = begin("password", Some(&[format!("oci://{}/charts/", registry.host())])).await.unwrap();
    bed.explain(async {
        registry.push(&note("1.0.0", "one"), "charts").await?;
        deploy(bed, "password", &guarded(&registry, "1.0.0")).await?;
        has(&says(bed, "password", "SecretNotFound").await?, &["app note", "Secret login", "create it"]);
        login(bed, "password", json!({"username": LOGIN.0, "password": LOGIN.1})).await?;
        has(&says(bed, "password", "SourceUnreachable").await?, &["signed by no public CA", "ca.crt"]);
        let with = |password: &str| json!({"username": "ann", "password": password, "ca.crt": registry.ca()});
        login(bed, "password", with("wrong")).await?;
        has(&says(bed, "password", "ChartUnauthorized").await?, &["app note", "401"]);
        login(bed, "password", with(LOGIN.1)).await?;
        deployed(bed, "password", "shop", 1).await?;
        ensure!(said(bed, "password").await? == "one");
        // Another repository of the same registry is not listed.
        let url = format!("oci://{}/secret/note", registry.host());
        deploy(bed, "password", &json!({"oci": {"url": url, "version": "1.0.0"}})).await?;
        has(&says(bed, "password", "ChartSourceNotAllowed").await?, &[&url, "chartSources"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_token_realm_on_another_host_is_listed_and_gets_its_own_login_for_pulling_alone() {
    let tokens = Tokens::start(LOGIN).await.unwrap();
    let guard = Guard::Token { realm: &tokens.realm(), authority: tokens.authority() };
    let registry = registry("token", guard).await.unwrap();
    let entry = format!("oci://{}/charts/", registry.host());
    let bed = begin("token", Some(std::slice::from_ref(&entry))).await.unwrap();
    bed.explain(async {
        registry.push(&note("1.0.0", "one"), "charts").await?;
        let authorities = format!("{}{}", registry.ca(), tokens.ca());
        login(bed, "token", json!({"username": LOGIN.0, "password": LOGIN.1, "ca.crt": authorities})).await?;
        deploy(bed, "token", &guarded(&registry, "1.0.0")).await?;
        let message = says(bed, "token", "ChartSourceNotAllowed").await?;
        has(&message, &["app note", "a token of the realm", &tokens.realm(), "chartSources"]);
        ensure!(tokens.asked().is_empty(), "a realm that is not listed is not asked");

        super::list(bed, "token", Some(&[entry, format!("{}/", tokens.realm())])).await?;
        let message = says(bed, "token", "ChartUnauthorized").await?;
        has(&message, &["another origin", "add a login for 127.0.0.1"]);
        let asked = tokens.asked();
        ensure!(!asked.is_empty() && asked.iter().all(|line| line.ends_with(" -")), "{asked:?}");

        let logins = docker_config(&[(registry.host(), "bob", "other"), (&tokens.host(), LOGIN.0, LOGIN.1)]);
        bed.hub().kubectl().run(&["delete", "secret", "login", "-n", "token"]).await?;
        login(bed, "token", json!({".dockerconfigjson": logins, "ca.crt": authorities})).await?;
        deployed(bed, "token", "shop", 1).await?;
        ensure!(said(bed, "token").await? == "one");
        for line in tokens.asked() {
            ensure!(line.starts_with("repository:charts/note:pull "), "only pulling is asked for: {line}");
        }
        Ok(())
    })
    .await;
}
