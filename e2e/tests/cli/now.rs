//! Asking the operator to look now, and names that complete a line.

use emco_e2e::operator::project;

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
