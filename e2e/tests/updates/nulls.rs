//! Fields of custom resources with nothing behind them, beside Helm: left out where the schema has something there.

use anyhow::ensure;
use emco_e2e::operator::{chart, deployed};

use super::beside::Beside;
use super::{SILENCE, deploy, fails, has, start, writes};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hollows.updates.example.com}
spec:
  group: updates.example.com
  scope: Namespaced
  names: {plural: hollows, singular: hollow, kind: Hollow, listKind: HollowList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer}
              note: {type: string, nullable: true}
              volumes: {type: array, items: {type: object, properties: {name: {type: string}}}}
              items:
                type: array
                items: {type: object, properties: {name: {type: string}, mounts: {type: array, items: {type: string}}}}
              labels: {type: object, additionalProperties: {type: string}}
";

const HOLLOW: &str = "
apiVersion: updates.example.com/v1
kind: Hollow
metadata: {name: web}
spec:
  size: {{ .Values.size }}
  note:
  volumes: {{ .Values.volumes }}
  items: [{name: a, mounts: }, {name: b, mounts: [m]}]
  labels: {app: web, example.com/none: }
";

#[tokio::test]
async fn nothing_in_a_custom_resource_is_what_it_is_with_helm() {
    let files = [
        ("values.yaml", "size: 1\nvolumes:\n"),
        ("crds/hollow.yaml", DEFINITION),
        ("templates/hollow.yaml", HOLLOW),
    ];
    let all = chart("web", "1.0.0", &files).unwrap();
    let bed = start("hollow", &all).await.unwrap();
    bed.explain(Box::pin(async {
        let beside = Beside::new(bed, "hollow", &all).await?;
        let steps = [
            ("", "{.spec}"),
            ("[{name: x}]", "{.spec.volumes}"),
            ("", "{.spec.volumes}{.spec.items}{.spec.labels}"),
        ];
        for (step, (volumes, fields)) in steps.into_iter().enumerate() {
            let values = format!("{{size: 1, volumes: \"{volumes}\"}}");
            deploy(bed, "hollow", &all, &values, "{}").await?;
            deployed(bed, "hollow", "shop", i64::try_from(step)? + 1).await?;
            beside.upgrade(&format!("volumes={volumes}")).await?;
            beside.agrees("hollow", "hollows/web", &[fields]).await?;
        }
        let mark = bed.edge("a").audit_mark()?;
        tokio::time::sleep(SILENCE).await;
        let none = writes(bed, "hollow", mark)?;
        ensure!(none.is_empty(), "{none:?}");
        deploy(bed, "hollow", &all, "{size: \"\", volumes: \"\"}", "{}").await?;
        let message = fails(bed, "hollow", "Invalid").await?;
        has(&message, &["spec.size", "Required value"])
    }))
    .await;
}
