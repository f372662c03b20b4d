//! Gives people credentials of their own on real clusters, with the cluster's own signer, and uses them with real kubectl.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::LogicalCloud;
use emco_crds::conditions::types;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::kubectl::Kubectl;
use emco_e2e::operator::{SOON, SharedOperator, is, project, wait};
use emco_e2e::wait::{wait_for, wait_until_gone};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

/// `a` signs for as long as it is asked, `short` for some seconds, and `unsigned` has nobody who signs. The hub collects the Secrets of a
/// logical cloud that is gone.
static STAGE: SharedOperator = SharedOperator::new(
    || {
        let plane = |name: &str| PlaneSpec::new(name, Parts::Controllers);
        let life = format!("--cluster-signing-duration={}s", SHORT.as_secs());
        BedSpec::hub()
            .with(plane("a"))
            .with(plane("short").controller_flag(&life))
            .with(PlaneSpec::new("unsigned", Parts::ApiServer))
    },
    &["a", "short", "unsigned"],
);

/// A certificate's life on `short`: a third of it is left for what is to be seen after it was renewed.
const SHORT: Duration = Duration::from_secs(40);

/// Controllers give role `edit` its rules, and `unsigned` has none.
const EDIT: &str =
    r#"{"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create"]}]}"#;

/// A logical cloud `team` on one cluster, in a project of its own.
struct Team {
    bed: &'static Bed,
    space: &'static str,
    cluster: &'static str,
}

impl Team {
    async fn new(space: &'static str, cluster: &'static str) -> Result<Self> {
        let (bed, _) = STAGE.get().await?;
        project(bed, space).await?;
        Ok(Self { bed, space, cluster })
    }

    /// Namespace on the cluster.
    fn there(&self) -> String {
        format!("{}-there", self.space)
    }

    async fn apply(&self, more: &str) -> Result<()> {
        let (space, cluster, there) = (self.space, self.cluster, self.there());
        let text = format!(
            "{{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {{name: team, namespace: {space}}}, spec: {{level: \
             Standard, namespace: {there}, clusters: [{{provider: acme, cluster: {cluster}}}], permissions: [{{name: edit, \
             clusterRole: edit}}]{more}}}}}"
        );
        self.bed.hub().kubectl().apply(&text).await.map(drop)
    }

    async fn ready(&self) -> Result<()> {
        wait(self.bed, self.space, "team", |cloud: &LogicalCloud| {
            let current = cloud.status.as_ref().and_then(|status| status.observed_generation);
            if current != cloud.metadata.generation {
                return Err("the last change was not looked at yet".to_owned());
            }
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await
        .map(drop)
    }

    /// The kubeconfig of all clusters, once it is another one than `before`.
    async fn kubeconfig(&self, before: &str) -> Result<String> {
        wait(self.bed, self.space, "team-kubeconfig", |secret: &Secret| {
            let text = of(secret, "kubeconfig").ok_or("it has no kubeconfig")?;
            if text == before { Err("it is the one before".to_owned()) } else { Ok(text) }
        })
        .await
    }

    /// kubectl with such a kubeconfig.
    async fn kubectl(&self, text: &str, name: &str) -> Result<Kubectl> {
        let file: PathBuf = self.bed.dir().join(format!("{}-{name}.kubeconfig", self.space));
        tokio::fs::write(&file, text).await?;
        Ok(self.bed.hub().kubectl().with_kubeconfig(&file))
    }

    /// What the person may do, and what not, in the words of the cluster.
    async fn may_edit_its_namespace_alone(&self, person: &Kubectl) -> Result<()> {
        let there = self.there();
        person.until(&["auth", "can-i", "create", "configmaps", "-n", &there], "", true).await?;
        person.until(&["create", "configmap", "mine", "-n", &there, "--from-literal=a=b"], "", true).await?;
        for refused in [
            ["auth", "can-i", "create", "configmaps", "-n", "default"],
            ["auth", "can-i", "get", "secrets", "-n", "kube-system"],
            ["auth", "can-i", "create", "rolebindings", "-n", &there],
        ] {
            let answer = person.output(&refused, "").await?;
            ensure!(!answer.is_ok() && answer.stdout.trim() == "no", "{refused:?}: {answer:?}");
        }
        let answer = person.output(&["get", "configmaps", "-n", "default"], "").await?;
        ensure!(answer.stderr.contains("Forbidden"), "{answer:?}");
        Ok(())
    }

    /// Secrets of kubeconfigs hold nothing.
    async fn secrets_are_empty(&self) -> Result<()> {
        for name in ["team-kubeconfig", "team-kubeconfig-0"] {
            wait(self.bed, self.space, name, |secret: &Secret| {
                let keys: Vec<_> = secret.data.iter().flatten().map(|(key, _)| key).collect();
                if keys.is_empty() { Ok(()) } else { Err(format!("{keys:?}")) }
            })
            .await?;
        }
        Ok(())
    }
}

fn of(secret: &Secret, key: &str) -> Option<String> {
    String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok()
}

#[tokio::test]
async fn a_person_may_do_what_permissions_say_until_the_name_is_removed() {
    let team = Team::new("people", "a").await.unwrap();
    team.bed
        .explain(async {
            team.apply(", user: {name: ann, groups: [dev, ops]}").await?;
            team.ready().await?;
            let text = team.kubeconfig("").await?;
            let ann = team.kubectl(&text, "ann").await?;
            team.may_edit_its_namespace_alone(&ann).await?;
            let who: Value = serde_json::from_str(&ann.run(&["auth", "whoami", "-o", "json"]).await?)?;
            let who = &who["status"]["userInfo"];
            ensure!(who["username"] == "emco:people:team:ann", "{who}");
            let groups = who["groups"].to_string();
            ensure!(
                groups.contains("emco:people:team:dev") && groups.contains("emco:people:team:ops"),
                "{groups}"
            );

            // One for each cluster besides, and nothing is left of the request.
            let each = wait(team.bed, team.space, "team-kubeconfig-0", |secret: &Secret| {
                of(secret, "acme.a").ok_or_else(|| format!("{:?}", secret.data.as_ref().map(BTreeMap::keys)))
            })
            .await?;
            team.kubectl(&each, "each").await?.run(&["get", "configmaps", "-n", &team.there()]).await?;
            let secret = team.bed.hub().api::<Secret>(team.space).await?.get("team-kubeconfig-0").await?;
            let hash = secret.labels().get("emco.io/owner").cloned().unwrap_or_default();
            let requests = Api::<CertificateSigningRequest>::all(team.bed.edge("a").client().await?);
            let left = requests.get_opt(&format!("emco-user-{hash}")).await?;
            ensure!(!hash.is_empty() && left.is_none(), "{left:?}");
            let config: Value = serde_yaml::from_str(&text)?;
            let key = config["users"][0]["user"]["client-key-data"].as_str().context("no key")?;
            let log = tokio::fs::read_to_string(team.bed.log("operator")).await?;
            ensure!(!log.contains(key) && log.contains("were written"), "{log}");

            // Somebody removes the Secret.
            team.bed.hub().kubectl().run(&["delete", "secret", "team-kubeconfig", "-n", team.space]).await?;
            team.kubeconfig("").await?;

            // A copy of the first one says who it is and may do nothing.
            team.apply("").await?;
            team.ready().await?;
            team.secrets_are_empty().await?;
            let there = team.there();
            let reads = ["get", "configmaps", "-n", &there];
            ann.until(&reads, "", false).await?;
            let answer = ann.output(&reads, "").await?;
            ensure!(
                answer.stderr.contains("Forbidden") && answer.stderr.contains("emco:people:team:ann"),
                "{answer:?}"
            );

            // The Secrets go with the logical cloud.
            team.bed.hub().kubectl().run(&["delete", "lc", "team", "-n", team.space, "--wait=false"]).await?;
            wait_until_gone(team.bed.hub().api::<LogicalCloud>(team.space).await?, "team", SOON).await?;
            let secrets = team.bed.hub().api::<Secret>(team.space).await?;
            for name in ["team-kubeconfig", "team-kubeconfig-0"] {
                wait_until_gone(secrets.clone(), name, SOON).await?;
            }
            Ok(())
        })
        .await;
}

/// Of what the person made: the binding is of no use without the right to make it, so the administrator does it for the person.
const MADE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: again}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: 'emco:remains:team:ann'}]
---
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: forever, annotations: {kubernetes.io/service-account.name: emco-team}}
";

#[tokio::test]
async fn what_remains_of_a_person_is_named_and_the_pages_promise_no_more() {
    let team = Team::new("remains", "a").await.unwrap();
    team.bed
        .explain(async {
            team.apply(", user: {name: ann}").await?;
            team.ready().await?;
            let ann = team.kubectl(&team.kubeconfig("").await?, "ann").await?;
            let there = team.there();
            let reads = ["get", "configmaps", "-n", &there];
            ann.until(&reads, "", true).await?;
            team.bed.edge("a").kubectl().apply_to(&there, MADE).await?;
            team.apply("").await?;
            team.ready().await?;
            team.secrets_are_empty().await?;
            let events = [
                "get",
                "events.events.k8s.io",
                "-n",
                team.space,
                "-o",
                "jsonpath={.items[?(@.reason=='RightsRemain')].note}",
            ];
            let deadline = Instant::now() + SOON;
            let said = loop {
                let said = team.bed.hub().kubectl().run(&events).await?;
                if !said.is_empty() || Instant::now() > deadline {
                    break said;
                }
                sleep_until(Instant::now() + Duration::from_millis(250)).await;
            };
            for made in ["acme/a: RoleBinding/remains-there/again", "acme/a: Secret/remains-there/forever"] {
                ensure!(said.contains(made), "{made}: {said:?}");
            }
            // As the page says: what somebody else gave stays until it is deleted.
            ann.run(&reads).await?;
            team.bed.edge("a").kubectl().run(&["delete", "rolebinding", "again", "-n", &there]).await?;
            ann.until(&reads, "", false).await
        })
        .await;
}

#[tokio::test]
async fn another_name_ends_the_rights_of_the_first() {
    let team = Team::new("renamed", "a").await.unwrap();
    team.bed
        .explain(async {
            let wants = ", credentials: {type: ClientCertificate, duration: 1h}";
            team.apply(&format!(", user: {{name: ann}}{wants}")).await?;
            team.ready().await?;
            let first = team.kubeconfig("").await?;
            let ann = team.kubectl(&first, "ann").await?;
            let there = team.there();
            let reads = ["get", "configmaps", "-n", &there];
            ann.until(&reads, "", true).await?;
            team.apply(&format!(", user: {{name: bob}}{wants}")).await?;
            team.ready().await?;
            let bob = team.kubectl(&team.kubeconfig(&first).await?, "bob").await?;
            bob.until(&reads, "", true).await?;
            ann.until(&reads, "", false).await
        })
        .await;
}

#[tokio::test]
async fn certificates_that_end_soon_are_renewed_before() {
    let team = Team::new("short", "short").await.unwrap();
    team.bed
        .explain(async {
            team.apply(", user: {name: ann}, credentials: {type: ClientCertificate}").await?;
            let first = team.kubeconfig("").await?;
            let issued = Instant::now();
            let old = team.kubectl(&first, "old").await?;
            let there = team.there();
            let reads = ["get", "configmaps", "-n", &there];
            old.until(&reads, "", true).await?;
            let second = team.kubeconfig(&first).await?;
            // Both hold, until the first ends.
            old.run(&reads).await?;
            team.kubectl(&second, "new").await?.run(&reads).await?;
            sleep_until(issued + SHORT).await;
            old.until(&reads, "", false).await?;
            let answer = old.output(&reads, "").await?;
            ensure!(
                answer.stderr.contains("Unauthorized") || answer.stderr.contains("expired"),
                "{answer:?}"
            );
            let newest = wait(team.bed, team.space, "team-kubeconfig", |secret: &Secret| {
                of(secret, "kubeconfig").ok_or_else(|| "it has no kubeconfig".to_owned())
            })
            .await?;
            team.kubectl(&newest, "newest").await?.run(&reads).await?;
            // Nobody would be left to renew it.
            team.apply("").await
        })
        .await;
}

#[tokio::test]
async fn a_cluster_without_a_signer_gives_a_token() {
    let team = Team::new("token", "unsigned").await.unwrap();
    team.bed
        .explain(async {
            let unsigned = team.bed.edge("unsigned").kubectl();
            unsigned.run(&["patch", "clusterrole", "edit", "--type=merge", "-p", EDIT]).await?;
            team.apply(", user: {name: ann}").await?;
            team.ready().await?;
            let text = team.kubeconfig("").await?;
            let config: Value = serde_yaml::from_str(&text)?;
            ensure!(config["users"][0]["user"]["token"].is_string(), "it is no token's");
            let ann = team.kubectl(&text, "ann").await?;
            team.may_edit_its_namespace_alone(&ann).await?;
            let who = ann.run(&["auth", "whoami", "-o", "json"]).await?;
            ensure!(who.contains("system:serviceaccount:token-there:emco-team-user-"), "{who}");
            team.apply("").await?;
            team.ready().await?;
            team.secrets_are_empty().await?;
            let there = team.there();
            ann.until(&["get", "configmaps", "-n", &there], "", false).await
        })
        .await;
}

#[tokio::test]
async fn where_certificates_are_wanted_a_cluster_without_a_signer_is_told_of() {
    let team = Team::new("unsigned", "unsigned").await.unwrap();
    team.bed
        .explain(async {
            team.apply(", user: {name: ann}, credentials: {type: ClientCertificate}").await?;
            wait(team.bed, team.space, "team", |cloud: &LogicalCloud| {
                let rows = cloud.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
                let told = rows.iter().any(|row| {
                    (row.cluster.as_str(), row.reason.as_str()) == ("acme/unsigned", "CSRNotSigned")
                });
                if told { Ok(()) } else { Err(format!("{rows:?}")) }
            })
            .await
        })
        .await;
}

/// Signs the request of a person for somebody else, as the signer of a cluster that has none of its own.
async fn sign_for_eve(bed: &Bed, person: &str) -> Result<()> {
    let edge = bed.edge("unsigned");
    let eve: Value = serde_yaml::from_str(&edge.kubeconfig_as("eve", None)?)?;
    let eve = eve["users"][0]["user"]["client-certificate-data"].as_str().context("no certificate")?;
    let requests = Api::<CertificateSigningRequest>::all(edge.client().await?);
    let approved = wait_for(requests.clone(), SOON, "a request that is approved", |all| {
        let theirs = |request: &&CertificateSigningRequest| asks_for(request, person);
        let request = all.values().find(theirs).ok_or("there is none")?;
        let conditions = request.status.as_ref().and_then(|status| status.conditions.as_ref());
        let approved = conditions.into_iter().flatten().any(|one| one.type_ == "Approved");
        if approved { Ok(request.name_any()) } else { Err("it is not approved".to_owned()) }
    })
    .await?;
    let patch = Patch::Merge(json!({"status": {"certificate": eve}}));
    requests.patch_status(&approved, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Whether a request names this user.
fn asks_for(request: &CertificateSigningRequest, person: &str) -> bool {
    let pem = String::from_utf8_lossy(&request.spec.request.0);
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body).unwrap_or_default();
    der.windows(person.len()).any(|part| part == person.as_bytes())
}

#[tokio::test]
async fn a_certificate_that_a_signer_made_for_somebody_else_is_not_kept() {
    let team = Team::new("mistaken", "unsigned").await.unwrap();
    team.bed
        .explain(async {
            team.apply(", user: {name: ann}, credentials: {type: ClientCertificate}").await?;
            sign_for_eve(team.bed, "emco:mistaken:team:ann").await?;
            wait(team.bed, team.space, "team", |cloud: &LogicalCloud| {
                let rows = cloud.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
                let told = rows.iter().find(|row| row.reason == "CredentialRefused");
                match told {
                    Some(row) if row.cluster == "acme/unsigned" && !row.message.contains("eve") => Ok(()),
                    _ => Err(format!("{rows:?}")),
                }
            })
            .await?;
            let secrets = team.bed.hub().api::<Secret>(team.space).await?;
            for name in ["team-kubeconfig", "team-kubeconfig-0"] {
                let kept = secrets.get_opt(name).await?.and_then(|secret| secret.data).unwrap_or_default();
                ensure!(kept.is_empty(), "{name} has {:?}", kept.keys());
            }
            Ok(())
        })
        .await;
}
