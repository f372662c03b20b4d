//! In: `make static` and the Containerfile. Out: programs that need nothing of the machine they run on, and an operator that works
//! in what the Containerfile makes.
//!
//! There is no container engine here. A folder with exactly what the Containerfile copies, as the root of the file system, is what a
//! container of `scratch` is.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use emco_crds::Cluster;
use emco_crds::conditions::types;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    chart, chart_map, cluster, deployed, deployment, is, project, provider, root, secret, wait,
};
use tokio::process::Command;

async fn run(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).kill_on_drop(true).output().await.context("it cannot be started")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?} failed:\n{}", command.as_std(), error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The programs, built. Cargo builds them once for this, `make conformance`, `make demo` and `make bench`.
async fn programs() -> Result<PathBuf> {
    // The runner of the tests sets the variable for their harness. Cargo would build all libraries anew with it.
    run(Command::new("make").arg("-C").arg(root()).arg("static").env_remove("RUSTC_BOOTSTRAP")).await?;
    Ok(root().join("target/image"))
}

/// Whether the kernel must find a loader for a program: the header `PT_INTERP` of ELF says so.
fn needs_loader(program: &[u8]) -> Result<bool> {
    const INTERPRETER: u32 = 3;
    ensure!(program.get(..6) == Some(b"\x7fELF\x02\x01"), "it is no 64-bit little-endian ELF file");
    let bytes =
        |at: usize, length: usize| program.get(at..at + length).context("the ELF file ends too early");
    let number = |at: usize, length: usize| -> Result<usize> {
        let mut wide = [0; 8];
        wide[..length].copy_from_slice(bytes(at, length)?);
        usize::try_from(u64::from_le_bytes(wide)).context("a number is too large")
    };
    let (headers, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    ensure!(count > 0, "it has no program headers");
    for at in 0..count {
        if number(headers + at * size, 4)? == usize::try_from(INTERPRETER)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a Containerfile says.
#[derive(Debug, Default)]
struct Image {
    user: String,
    entry: Vec<String>,
    command: Vec<String>,
}

/// Carries out a Containerfile in an empty folder.
fn build(containerfile: &str, into: &Path) -> Result<Image> {
    let mut image = Image::default();
    let words = |text: &str| -> Result<Vec<String>> { Ok(serde_json::from_str(text)?) };
    let lines =
        containerfile.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (step, rest) = line.split_once(' ').with_context(|| format!("{line:?} is no step"))?;
        match step {
            "FROM" => {
                ensure!(rest == "scratch", "the test knows how to make an image of scratch, not of {rest}");
            }
            "COPY" => {
                let (from, to) = rest.split_once(' ').with_context(|| format!("{line:?} names no target"))?;
                let to = into.join(to.trim_start_matches('/'));
                std::fs::create_dir_all(to.parent().context("a target is in a folder")?)?;
                std::fs::copy(root().join(from), &to).with_context(|| format!("COPY {from}"))?;
            }
            "USER" => rest.clone_into(&mut image.user),
            "ENTRYPOINT" => image.entry = words(rest)?,
            "CMD" => image.command = words(rest)?,
            "LABEL" => {}
            other => bail!("the test does not know the step {other}"),
        }
    }
    ensure!(!image.user.is_empty() && !image.user.starts_with('0'), "the image does not say as whom it runs");
    Ok(image)
}

/// A program and arguments that run something with a folder as its root: as the image's user where we may choose one.
fn inside(folder: &Path, image: &Image, args: &[&str]) -> (PathBuf, Vec<String>) {
    let folder = folder.display().to_string();
    let own = |text: &str| text.to_owned();
    let mut words = if rustix::process::geteuid().is_root() {
        vec![own("--userspec"), image.user.clone(), folder]
    } else {
        vec![own("--user"), own("--map-root-user"), own("chroot"), folder]
    };
    words.extend(image.entry.iter().cloned());
    words.extend(args.iter().map(|&arg| own(arg)));
    let program = if rustix::process::geteuid().is_root() { "/usr/sbin/chroot" } else { "/usr/bin/unshare" };
    (program.into(), words)
}

/// By name, as in production; the bed's own kubeconfigs have addresses.
fn by_name(kubeconfig: &str) -> String {
    kubeconfig.replace("https://127.0.0.1:", "https://localhost:")
}

async fn works(bed: &Bed, folder: &Path, image: &Image) -> Result<()> {
    // What a kubelet mounts: names, a folder for state, and credentials (here those of a kubeconfig).
    for path in ["etc", "var/lib/emco", "run/emco"] {
        std::fs::create_dir_all(folder.join(path))?;
    }
    std::fs::write(folder.join("etc/hosts"), "127.0.0.1 localhost\n")?;
    std::fs::write(folder.join("etc/resolv.conf"), "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")?;
    std::fs::write(folder.join("run/emco/kubeconfig"), by_name(&bed.hub().kubeconfig()?))?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.join("var/lib/emco"), open)?;

    let crds = root().join("config/crd").display().to_string();
    bed.hub().kubectl().run(&["apply", "--server-side", "-k", &crds]).await?;
    bed.hub()
        .kubectl()
        .run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"])
        .await?;
    ensure!(image.command == ["run"], "the image does not run the operator by itself");
    let (program, args) = inside(
        folder,
        image,
        &[
            "run",
            "--listen",
            "127.0.0.1:0",
            "--debug-listen",
            "127.0.0.1:0",
            "--allow-edge-address",
            "127.0.0.0/8",
        ],
    );
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let operator = bed
        .run("operator", &program, &args, &[("KUBECONFIG", "/run/emco/kubeconfig"), ("NO_COLOR", "1")])
        .await?;

    let deploying = async {
        provider(bed, "acme").await?;
        secret(bed, "acme", "a", &by_name(&bed.edge("a").kubeconfig()?)).await?;
        bed.hub().kubectl().apply(&cluster("acme", "a")).await?;
        wait::<Cluster, _>(bed, "acme", "a", |cluster| is(cluster.status.as_ref(), types::READY, "True"))
            .await?;
        project(bed, "shop").await?;
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
        let note = chart("note", "1.0.0", &[("templates/note.yaml", map)])?;
        chart_map(bed, "shop", "charts", std::slice::from_ref(&note)).await?;
        let spec = "placement: {allOf: [{selector: {}}]}";
        bed.hub().kubectl().apply(&deployment("shop", "till", std::slice::from_ref(&note), spec)).await?;
        deployed(bed, "shop", "till", 1).await
    };
    emco_e2e::operator::unless_ended(&operator, deploying).await?;
    bed.edge("a").kubectl().run(&["get", "configmap", "note", "-n", "shop"]).await.map(drop)
}

#[tokio::test]
async fn the_static_programs_need_no_loader_and_the_image_deploys() {
    let built = programs().await.unwrap();
    for name in ["emco-operator", "kubectl-emco"] {
        let program = std::fs::read(built.join(name)).unwrap();
        assert!(!needs_loader(&program).unwrap(), "{name} is linked dynamically");
        let version = run(Command::new(built.join(name)).arg("version").env_clear()).await.unwrap();
        assert_eq!(version, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    }
    // The test itself is what a program with a loader looks like.
    assert!(needs_loader(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap());

    let spec = BedSpec::default()
        .with(PlaneSpec::new("hub", Parts::Controllers))
        .with(PlaneSpec::new("a", Parts::ApiServer));
    let bed = Bed::start(spec).await.unwrap();
    bed.explain(async {
        let folder = bed.dir().join("image");
        std::fs::create_dir_all(&folder)?;
        let image = build(&std::fs::read_to_string(root().join("Containerfile"))?, &folder)?;
        let (program, args) = inside(&folder, &image, &["version"]);
        let version = run(Command::new(program).args(args)).await?;
        assert_eq!(version, format!("emco-operator {}\n", env!("CARGO_PKG_VERSION")));
        Box::pin(works(&bed, &folder, &image)).await
    })
    .await;
}
