//! Registering clusters.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_e2e::bed::Bed;
use emco_e2e::operator::SharedOperator;
use serde_json::Value;

use super::rig::{STAGE, apart, file, lend_e, run, run_as};

async fn stage() -> Result<&'static Bed> {
    let stage: &SharedOperator = &STAGE;
    Ok(stage.get().await?.0)
}

/// The kubeconfig of an edge's administrator, as a file.
async fn admin(bed: &Bed, edge: &str) -> Result<String> {
    let path = file(bed, &format!("{edge}-admin.kubeconfig"), &bed.edge(edge).kubeconfig()?).await?;
    Ok(path.display().to_string())
}

async fn object(bed: &Bed, plane: &str, args: &[&str]) -> Result<Value> {
    let args: Vec<&str> = ["get"].iter().chain(args).chain(&["-o", "json"]).copied().collect();
    Ok(serde_json::from_str(&bed.edge(plane).kubectl().run(&args).await?)?)
}

/// The kubeconfig that is stored on the hub.
async fn stored(bed: &Bed, provider: &str, cluster: &str) -> Result<Value> {
    let secret = object(bed, "hub", &["secret", &format!("{cluster}-kubeconfig"), "-n", provider]).await?;
    let text = STANDARD.decode(secret["data"]["kubeconfig"].as_str().context("no kubeconfig")?)?;
    Ok(serde_yaml::from_slice(&text)?)
}

fn token(kubeconfig: &Value) -> &str {
    kubeconfig.pointer("/users/0/user/token").and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn a_cluster_is_added_with_a_bound_token_and_adding_it_again_changes_nothing() {
    let bed = stage().await.unwrap();
    bed.explain(Box::pin(async {
        let _turn = lend_e(bed).await?;
        let kubeconfig = admin(bed, "e").await?;
        let silent =
            ["cluster", "add", "apart/dublin", "--kubeconfig", &kubeconfig, "--labels", "tier=far,region=eu"];
        let add = [&silent[..], &["--level", "Admin"]].concat();
        // First on paper.
        let dry: Vec<&str> = add.iter().copied().chain(["--dry-run"]).collect();
        run(bed, &dry).await?.is(
            0,
            &["kind: ClusterRoleBinding", "kind: ServiceAccount", "region: eu", "name: dublin-kubeconfig"],
        );
        let accounts = bed.edge("e").kubectl().run(&["get", "serviceaccounts", "-A", "-o", "name"]).await?;
        assert!(!accounts.contains("emco-hub"), "{accounts}");
        let said = run(bed, &dry.iter().copied().chain(["-o", "yaml"]).collect::<Vec<_>>()).await?;
        let cluster: Value = serde_yaml::from_str(&said.out)?;
        assert_eq!(cluster["metadata"]["labels"]["region"], "eu");
        // A Secret that somebody made by hand is not replaced.
        let by_hand = [
            "create",
            "secret",
            "generic",
            "dublin-kubeconfig",
            "-n",
            "apart",
            "--from-literal=kubeconfig=mine",
        ];
        bed.hub().kubectl().run(&by_hand).await?;
        run(bed, &add).await?.is(1, &["Secret apart/dublin-kubeconfig is there already", "Delete it"]);
        let kept = object(bed, "hub", &["secret", "dublin-kubeconfig", "-n", "apart"]).await?;
        assert_eq!(kept["data"]["kubeconfig"], STANDARD.encode("mine"));
        bed.hub().kubectl().run(&["delete", "secret", "dublin-kubeconfig", "-n", "apart"]).await?;
        // Then for real.
        run(bed, &add)
            .await?
            .is(0, &["apart/dublin is registered and ready: Reachable", "a bound token that ends"]);
        let cluster = object(bed, "hub", &["clusters.emco.io", "dublin", "-n", "apart"]).await?;
        assert_eq!(cluster["metadata"]["labels"]["tier"], "far");
        let before = stored(bed, "apart", "dublin").await?;
        // Nothing of the administrator's own credentials is in it.
        assert_eq!(before["users"][0]["user"].as_object().map(serde_json::Map::len), Some(1), "only a token");
        assert!(!token(&before).is_empty());
        let secret = object(bed, "hub", &["secret", "dublin-kubeconfig", "-n", "apart"]).await?;
        run(bed, &add).await?.is(0, &["registered and ready", "still works and is kept"]);
        // What is there for all work is not narrowed unasked.
        run(bed, &silent).await?.is(1, &["was added for level Admin", "--level Standard to narrow it"]);
        let again = object(bed, "hub", &["secret", "dublin-kubeconfig", "-n", "apart"]).await?;
        assert_eq!(secret["metadata"]["resourceVersion"], again["metadata"]["resourceVersion"]);
        let until = cluster["status"]["credentials"]["expires"].as_str().unwrap_or_default().to_owned();
        assert!(until.parse::<k8s_openapi::jiff::Timestamp>().is_ok(), "{until:?} is no time");
        run(bed, &["clusters", "-l", "tier=far", "-o", "wide"]).await?.is(0, &["CREDENTIALS END", &until]);
        // A token that is asked for anew is another one, and one that nobody accepts is replaced unasked.
        run(bed, &["cluster", "rotate", "apart/dublin"]).await?.is(0, &["a bound token"]);
        let renewed = stored(bed, "apart", "dublin").await?;
        assert_ne!(token(&before), token(&renewed));
        bed.edge("e").kubectl().run(&["delete", "serviceaccount", "emco-hub", "-n", "emco-system"]).await?;
        run(bed, &add).await?.is(0, &["a bound token", "registered and ready"]);
        // The operator works with it.
        run(bed, &["clusters", "-l", "tier=far"]).await?.is(0, &["dublin", "True", "region=eu,tier=far"]);
        let taken = ["cluster", "add", "apart/again", "--kubeconfig", &kubeconfig];
        run(bed, &taken).await?.is(1, &["is registered already, as apart/dublin"]);
        // The plane is free for the next test.
        run(bed, &["cluster", "remove", "apart/dublin"]).await?.is(0, &["emco-system are deleted"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn where_bound_tokens_end_within_a_day_a_lasting_one_is_stored_and_git_gets_the_cluster_alone() {
    let bed = stage().await.unwrap();
    bed.explain(async {
        apart(bed).await?;
        let kubeconfig = admin(bed, "c").await?;
        let secret = bed.dir().join("cork.secret.yaml").display().to_string();
        let add = [
            "cluster",
            "add",
            "cork",
            "--provider",
            "apart",
            "--kubeconfig",
            &kubeconfig,
            "--level",
            "Admin",
        ];
        let git = ["--context", "c", "-o", "yaml", "--secret-file", &secret];
        let said = run(bed, &add.iter().chain(&git).copied().collect::<Vec<_>>()).await?;
        said.is(0, &["grants bound tokens for 23 h only", "a token without an end", "encrypt it"]);
        let cluster: Value = serde_yaml::from_str(&said.out)?;
        assert_eq!(cluster["spec"]["access"]["kubeconfigSecretRef"]["name"], "cork-kubeconfig");
        let made = bed
            .hub()
            .kubectl()
            .run(&["get", "clusters.emco.io,secrets", "-n", "apart", "-o", "name"])
            .await?;
        assert!(!made.contains("cork"), "nothing of it is on the hub: {made}");
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&secret)?.permissions());
        assert_eq!(mode & 0o777, 0o600);
        // What goes through Git is what is applied without.
        bed.hub().kubectl().apply(&std::fs::read_to_string(&secret)?).await?;
        bed.hub().kubectl().apply(&said.out).await?;
        run(bed, &add).await?.is(0, &["apart/cork is registered and ready", "still works and is kept"]);
        let stored = stored(bed, "apart", "cork").await?;
        let lasting = object(bed, "c", &["secret", "emco-hub-token", "-n", "emco-system"]).await?;
        let lasting = STANDARD.decode(lasting["data"]["token"].as_str().context("no token")?)?;
        assert_eq!(token(&stored).as_bytes(), lasting);
        Ok(())
    })
    .await;
}

/// A kubeconfig with one field changed.
fn changed(kubeconfig: &str, change: impl FnOnce(&mut Value)) -> Result<String> {
    let mut parsed: Value = serde_yaml::from_str(kubeconfig)?;
    change(&mut parsed);
    Ok(serde_yaml::to_string(&parsed)?)
}

#[tokio::test]
async fn what_cannot_be_added_is_refused_with_a_sentence_and_nothing_is_made() {
    let bed = stage().await.unwrap();
    bed.explain(async {
        let good = bed.edge("c").kubeconfig()?;
        let in_cluster = |key: &'static str, value: Value| {
            changed(&good, move |file| {
                if let Some(cluster) = file["clusters"][0]["cluster"].as_object_mut() {
                    cluster.insert(key.to_owned(), value);
                }
            })
        };
        let insecure = in_cluster("insecure-skip-tls-verify", true.into())?;
        let proxy = in_cluster("proxy-url", "http://127.0.0.1:1".into())?;
        let closed = in_cluster("server", "https://127.0.0.1:1".into())?;
        let stranger = in_cluster("certificate-authority-data", STANDARD.encode(bed.edge("a").ca()).into())?;
        let without = changed(&good, |file| {
            if let Some(cluster) = file["clusters"][0]["cluster"].as_object_mut() {
                cluster.remove("certificate-authority-data");
            }
        })?;
        let nobody = bed.edge("c").kubeconfig_as("nobody", None)?;
        let hub = bed.hub().kubeconfig()?;
        for (name, kubeconfig, more, says) in [
            ("acme/x", &insecure, &[][..], "does not verify the API server"),
            ("acme/x", &proxy, &[], "goes through a proxy"),
            ("acme/x", &closed, &[], "https://127.0.0.1:1 cannot be reached"),
            ("acme/x", &stranger, &[], "cannot be reached"),
            ("acme/x", &without, &[], "--certificate-authority"),
            ("acme/x", &nobody, &[], "you may not do that on the cluster"),
            ("acme/x", &hub, &[], "is the hub itself"),
            ("acme/a", &good, &[], "exists already and is another one"),
            ("nowhere/x", &good, &[], "there is no ClusterProvider nowhere"),
            ("acme/x", &good, &["--level", "Standard", "--cluster-role", "view"], "leave one of them out"),
            (
                "acme/x",
                &good,
                &["--level", "Admin", "--may-bind", "view"],
                "--may-bind adds to a level below Admin",
            ),
            (
                "acme/x",
                &good,
                &["--level", "Standard", "--may-bind", "none"],
                "there is no ClusterRole none on the cluster",
            ),
            (
                "acme/x",
                &good,
                &["--level", "Privileged", "--may-bind", "cluster-admin"],
                "that is --level Admin",
            ),
            ("acme/x", &good, &["--context", "mars"], "there is no context mars: there are c"),
            ("x", &good, &[], "write PROVIDER/CLUSTER"),
            ("acme/X", &good, &[], "is no name of a provider or cluster"),
            ("acme/x", &good, &["--provider", "umbrella"], "leave one of them out"),
            ("acme/x", &good, &["--hub-context", "mars"], "mars"),
        ] {
            let path = file(bed, "refused.kubeconfig", kubeconfig).await?.display().to_string();
            let args: Vec<&str> =
                ["cluster", "add", name, "--kubeconfig", &path].iter().chain(more).copied().collect();
            let said = run(bed, &args).await?;
            said.is(1, &["error: ", says]);
        }
        for (args, says) in [
            (&["cluster", "add", "acme/x"][..], "--kubeconfig"),
            (&["cluster", "add", "acme/x", "--context", "c", "--labels", "emco.io/a=b"], "kept for EMCO"),
            (&["cluster", "add", "acme/x", "--context", "c", "--timeout", "soon"], "such as 30s"),
            (&["cluster", "remove"], "<PROVIDER/CLUSTER>"),
            (&["cluster", "remove", "berlin"], "write PROVIDER/CLUSTER"),
            (&["cluster", "rename"], "unrecognized subcommand"),
        ] {
            run(bed, args).await?.is(2, &[says]);
        }
        // An exec plug-in may be used to get there; it is never stored, as nothing but a token is.
        let listed =
            bed.hub().kubectl().run(&["get", "clusters.emco.io,secrets", "-n", "acme", "-o", "name"]).await?;
        assert!(!listed.contains("/x"), "{listed}");
        // Whoever may not write on the hub is told so.
        let viewer = file(bed, "viewer.kubeconfig", &bed.hub().kubeconfig_as("viewer", None)?).await?;
        let path = admin(bed, "c").await?;
        run_as(bed, &viewer, &["cluster", "add", "acme/x", "--kubeconfig", &path])
            .await?
            .is(1, &["you may not read cluster provider acme on the hub"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_exec_plug_in_gets_one_there_and_is_not_stored() {
    let bed = stage().await.unwrap();
    bed.explain(async {
        let kubectl = bed.edge("b").kubectl();
        kubectl.run(&["create", "serviceaccount", "boss", "-n", "default"]).await?;
        let grant = ["create", "clusterrolebinding", "boss", "--clusterrole=cluster-admin", "--serviceaccount=default:boss"];
        kubectl.run(&grant).await?;
        let token = kubectl.run(&["create", "token", "boss", "-n", "default"]).await?;
        let credential = format!(
            r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"{}"}}}}"#,
            token.trim()
        );
        let script = file(bed, "plugin.json", &credential).await?.display().to_string();
        let kubeconfig = changed(&bed.edge("b").kubeconfig()?, |file| {
            file["users"][0]["user"] = serde_json::json!({"exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/cat", "args": [script],
                "interactiveMode": "Never"}});
        })?;
        let path = file(bed, "exec.kubeconfig", &kubeconfig).await?.display().to_string();
        let labels = ["--labels", "tier=edge,edge=b", "--level", "Admin"];
        let add = [&["cluster", "add", "acme/b", "--kubeconfig", &path][..], &labels].concat();
        // Its Secret was made by hand, with other credentials: it is replaced once it is handed over, and not before.
        run(bed, &add).await?.is(1, &["Secret acme/b-kubeconfig is there already"]);
        let manager = format!("--field-manager={}", emco_crds::names::manager::CLI);
        let hand_over = ["annotate", "secret", "b-kubeconfig", "-n", "acme", "from=hand", &manager];
        bed.hub().kubectl().run(&hand_over).await?;
        let said = run(bed, &add).await?;
        // The Cluster was applied by somebody else, with the same content: nothing to quarrel about.
        said.is(0, &["acme/b is registered and ready"]);
        let kept = serde_json::to_string(&stored(bed, "acme", "b").await?)?;
        assert!(!kept.contains("exec") && !kept.contains(token.trim()) && !kept.contains("client-key"), "{kept}");
        Ok(())
    })
    .await;
}
