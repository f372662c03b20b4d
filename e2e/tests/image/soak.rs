//! Makes an image and a release, and deploys with the operator of the image.
//!
//! Images are made by a real engine, and nothing runs containers here: a folder with what is in the image, as the root of the file
//! system, is what a container of `scratch` is.

mod dist;
mod engine;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use emco_crds::Cluster;
use emco_crds::conditions::types;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    chart, chart_map, cluster, deployed, deployment, is, project, provider, root, secret, wait,
};
use tokio::process::Command;

use super::arches::{ARCHES, BOTH, BUILT, checkout};
use super::{make, make_in, run};
use engine::{Engine, Image};

/// The programs, built. Cargo builds them once for this and `make bench`.
async fn programs() -> Result<PathBuf> {
    run(&mut make(&["build"])).await?;
    Ok(root().join("target/image"))
}

/// What programs are to call their version: `make build` knows the commit.
async fn version() -> String {
    let describe = ["describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=-changed"];
    let version = env!("CARGO_PKG_VERSION");
    match run(Command::new("git").arg("-C").arg(root()).args(describe)).await {
        Ok(commit) => format!("{version} (commit {})", commit.trim()),
        // An archive of the sources has no commit.
        Err(_) => version.to_owned(),
    }
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
            "--probe-listen",
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
    let version = version().await;
    for name in ["emco-operator", "kubectl-emco"] {
        let program = std::fs::read(built.join(name)).unwrap();
        assert!(!needs_loader(&program).unwrap(), "{name} is linked dynamically");
        let said = run(Command::new(built.join(name)).arg("version").env_clear()).await.unwrap();
        assert_eq!(said, format!("{name} {version}\n"));
    }
    // The test itself is what a program with a loader looks like.
    assert!(needs_loader(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap());

    let spec = BedSpec::bare_hub().with(PlaneSpec::new("a", Parts::ApiServer));
    let bed = Bed::start(spec).await.unwrap();
    bed.explain(async {
        let folder = bed.dir().join("image");
        let image = Engine::new(&bed.dir().join("engine")).await?.image(&folder).await?;
        ensure!(image.version == env!("CARGO_PKG_VERSION"), "the label of the version is {}", image.version);
        let (program, args) = inside(&folder, &image, &["version"]);
        assert_eq!(run(Command::new(program).args(args)).await?, format!("emco-operator {version}\n"));
        Box::pin(works(&bed, &folder, &image)).await
    })
    .await;
}

#[tokio::test]
async fn one_image_holds_the_operator_of_both_architectures() {
    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("checkout");
    std::fs::create_dir(&sources).unwrap();
    checkout(&sources).await.unwrap();
    let engine = Engine::new(&folder.path().join("engine")).await.unwrap();
    let name = "localhost/emco-operator:pair";
    let (tool, image) = (format!("ENGINE={}", engine.program().display()), format!("IMAGE={name}"));
    // A second time, as people do.
    for _ in 0..2 {
        run(&mut make_in(&sources, &["image", BUILT, &tool, &image, ARCHES])).await.unwrap();
    }
    let into = BOTH.map(|arch| (arch, folder.path().join(arch)));
    let wanted: Vec<_> = into.iter().map(|(arch, into)| (*arch, into.as_path())).collect();
    let images = engine.unpack(name, &wanted).await.unwrap();
    for (image, (arch, into)) in images.iter().zip(wanted) {
        assert_eq!(
            (&image.entry[..], &image.command[..]),
            (&["/emco-operator".to_owned()][..], &["run".to_owned()][..])
        );
        let held = std::fs::read_to_string(into.join("emco-operator")).unwrap();
        assert_eq!(held, format!("emco-operator for {arch}"));
    }
}
