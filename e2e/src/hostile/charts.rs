//! Charts that use as much as a render may: memory, time, keys and output.

use anyhow::Result;
use serde_json::json;

use super::{EDGES, Running, Size, deploy, on};
use crate::bed::Bed;
use crate::fake_edges;
use crate::operator::{chart, chart_map};

/// Makes 900 MB for each of two clusters; the random text keeps them from sharing one render.
const ALLOCATE: &str = r#"{{ $all := repeat 900000000 "x" -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: large}
data: {size: {{ len $all | quote }}, different: {{ randAlphaNum 8 | quote }}}
"#;

/// Few loop turns, each of some milliseconds: the clock is what ends it.
const SPIN: &str = r#"{{ $text := repeat 1000000 "x" -}}
{{ range until 1000000 }}{{ $_ := sha256sum $text }}{{ end -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: slow}
"#;

const KEYS: &str = r#"apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {key: {{ genPrivateKey "rsa" | quote }}}
"#;

const PRINT: &str = r#"{{ $text := repeat 1048576 "x" -}}
{{ range until 256 }}{{ $text }}
{{ end }}
"#;

pub(super) async fn allocate(bed: &Bed, project: &str) -> Result<Running> {
    let everywhere =
        json!({"allOf": EDGES.map(|edge| json!({"provider": super::PROVIDER, "cluster": edge}))});
    one(bed, project, "allocate", ALLOCATE, &[everywhere]).await
}

/// One deployment per place that the operator has for plans.
pub(super) async fn spin(bed: &Bed, project: &str, size: Size) -> Result<Running> {
    let places: Vec<_> = (0..size.of(1, 2, 4)).map(|_| on("a")).collect();
    one(bed, project, "spin", SPIN, &places).await
}

pub(super) async fn keys(bed: &Bed, project: &str) -> Result<Running> {
    one(bed, project, "keys", KEYS, &[json!({"allOf": [{"provider": fake_edges::PROVIDER, "selector": {}}]})])
        .await
}

pub(super) async fn print(bed: &Bed, project: &str) -> Result<Running> {
    one(bed, project, "print", PRINT, &[on("a")]).await
}

async fn one(
    bed: &Bed,
    project: &str,
    name: &str,
    template: &str,
    placements: &[serde_json::Value],
) -> Result<Running> {
    let package = chart(name, "1.0.0", &[("templates/all.yaml", template)])?;
    let source = json!({"configMapRef": {"name": "charts", "key": package.file_name()}});
    chart_map(bed, project, "charts", &[package]).await?;
    deploy(bed, project, name, &source, placements).await
}
