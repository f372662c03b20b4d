//! Command lines and addresses that are wrong.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::https::loopback::send;
use emco_e2e::operator::root;

use super::program::{Dashboard, ended};
use super::stage::{ON_A, TILL, beside_others, deploy, get, kubeconfig, project};

#[tokio::test]
async fn a_bad_filter_and_a_page_beyond_the_end_are_sentences() {
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "wrong", "Automatic").await?;
        deploy(bed, "wrong", ON_A).await?;
        let dashboard = Dashboard::start(bed, "viewer", &["-n", "wrong"]).await?;
        let ask = async |rest: &str| -> Result<(u16, String)> {
            let reply = send(dashboard.port, "GET", &format!("{}/{rest}", dashboard.path()), &[], "").await?;
            Ok((reply.status, reply.text()))
        };
        let (status, text) = ask("").await?;
        ensure!(status == 200 && text.contains(TILL), "{status} {text}");
        for (rest, wanted, words) in [
            ("?state=Fine", 400, "state=Fine is no state: write Ready, NotReady, Unknown or Waiting"),
            ("?cluster=a", 400, "cluster=a is no cluster: write PROVIDER/CLUSTER"),
            ("?page=zero", 400, "page=zero is no page: write a number from 1"),
            ("?page=0", 400, "page=0 is no page"),
            ("?page=99", 404, "there is no page 99 of deployments: there is 1 page"),
            ("clusters?page=99", 404, "there is no page 99 of clusters"),
            ("?colour=red", 400, "there is no filter colour"),
            ("deployments/wrong/nothing", 404, "there is no deployment wrong/nothing"),
            ("nowhere", 404, ""),
        ] {
            let (status, text) = ask(rest).await?;
            ensure!(status == wanted && text.contains(words), "{rest}: {status} {text}");
        }
        // Forms send what nobody filled in.
        let (status, text) = ask("?name=&state=&page=").await?;
        ensure!(status == 200 && text.contains(TILL), "{status} {text}");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_port_in_use_is_a_sentence_and_two_dashboards_have_two_secrets() {
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "ports", "Automatic").await?;
        let first = Dashboard::start(bed, "viewer", &["-n", "ports"]).await?;
        let port = first.port.to_string();
        let output = ended(bed, &kubeconfig(bed, "viewer")?, &["-n", "ports", "--port", &port]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(1) && said.contains(&format!("port {port} of 127.0.0.1 is in use")),
            "{said}"
        );
        let second = Dashboard::start(bed, "viewer", &["-n", "ports"]).await?;
        ensure!(first.path() != second.path() && first.port != second.port, "both are at one address");
        let theirs = send(second.port, "GET", &format!("{}/", first.path()), &[], "").await?;
        ensure!(theirs.status == 404, "{}", theirs.status);
        // Whoever lists the processes of the machine reads no secret.
        let command = tokio::fs::read(format!("/proc/{}/cmdline", first.pid())).await?;
        let secret = first.path().trim_matches('/');
        ensure!(!String::from_utf8_lossy(&command).contains(secret), "the secret is in its arguments");
        ensure!(first.interrupt().await? == Some(0), "Ctrl-C is an error");
        Ok(())
    }))
    .await;
}

/// The commands of the book's page, without the shell's sign.
fn commands() -> Result<Vec<String>> {
    let page = std::fs::read_to_string(root().join("docs/dashboard.md"))?;
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ "));
    Ok(lines.map(str::to_owned).collect())
}

#[tokio::test]
async fn the_command_of_the_page_prints_a_link_that_leads_to_the_project() {
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "shop", "Automatic").await?;
        deploy(bed, "shop", ON_A).await?;
        let commands = commands()?;
        ensure!(!commands.is_empty(), "the page has no command");
        for command in commands {
            let args = command.strip_prefix("kubectl emco dashboard ").context("another command")?;
            let args: Vec<&str> = args.split_whitespace().collect();
            let dashboard = Dashboard::start(bed, "viewer", &args).await?;
            let reply = send(dashboard.port, "GET", &format!("{}/", dashboard.path()), &[], "").await?;
            ensure!(reply.status == 200 && reply.text().contains("shop/till"), "{command}: {}", reply.text());
        }
        Ok(())
    }))
    .await;
}
