//! Names of the hub, completed by the Tab key in real shells.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::programs::has_shell;
use emco_e2e::skip::skip;
use serde_json::json;
use tokio::process::Command;

use super::looks::{EVERYWHERE, deploy};
use super::rig::{STAGE, emco, file};

/// A terminal with a shell, and somebody who types.
const TYPIST: &str = include_str!("tab.py");
const ARN: &str = "arn:aws:eks:eu-west-1:111122223333:cluster/edge";

/// The folder with what the shells read when they start, and with `show`.
fn home(bed: &Bed) -> Result<std::path::PathBuf> {
    let home = bed.dir().join("typist");
    std::fs::create_dir_all(&home)?;
    let write = |name: &str, text: &str| std::fs::write(home.join(name), text).context("no file");
    write("bashrc", "source <(kubectl-emco completion bash)\nPS1='READY> '\n")?;
    write(
        ".zshrc",
        "autoload -Uz compinit\ncompinit -u -D\nsource <(kubectl-emco completion zsh)\nbindkey -e\nPROMPT='READY> '\n",
    )?;
    write(
        "start.fish",
        "kubectl-emco completion fish | source\nfunction fish_prompt\n    echo -n 'READY> '\nend\nfunction fish_greeting\nend\n",
    )?;
    write("show", "#!/bin/sh\nprintf '<<%s>>\\n' \"$*\"\n")?;
    std::fs::set_permissions(home.join("show"), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(home)
}

/// The lines that a shell runs, each after some words, Tab and Enter. One shell for all of them: it reads long before it is ready.
async fn completed(bed: &Bed, home: &Path, shell: &str, typed: &[&str]) -> Result<Vec<String>> {
    let at = |name: &str| home.join(name).display().to_string();
    let command = match shell {
        "bash" => vec!["bash".to_owned(), "--noprofile".to_owned(), "--rcfile".to_owned(), at("bashrc")],
        "zsh" => vec!["zsh".to_owned(), "-d".to_owned(), "-i".to_owned()],
        _ => vec![
            "fish".to_owned(),
            "--no-config".to_owned(),
            "-i".to_owned(),
            "-C".to_owned(),
            format!("source {}", at("start.fish")),
        ],
    };
    let folder = emco()?.parent().context("the program is in a folder")?.display().to_string();
    let more = file(bed, "eks.kubeconfig", CONTEXTS).await?.display().to_string();
    let mut typist = Command::new("python3");
    typist
        .args(["-c", TYPIST, &json!(typed).to_string()])
        .args(command)
        .env_clear()
        .env("PATH", format!("{}:{folder}:/usr/local/bin:/usr/bin:/bin", home.display()))
        .env("HOME", home)
        .env("ZDOTDIR", home)
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .env("KUBECONFIG", format!("{}:{more}", bed.hub().kubectl().kubeconfig().display()))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = bed.hear(&mut typist).await.context("there is no python3")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{shell}: {typed:?}: {said}");
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// A context with the name that EKS gives.
const CONTEXTS: &str = "
apiVersion: v1
kind: Config
clusters: [{name: edge, cluster: {server: https://edge.example.com}}]
users: [{name: edge, user: {token: none}}]
contexts: [{name: 'arn:aws:eks:eu-west-1:111122223333:cluster/edge', context: {cluster: edge, user: edge}}]
";

#[tokio::test]
async fn the_tab_key_completes_names_in_bash_zsh_and_fish() {
    let (there, missing): (Vec<&str>, Vec<&str>) =
        ["bash", "zsh", "fish"].into_iter().partition(|shell| has_shell(shell));
    for shell in missing {
        skip(
            "tab::the_tab_key_completes_names_in_bash_zsh_and_fish",
            &format!("needs {shell}, which could not be installed (no root or no network)"),
        );
    }
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "presses", EVERYWHERE).await?;
        let cluster = "{apiVersion: emco.io/v1alpha1, kind: Cluster, metadata: {name: tabbed, namespace: acme}, \
                       spec: {access: {kubeconfigSecretRef: {name: nowhere}}}}";
        bed.hub().kubectl().apply(cluster).await?;
        let home = home(bed)?;
        for shell in there {
            let mut left = vec![
                ("kubectl-emco sta", "kubectl-emco status".to_owned()),
                ("kubectl-emco get presses/t", "kubectl-emco get presses/till".to_owned()),
                ("kubectl-emco cluster cordon acme/tab", "kubectl-emco cluster cordon acme/tabbed".to_owned()),
                ("kubectl-emco status --cluster=acme/tab", "kubectl-emco status --cluster=acme/tabbed".to_owned()),
                ("kubectl-emco status --context arn:aws:ek", format!("kubectl-emco status --context {ARN}")),
                ("kubectl-emco status --context=arn:aws:ek", format!("kubectl-emco status --context={ARN}")),
            ];
            let mut said = Vec::new();
            // Without a word it gives up after three seconds, which a busy machine may take.
            for _ in 0..3 {
                let typed: Vec<&str> = left.iter().map(|(typed, _)| *typed).collect();
                said = completed(bed, &home, shell, &typed).await?;
                ensure!(said.len() == left.len(), "{shell}: {typed:?}: {said:?}");
                let mut lines = said.iter();
                left.retain(|(_, line)| lines.next() != Some(line));
                if left.is_empty() {
                    break;
                }
            }
            ensure!(left.is_empty(), "{shell}: {left:?}: {said:?}");
        }
        bed.hub().kubectl().run(&["delete", "ecl", "tabbed", "-n", "acme"]).await.map(drop)
    })
    .await;
}
