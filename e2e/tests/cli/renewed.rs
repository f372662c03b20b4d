//! The token of a registered cluster is renewed by the operator before it ends.
//!
//! API servers issue no token for less than ten minutes, and nobody waits for that: the test signs one with the cluster's own key, that was
//! issued some minutes ago.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use emco_controllers::remote::kubeconfig::{claims, token_of, with_token};
use emco_crds::Cluster;
use emco_e2e::bed::Bed;
use k8s_openapi::api::core::v1::Secret;
use rcgen::{KeyPair, SigningKey as _};
use serde_json::{Value, json};

use super::rig::{STAGE, file, lend_e, run};

/// Of the token that is due: its life, and how much of it is over. Two thirds are.
const LIFE: u64 = 600;
const OVER: u64 = 400;
/// For the operator to renew one.
const PATIENCE: Duration = Duration::from_secs(60);
/// All that the operator asks of a cluster where nothing is deployed, but tokens.
const LESS: &str = r#"{"rules": [
    {"apiGroups": [""], "resources": ["namespaces", "nodes", "configmaps", "secrets", "serviceaccounts"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]}
]}"#;

/// The Cluster on the hub. It is asked for often: without a process.
async fn cluster(bed: &Bed) -> Result<Value> {
    let cluster = bed.hub().api::<Cluster>("apart").await?.get("hague").await?;
    Ok(serde_json::to_value(cluster)?)
}

/// The kubeconfig on the hub.
async fn stored(bed: &Bed) -> Result<String> {
    let secret = bed.hub().api::<Secret>("apart").await?.get("hague-kubeconfig").await?;
    let text = secret.data.and_then(|mut data| data.remove("kubeconfig")).context("no kubeconfig")?;
    Ok(String::from_utf8(text.0)?)
}

fn token(kubeconfig: &str) -> Result<String> {
    Ok(token_of(kubeconfig.as_bytes()).context("no token")?.as_str().to_owned())
}

async fn condition(bed: &Bed, kind: &str) -> Result<Value> {
    let cluster = cluster(bed).await?;
    let conditions = cluster["status"]["conditions"].as_array().context("no conditions")?;
    conditions.iter().find(|one| one["type"] == kind).cloned().with_context(|| format!("no {kind}"))
}

/// The same token as the cluster would have issued it some minutes ago, for ten minutes.
fn older(bed: &Bed, token: &str) -> Result<String> {
    let text = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).context("no claims")?)?;
    let mut claims: Value = serde_json::from_slice(&text)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let began = now - OVER;
    claims["iat"] = json!(began);
    claims["nbf"] = json!(began);
    claims["exp"] = json!(began + LIFE);
    let head = token.split('.').next().context("no head")?;
    let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = KeyPair::from_pem(&bed.edge("e").tokens_key()?)?.sign(signed.as_bytes())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(plain(&signature)?)))
}

/// A signature as tokens have it: both numbers with 32 bytes each. It comes as a DER sequence of two integers.
fn plain(der: &[u8]) -> Result<Vec<u8>> {
    let mut rest = der.get(2..).context("no signature")?;
    let mut whole = Vec::new();
    for _ in 0..2 {
        let length = usize::from(*rest.get(1).context("no number")?);
        let number = rest.get(2..2 + length).context("half a number")?;
        let digits: Vec<u8> = number.iter().copied().skip_while(|digit| *digit == 0).collect();
        whole.extend(std::iter::repeat_n(0, 32_usize.saturating_sub(digits.len())));
        whole.extend(digits);
        rest = rest.get(2 + length..).context("nothing follows")?;
    }
    Ok(whole)
}

/// Puts a token that is due into the place of the stored one, as `cluster rotate` would write it.
async fn age(bed: &Bed) -> Result<String> {
    let before = stored(bed).await?;
    let token = token(&before)?;
    let old = older(bed, &token)?;
    let text = with_token(&before, &token, &old).context("the token is not in the kubeconfig")?;
    let patch = json!({"data": {"kubeconfig": STANDARD.encode(text.as_bytes())}}).to_string();
    let args = ["patch", "secret", "hague-kubeconfig", "-n", "apart", "--type=merge"];
    let args = [&args[..], &["--field-manager=emco-cli", "-p", &patch]].concat();
    bed.hub().kubectl().run(&args).await?;
    Ok(old)
}

async fn until<T>(what: &str, look: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
    let found = async {
        loop {
            if let Some(found) = look().await? {
                return anyhow::Ok(found);
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.with_context(|| format!("{what}: not in time"))?
}

#[tokio::test]
async fn a_token_that_is_due_is_renewed_without_interruption() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let _turn = lend_e(bed).await?;
        let admin = file(bed, "e-admin.kubeconfig", &bed.edge("e").kubeconfig()?).await?;
        let admin = admin.display().to_string();
        let add = ["cluster", "add", "apart/hague", "--kubeconfig", &admin, "--level", "Admin"];
        run(bed, &add).await?.is(0, &["apart/hague is registered and ready"]);
        let since = condition(bed, "Ready").await?["lastTransitionTime"].clone();
        let old = age(bed).await?;
        let new = until("the token is renewed", async || {
            let now = token(&stored(bed).await?)?;
            Ok((now != old).then_some(now))
        })
        .await?;
        let (before, now) = (claims::bound(&old).context("old")?, claims::bound(&new).context("new")?);
        ensure!((&now.account, &now.account_uid) == (&before.account, &before.account_uid), "{now:?}");
        ensure!((&now.audiences, &now.secret) == (&before.audiences, &before.secret), "{now:?}");
        // For as long as it was asked for at first.
        ensure!(now.ends.duration_since(now.issued).as_hours() > 24 * 300, "{now:?}");
        until("the end of the new token is told", async || {
            let cluster = cluster(bed).await?;
            let expires = cluster["status"]["credentials"]["expires"].as_str().unwrap_or_default();
            Ok((expires.parse().ok() == Some(now.ends)).then_some(()))
        })
        .await?;
        let ready = condition(bed, "Ready").await?;
        ensure!(ready["status"] == "True" && ready["lastTransitionTime"] == since, "{ready} {since}");
        ensure!(condition(bed, "CredentialsValid").await?["reason"] == "Accepted");

        // A cluster that refuses: it is said with what to do, and a person does it.
        let role = ["patch", "clusterrole", "emco-hub", "--type=merge", "-p", LESS];
        let edge = bed.edge("e").kubectl();
        edge.run(&role).await?;
        let may = ["auth", "can-i", "create", "serviceaccounts", "--subresource=token", "-n", "emco-system"];
        let account = "--as=system:serviceaccount:emco-system:emco-hub";
        edge.until(&[&may[..], &[account]].concat(), "", false).await?;
        let old = age(bed).await?;
        let said = until("the refusal is told", async || {
            let valid = condition(bed, "CredentialsValid").await?;
            let message = valid["message"].as_str().unwrap_or_default();
            Ok(message.contains("could not be renewed (the cluster refuses:").then(|| message.to_owned()))
        })
        .await?;
        ensure!(said.contains("kubectl emco cluster rotate apart/hague --context CONTEXT"), "{said}");
        ensure!(!said.contains(&old) && token(&stored(bed).await?)? == old, "{said}");
        run(bed, &["cluster", "rotate", "apart/hague", "--kubeconfig", &admin])
            .await?
            .is(0, &["apart/hague has new credentials"]);
        until("the new credentials are told of", async || {
            let valid = condition(bed, "CredentialsValid").await?;
            Ok((valid["reason"] == "Accepted").then_some(()))
        })
        .await?;
        // Which gives the role all rights again.
        run(bed, &add).await?.is(0, &["registered and ready"]);
        run(bed, &["cluster", "remove", "apart/hague"]).await?.is(0, &["emco-system are deleted"]);
        Ok(())
    }))
    .await;
}
