//! Kubectl that finds the program, and shells that complete its words.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use tokio::process::Command;

use super::rig::{STAGE, emco, run};

#[tokio::test]
async fn kubectl_finds_the_program_completes_it_and_passes_its_exit_code_on() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let program = emco()?;
        let folder = program.parent().context("the program is in a folder")?;
        let scripts = bed.dir().join("scripts");
        std::fs::create_dir_all(&scripts)?;
        let script = run(bed, &["completion", "kubectl"]).await?;
        script.is(0, &["kubectl_complete-emco"]);
        let complete = scripts.join("kubectl_complete-emco");
        std::fs::write(&complete, &script.out)?;
        std::fs::set_permissions(&complete, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let path = format!("{}:{}:/usr/bin:/bin", folder.display(), scripts.display());
        let kubectl = async |args: &[&str]| {
            let mut kubectl = Command::new(bed.hub().kubectl().program());
            kubectl
                .args(args)
                .env_clear()
                .env("PATH", &path)
                .env("HOME", bed.dir())
                .env("KUBECONFIG", bed.hub().kubectl().kubeconfig());
            let output = bed.hear(&mut kubectl).await?;
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            Ok::<_, anyhow::Error>((output.status.code(), text(&output.stdout) + &text(&output.stderr)))
        };
        assert_eq!(
            kubectl(&["emco", "version"]).await?,
            (Some(0), format!("kubectl-emco {}\n", env!("CARGO_PKG_VERSION")))
        );
        assert_eq!(kubectl(&["emco", "status", "a/b/c"]).await?.0, Some(2));
        let (_, said) = kubectl(&["__complete", "emco", "clu"]).await?;
        assert!(said.starts_with("cluster\nclusters\n:4\n"), "{said}");
        let (_, said) = kubectl(&["__complete", "emco", "status", "--state", "Un"]).await?;
        assert!(said.starts_with("Unreachable\nUnknown\n:4\n"), "{said}");
        Ok(())
    })
    .await;
}

/// Words as a shell completes them.
async fn answered(bed: &Bed, shell: &str, script: &str) -> Result<Vec<String>> {
    let folder = emco()?.parent().context("the program is in a folder")?.display().to_string();
    let mut command = Command::new(shell);
    command
        .args(["-c", script])
        .env_clear()
        .env("PATH", format!("{folder}:/usr/local/bin:/usr/bin:/bin"))
        .env("HOME", bed.dir())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = bed.hear(&mut command).await.with_context(|| format!("there is no {shell}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.is_empty(), "{shell}: {script}\n{said}");
    let words = String::from_utf8(output.stdout)?;
    Ok(words.lines().map(|line| line.split('\t').next().unwrap_or_default().trim().to_owned()).collect())
}

/// What bash does when somebody presses the key after these words: it calls the function that the script registered.
async fn in_bash(bed: &Bed, words: &[&str]) -> Result<Vec<String>> {
    let (last, before) = (words.last().unwrap_or(&""), words.iter().rev().nth(1).unwrap_or(&""));
    let script = format!(
        r#"
source <(kubectl-emco completion bash)
[[ $(complete -p kubectl-emco) =~ -F\ ([^ ]+) ]] || exit 9
COMP_WORDS=({}) COMP_CWORD={} COMP_LINE="{}"
COMP_POINT=${{#COMP_LINE}}
"${{BASH_REMATCH[1]}}" kubectl-emco '{last}' '{before}'
printf '%s\n' "${{COMPREPLY[@]}}""#,
        words.iter().map(|word| format!("'{word}' ")).collect::<String>(),
        words.len() - 1,
        words.join(" "),
    );
    answered(bed, "bash", &script).await
}

#[tokio::test]
async fn shells_complete_commands_flags_and_values() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        assert_eq!(in_bash(bed, &["kubectl-emco", "clu"]).await?, ["cluster", "clusters"]);
        assert_eq!(in_bash(bed, &["kubectl-emco", "orphans", "--reb"]).await?, ["--rebuild"]);
        assert_eq!(
            in_bash(bed, &["kubectl-emco", "status", "--state", "Un"]).await?,
            ["Unreachable", "Unknown"]
        );
        // bash splits a word at "=".
        assert_eq!(
            in_bash(bed, &["kubectl-emco", "status", "--state", "=", "Un"]).await?,
            ["Unreachable", "Unknown"]
        );
        assert_eq!(in_bash(bed, &["kubectl-emco", "reconcile", "capp", ""]).await?, [""]);
        Ok(())
    })
    .await;
}
