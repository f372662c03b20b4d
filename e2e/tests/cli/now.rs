//! Asking the operator to look now, and names that complete a line.

use emco_e2e::operator::{deployed, project};

use super::looks::{EVERYWHERE, deploy};
use super::rig::{STAGE, file, run, run_as};

#[tokio::test]
async fn reconcile_waits_until_the_operator_has_looked_and_says_how_it_stands() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "asks", EVERYWHERE).await?;
        run(bed, &["reconcile", "asks/till"]).await?.is(0, &["asks/till was looked at; ready: True"]);
        run(bed, &["reconcile", "capp", "asks/till"]).await?.is(0, &["asks/till was looked at; ready: True"]);
        run(bed, &["reconcile", "cluster", "acme/a"]).await?.is(0, &["acme/a was looked at; ready: True"]);
        run(bed, &["reconcile", "till", "-n", "asks"]).await?.is(0, &["asks/till was looked at"]);
        // A change that is refused is not as wanted.
        let patch = "spec: {overrideValues: [{app: nothing, values: {a: 1}}]}";
        bed.hub().kubectl().run(&["patch", "dig", "till", "-n", "asks", "--type=merge", "-p", patch]).await?;
        run(bed, &["reconcile", "asks/till"]).await?.is(3, &["ready: False (AppNotFound)"]);
        for (words, code, said) in [
            (&["reconcile", "asks/none"][..], 1, "there is no deployment intent group none"),
            (&["reconcile", "capp", "asks/none"], 1, "there is no composite app asks/none"),
            (&["reconcile", "cluster", "acme/none"], 1, "there is no cluster acme/none"),
            (&["reconcile", "cluster", "berlin"], 2, "write PROVIDER/CLUSTER"),
            (&["reconcile", "pod", "asks/till"], 2, "no kind that can be asked for"),
            (&["reconcile"], 2, "NAME"),
        ] {
            run(bed, words).await?.is(code, &[said]);
        }
        let nobody = file(bed, "asker.kubeconfig", &bed.hub().kubeconfig_as("asker", None)?).await?;
        run_as(bed, &nobody, &["reconcile", "cluster", "acme/a"])
            .await?
            .is(1, &["you may not change cluster acme/a"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn wait_ends_when_a_deployment_is_as_asked_for_or_the_time_is_over() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "waits", EVERYWHERE).await?;
        let kubectl = bed.hub().kubectl();
        let wait = async |words: &[&str]| run(bed, &[&["wait", "waits/till"][..], words].concat()).await;
        wait(&["--for=applied"]).await?.is(0, &["waits/till is applied: 2 clusters have revision 1"]);
        wait(&["--for=ready", "--timeout=0s"]).await?.is(0, &["waits/till is ready"]);
        // It comes while somebody waits.
        let patch = "spec: {overrideValues: [{app: note, values: {key: another}}]}";
        let edit = async || {
            let edit = ["patch", "dig", "till", "-n", "waits", "--type=merge", "-p", patch];
            kubectl.run(&edit).await.map(drop)
        };
        let (said, edited) = tokio::join!(wait(&["--for=revision=2", "--timeout=2m", "-o", "json"]), edit());
        edited?;
        let said = said?;
        said.is(0, &[]);
        let answer: serde_json::Value = serde_json::from_str(&said.out)?;
        assert_eq!(
            answer,
            serde_json::json!({"deployment": "waits/till", "for": "revision=2", "met": true, "revision": 2,
                "message": "2 clusters have revision 2"})
        );
        // What is refused is not applied, though what ran goes on.
        let patch = "spec: {overrideValues: [{app: nothing, values: {a: 1}}]}";
        kubectl.run(&["patch", "dig", "till", "-n", "waits", "--type=merge", "-p", patch]).await?;
        run(bed, &["reconcile", "waits/till"]).await?.is(3, &["ready: False (AppNotFound)"]);
        let never = "and will not be before something is changed: ";
        let refused = wait(&["--for=applied", "--timeout=10m", "-o", "json"]).await?;
        refused.is(1, &["error: waits/till is not applied, ", never, "Resolved is False (AppNotFound)"]);
        assert!(refused.out.is_empty(), "{}", refused.out);
        wait(&["--for=revision=3"])
            .await?
            .is(1, &["its revision is 2, not 3; Resolved is False (AppNotFound)"]);
        wait(&["--for=revision=2", "--timeout=0s"]).await?.is(0, &["waits/till is at revision 2"]);
        wait(&["--for=delete", "--timeout=0s"])
            .await?
            .is(3, &["waits/till is not gone", "nobody deletes it"]);
        for (words, code, said) in [
            (&["wait", "waits/none", "--for=ready"][..], 1, "there is no deployment intent group none"),
            (&["wait", "waits/till", "--for=wave=canary"], 1, "it has no spec.rollout.waves"),
            (
                &["wait", "waits/till", "--for=soon"],
                2,
                "write applied, ready, revision=NUMBER, wave=NAME or delete",
            ),
            (&["wait", "waits/till"], 2, "--for"),
            (&["wait", "--help"], 0, "3 it was not so before the time was over"),
        ] {
            run(bed, words).await?.is(code, &[said]);
        }
        // Nothing matches: it could come with a label, and does not.
        let place = async |tier: &str| {
            let placement =
                format!("{{allOf: [{{provider: acme, selector: {{matchLabels: {{tier: {tier}}}}}}}]}}");
            let values = "[{app: note, values: {key: another}}]";
            let patch = format!("spec: {{overrideValues: {values}, placement: {placement}}}");
            let args = ["patch", "dig", "till", "-n", "waits", "--type=merge", "-p", &patch];
            kubectl.run(&args).await.map(drop)
        };
        place("nowhere").await?;
        wait(&["--for=ready"]).await?.is(1, &["waits/till is not ready, ", never, "tier=nowhere"]);
        let once = wait(&["--for=ready", "--timeout=0s"]).await?;
        once.is(3, &["waits/till is not ready after 0 s", "tier=nowhere"]);
        place("edge").await?;
        deployed(bed, "waits", "till", 2).await?;
        let delete =
            async || kubectl.run(&["delete", "dig", "till", "-n", "waits", "--wait=false"]).await.map(drop);
        let (gone, left, deleted) = tokio::join!(
            wait(&["--for=delete", "--timeout=2m"]),
            wait(&["--for=revision=9", "--timeout=2m"]),
            delete()
        );
        deleted?;
        gone?.is(0, &["waits/till is gone"]);
        left?.is(1, &["deployment intent group"]);
        wait(&["--for=delete", "--timeout=0s"]).await?.is(0, &["waits/till is gone"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn names_of_the_hub_complete_a_line() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, "completes").await?;
        deploy(bed, "completes", EVERYWHERE).await?;
        let complete = async |words: &[&str]| {
            let mut found = Vec::new();
            // Without a word it gives up after three seconds, which a busy machine may take.
            for _ in 0..3 {
                let said = run(bed, &[&["__complete"][..], words].concat()).await?;
                said.is(0, &[]);
                found = said.out.lines().map(str::to_owned).collect::<Vec<_>>();
                if found.len() > 1 {
                    break;
                }
            }
            Ok::<_, anyhow::Error>(found)
        };
        assert_eq!(complete(&["get", "completes/"]).await?, ["completes/till", ":4"]);
        assert_eq!(complete(&["status", "-n", "completes", "t"]).await?, ["till", ":4"]);
        assert_eq!(complete(&["get", "completes/till", "--cluster", "acme/a"]).await?, ["acme/a", ":4"]);
        assert_eq!(
            complete(&["get", "completes/till", "--cluster=acme/b"]).await?,
            ["--cluster=acme/b", ":4"]
        );
        assert_eq!(complete(&["get", "completes/till", "--app", ""]).await?, ["gate", "note", ":4"]);
        assert_eq!(complete(&["diff", "completes/till", "--revision", ""]).await?, ["1", ":4"]);
        assert_eq!(complete(&["clusters", "--provider", "ac"]).await?, ["acme", ":4"]);
        assert_eq!(complete(&["reconcile", "capp", "completes/"]).await?, ["completes/till", ":4"]);
        assert_eq!(complete(&["status", "-n", "complet"]).await?, ["completes", ":4"]);
        // Without a hub there are no names, at once and without a word.
        let said = run_as(bed, std::path::Path::new("/nowhere"), &["__complete", "get", ""]).await?;
        said.is(0, &[]);
        assert_eq!((said.out.as_str(), said.err.as_str()), (":4\n", ""));
        Ok(())
    })
    .await;
}
