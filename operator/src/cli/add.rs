//! A cluster that somebody can reach comes in; a service account on it, and Secret and Cluster on the hub go out. Nothing of that
//! person's own credentials is stored: exec plug-ins, client certificates and passwords stay where they are.

use std::time::Duration;

use anyhow::{Context as _, bail};
use emco_crds::Cluster;
use emco_crds::conditions::{Conditioned as _, types};
use emco_engine::identity::ClusterId;
use kube::Api;

use super::args::{AddArgs, Format, is_label};
use super::hub::{self, Hub};
use super::role::show::{self, Written};
use super::{Outcome, print, watched};

pub mod account;
mod before;
mod by_git;
mod confined;
mod granted;
mod grants;
pub mod level;
mod people;
mod policy;
mod reader;
mod register;
pub mod target;

pub use account::ACCOUNT;
use account::{Account, Token, Wanted};
use by_git::Followed;
use confined::{Asked, Confined};
use register::Registration;
pub use register::{asked_for, secret_name};

pub async fn run(args: AddArgs) -> anyhow::Result<Outcome> {
    let (provider, name) = names(&args)?;
    confined::refuse(&args)?;
    if matches!(args.output, Some(Format::Wide)) {
        bail!("-o wide says nothing about one cluster: write -o yaml, -o json, or leave it out");
    }
    if args.renew && args.secret_file.is_none() {
        return Err(super::Misused(format!(
            "--renew is for a Secret that goes into Git, with --secret-file; to replace the credentials on the hub and end the old ones: \
             `kubectl emco cluster rotate {provider}/{name}`"
        ))
        .into());
    }
    let target = target::read(&args).await?;
    let hub = hub::connect(&args.hub()).await?;
    // Everything that can be refused is refused before anything is made.
    let registration = Registration::prepare(&hub, &provider, &name, &args).await?;
    let uid = target.uid().await?;
    let confined = Confined::read(&target, &Asked::by(&args)).await?;
    registration.refuse_confusion(&hub, &target, &uid).await?;
    before::refuse(&target, &args).await?;
    let followed =
        Followed::read(&hub, &registration.namespace, &ClusterId::new(&provider, &name), &args).await?;
    let account = match &followed {
        Some(_) => Account::reader(args.cluster_role.clone()),
        None => Account::new(args.cluster_role.clone(), confined),
    };
    if let Some(note) = registration.compared(&args) {
        say(&note);
    }
    if let Some(confined) = account.confined() {
        confined.notes().iter().for_each(|note| say(note));
    }
    if args.dry_run {
        return dry_run(&args, &account, followed.as_ref(), &registration);
    }
    account.apply(&target).await?;
    if let Some(followed) = &followed {
        followed.apply(&target).await?.iter().for_each(|note| say(note));
    }
    let account_uid = account::uid(&target).await?;
    let right = account.proof();
    let stored = if args.renew {
        None
    } else {
        let proof = (account_uid.as_str(), right.as_ref());
        registration.still_good(&hub, &target, &args, &uid, proof).await
    };
    let kept = stored.is_some();
    let kubeconfig = if let Some(stored) = stored {
        say(&format!(
            "the stored token still works and is kept; to make a new one: `kubectl emco cluster rotate {provider}/{name}`"
        ));
        stored
    } else {
        if args.secret_file.is_none() {
            registration.refuse_foreign_secret(&hub).await?;
        }
        let wanted = Wanted { kind: args.token, duration: args.token_duration, fresh: false };
        let Token { text, note, .. } = account::token(&target, &wanted, &account_uid).await?;
        say(&note);
        let kubeconfig = target.kubeconfig(&text);
        target.check(&kubeconfig, &uid, right.as_ref()).await?;
        kubeconfig
    };
    match &args.secret_file {
        Some(file) => {
            write_secret(file, &registration.secret(&kubeconfig))?;
            say(&format!("the Secret is in {}: encrypt it before it goes into Git", file.display()));
        }
        // One that is kept stays its maker's, such as a GitOps tool's.
        None if kept => {}
        None => registration.apply_secret(&hub, &kubeconfig).await?,
    }
    if let Some(format) = args.output {
        print(&document(format, &registration.cluster())?)?;
        return Ok(Outcome::AsWanted);
    }
    registration.apply_cluster(&hub).await?;
    let id = format!("{provider}/{name}");
    if args.timeout.is_zero() || args.secret_file.is_some() {
        print(&format!("{id} is registered\n"))?;
        return Ok(Outcome::AsWanted);
    }
    match wait(&hub, &registration.namespace, &name, args.timeout).await? {
        Ok(said) => {
            print(&format!("{id} is registered and ready: {said}\n"))?;
            Ok(Outcome::AsWanted)
        }
        Err(said) => {
            eprintln!("warning: {id} is registered and not ready after {:?}: {said}", args.timeout);
            Ok(Outcome::NotAsWanted)
        }
    }
}

/// What is worth knowing beside the answer.
fn say(text: &str) {
    eprintln!("{text}");
}

fn names(args: &AddArgs) -> anyhow::Result<(String, String)> {
    let (provider, name) = match (args.name.split_once('/'), &args.provider) {
        (Some((provider, name)), None) => (provider, name),
        (Some((provider, name)), Some(named)) if provider == named => (provider, name),
        (Some((provider, _)), Some(named)) => {
            bail!(
                "{} names the provider {provider} and --provider names {named}: leave one of them out",
                args.name
            )
        }
        (None, Some(named)) => (named.as_str(), args.name.as_str()),
        (None, None) => {
            bail!("write PROVIDER/CLUSTER, such as acme/{}, or name the provider with --provider", args.name)
        }
    };
    for part in [provider, name] {
        if !is_label(part) {
            bail!(
                "{part:?} is no name of a provider or cluster: at most 63 lower-case letters, digits and '-', a letter or digit \
                 first and last"
            );
        }
    }
    Ok((provider.to_owned(), name.to_owned()))
}

fn dry_run(
    args: &AddArgs,
    account: &Account,
    followed: Option<&Followed>,
    registration: &Registration,
) -> anyhow::Result<Outcome> {
    let cluster = registration.cluster();
    if let Some(format) = args.output {
        print(&document(format, &cluster)?)?;
        return Ok(Outcome::AsWanted);
    }
    let mut objects = account.objects();
    let flux = followed.into_iter().flat_map(Followed::objects);
    objects.extend(flux.map(|object| Written::new(object, &[])));
    let mut text = show::text("On the cluster:", &objects);
    text.push_str("---\n# On the hub; the kubeconfig holds a token of that service account:\n");
    for object in [registration.secret("(a kubeconfig)"), cluster] {
        text.push_str(&format!("---\n{}", serde_yaml::to_string(&object)?));
    }
    print(&text)?;
    Ok(Outcome::AsWanted)
}

fn document(format: Format, object: &serde_json::Value) -> anyhow::Result<String> {
    Ok(match format {
        Format::Json => serde_json::to_string_pretty(object)? + "\n",
        Format::Yaml | Format::Wide => serde_yaml::to_string(object)?,
    })
}

/// Nobody but the owner reads it, from the first moment on.
fn write_secret(file: &std::path::Path, secret: &serde_json::Value) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let what = || format!("the Secret cannot be written to {}", file.display());
    let mut open = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)
        .with_context(what)?;
    open.set_permissions(std::fs::Permissions::from_mode(0o600)).with_context(what)?;
    open.write_all(serde_yaml::to_string(secret)?.as_bytes()).with_context(what)
}

/// Waits until the operator says that it reaches the cluster; what it said last, as `Err`, when it does not in time.
async fn wait(
    hub: &Hub,
    namespace: &str,
    name: &str,
    limit: Duration,
) -> anyhow::Result<Result<String, String>> {
    let api = Api::<Cluster>::namespaced(hub.client.clone(), namespace);
    watched::until(api, name, limit, UNSEEN, |cluster| {
        let status = cluster.and_then(|cluster| cluster.status.as_ref());
        // What was said of an older spec or Secret says nothing of this one.
        let generation = cluster.and_then(|cluster| cluster.metadata.generation);
        let status = status.filter(|status| status.observed_generation == generation);
        let Some(ready) = status.and_then(|status| status.condition(types::READY)) else {
            return Err(UNSEEN.to_owned());
        };
        let said = format!("{}: {}", ready.reason, ready.message);
        if ready.status == "True" { Ok(said) } else { Err(said) }
    })
    .await
}

const UNSEEN: &str = "no operator has looked at it";
