//! The CRDs go out as one YAML stream, for `emco-operator crds | kubectl apply --server-side -f -`.

use std::io::{ErrorKind, Write};

use anyhow::Context as _;

/// Prints what the folder `config/crd` holds.
pub fn print() -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text()?.as_bytes()) {
        // Who reads only the beginning has what they wanted.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("the CRDs cannot be written"),
    }
}

fn text() -> anyhow::Result<String> {
    let mut text = String::new();
    for (name, content) in emco_crds::crds::files().context("the CRDs cannot be generated")? {
        if name != "kustomization.yaml" {
            text.push_str("---\n");
            text.push_str(&content);
        }
    }
    Ok(text)
}
