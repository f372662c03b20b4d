//! Makes an image with buildah by `make image`, and unpacks it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::programs::{Program, Programs};
use serde_json::Value;
use tokio::process::Command;

use crate::{make, run};

const NAME: &str = "localhost/emco-operator:test";

/// What an image says of itself.
#[derive(Debug)]
pub struct Image {
    pub user: String,
    pub entry: Vec<String>,
    pub command: Vec<String>,
    /// The label of the version.
    pub version: String,
}

/// Buildah, with everything that it keeps in a folder.
pub struct Engine {
    folder: PathBuf,
    program: PathBuf,
}

impl Engine {
    pub async fn new(folder: &Path) -> Result<Self> {
        let buildah = Programs::get(&[Program::Buildah]).await?.path(Program::Buildah)?.to_owned();
        let network = folder.join("network");
        std::fs::create_dir_all(&network)?;
        // It wants the program that connects containers, although none runs.
        std::os::unix::fs::symlink("/bin/false", network.join("netavark"))?;
        std::fs::write(folder.join("policy.json"), r#"{"default": [{"type": "insecureAcceptAnything"}]}"#)?;
        let conf = format!("[engine]\nhelper_binaries_dir = [\"{}\"]\n", network.display());
        std::fs::write(folder.join("containers.conf"), conf)?;
        // Whoever is no administrator is one in a user namespace of their own.
        let alone = if rustix::process::geteuid().is_root() { "" } else { "unshare --user --map-root-user " };
        let at = folder.display();
        let script = format!(
            "#!/bin/sh\n\
             # A policy is an option of those commands alone that bring images in or out.\n\
             case \"$1 $2\" in\n\
             build\\ *) shift; set -- build --signature-policy {at}/policy.json \"$@\";;\n\
             manifest\\ push) shift 2; set -- manifest push --signature-policy {at}/policy.json \"$@\";;\n\
             esac\n\
             export CONTAINERS_CONF={at}/containers.conf _CONTAINERS_USERNS_CONFIGURED=done\n\
             exec {alone}{} --root {at}/root --runroot {at}/run --storage-driver vfs \"$@\"\n",
            buildah.display()
        );
        let program = folder.join("buildah");
        std::fs::write(&program, script)?;
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        Ok(Self { folder: folder.to_owned(), program })
    }

    /// Makes the image, unpacks it into the folder, and answers what it says.
    pub async fn image(&self, into: &Path) -> Result<Image> {
        let engine = format!("ENGINE={}", self.program.display());
        // A second time, as people do.
        for _ in 0..2 {
            run(&mut make(&["image", &engine, &format!("IMAGE={NAME}")])).await?;
        }
        let own = match std::env::consts::ARCH {
            "aarch64" => "arm64",
            _ => "amd64",
        };
        self.unpack(NAME, &[(own, into)]).await?.pop().context("there is no image")
    }

    /// The program that `make image` is told.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Unpacks the images of a list, which are for these architectures and no others, each into its folder:
    /// <https://github.com/opencontainers/image-spec>.
    pub async fn unpack(&self, name: &str, wanted: &[(&str, &Path)]) -> Result<Vec<Image>> {
        let layout = self.folder.join("layout");
        let target = format!("oci:{}", layout.display());
        run(Command::new(&self.program).args(["manifest", "push", "--all", name, &target])).await?;
        let index = read(&blob(&layout, &read(&layout.join("index.json"))?["manifests"][0])?)?;
        let images = index["manifests"].as_array().context("the list names no images")?;
        ensure!(images.len() == wanted.len(), "the list names {} images", images.len());
        let mut unpacked = Vec::new();
        for (arch, into) in wanted {
            let image = images.iter().find(|image| image["platform"]["architecture"] == *arch);
            let image = image.with_context(|| format!("no image is for {arch}: {index}"))?;
            unpacked.push(extract(&layout, image, arch, into).await?);
        }
        Ok(unpacked)
    }
}

fn read(file: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

fn blob(layout: &Path, descriptor: &Value) -> Result<PathBuf> {
    let digest = descriptor["digest"].as_str().context("a descriptor has no digest")?;
    Ok(layout.join("blobs").join(digest.replacen(':', "/", 1)))
}

/// One image of a layout, unpacked into a folder.
async fn extract(layout: &Path, image: &Value, arch: &str, into: &Path) -> Result<Image> {
    let manifest = read(&blob(layout, image)?)?;
    let config = read(&blob(layout, &manifest["config"])?)?;
    ensure!(config["architecture"] == arch, "it says another architecture: {}", config["architecture"]);
    std::fs::create_dir_all(into)?;
    for layer in manifest["layers"].as_array().context("the image has no layers")? {
        let mut tar = Command::new("tar");
        run(tar.arg("-xf").arg(blob(layout, layer)?).arg("-C").arg(into).stdin(Stdio::null())).await?;
    }
    let config = &config["config"];
    let words = |value: &Value| -> Result<Vec<String>> { Ok(serde_json::from_value(value.clone())?) };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let user = text(&config["User"]);
    ensure!(!user.is_empty() && !user.starts_with('0'), "the image does not say as whom it runs");
    Ok(Image {
        user,
        entry: words(&config["Entrypoint"])?,
        command: words(&config["Cmd"])?,
        version: text(&config["Labels"]["org.opencontainers.image.version"]),
    })
}
