//! In: an operator that is killed at random moments of a deployment's life. Out: the edges and the hub end as if it had not been.

mod soak;
mod taken;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    OperatorInTurn, SOON, chart, chart_map, deployed, deployment, project, register, unless_ended,
};
use emco_e2e::package::Package;
use emco_e2e::random::Random;
use emco_e2e::wait::wait_until_gone;
use serde_json::Value;

/// Workloads and hooks run on `a`; `b` has the rest of the app.
static IN_TURN: OperatorInTurn = OperatorInTurn::new(|| {
    let (a, b) = (PlaneSpec::edge("a"), PlaneSpec::new("b", Parts::ApiServer));
    BedSpec::bare_hub().with(a.proxied()).with(b.proxied())
});

const EDGES: [&str; 2] = ["a", "b"];
const KINDS: &str = "configmaps,secrets,services,deployments.apps,jobs.batch";
const TENANT: &str = "crash";

fn web() -> Result<Package> {
    let hook = r#"
{{- if .Values.runs }}
apiVersion: batch/v1
kind: Job
metadata:
  name: prepare
  annotations: {helm.sh/hook: "pre-install,pre-upgrade,post-delete", helm.sh/hook-delete-policy: before-hook-creation}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: prepare, image: example.com/prepare}]
{{- end }}
"#;
    let web = r"
{{- range $i := until 8 }}
apiVersion: v1
kind: ConfigMap
metadata: {name: page-{{ $.Values.page }}-{{ $i }}}
data: {page: {{ $.Values.page | quote }}}
---
{{- end }}
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {key: {{ .Values.page | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
{{- if .Values.runs }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: example.com/web, env: [{name: PAGE, value: {{ .Values.page | quote }}}]}
{{- end }}
";
    chart(
        "web",
        "1.0.0",
        &[
            ("values.yaml", "page: one\nruns: false\n"),
            ("templates/hook.yaml", hook),
            ("templates/web.yaml", web),
        ],
    )
}

/// A step of a life.
#[derive(Debug, Clone, Copy)]
enum Step {
    Install,
    Update,
    Delete,
}

const LIFE: [Step; 3] = [Step::Install, Step::Update, Step::Delete];

/// What a step leaves: on each edge, each object with what it says; and on the hub, whether
/// revisions are stored, and the names of the shards.
type Left = BTreeMap<String, Value>;

async fn begin(bed: &Bed, step: Step, web: &Package) -> Result<()> {
    let hub = bed.hub().kubectl();
    let values = |page: &str| {
        let spec = format!(
            "placement: {{allOf: [{{selector: {{matchLabels: {{tier: edge}}}}}}]}}\n\
             overrideValues: [{{app: web, values: {{page: {page}}}}}, \
             {{app: web, clusters: [{{provider: acme, cluster: a}}], values: {{runs: true}}}}]"
        );
        deployment(TENANT, "shop", std::slice::from_ref(web), &spec)
    };
    match step {
        Step::Install => hub.apply(&values("red")).await.map(drop),
        Step::Update => hub.apply(&values("blue")).await.map(drop),
        Step::Delete => hub.run(&["delete", "dig", "shop", "-n", TENANT, "--wait=false"]).await.map(drop),
    }
}

async fn end(bed: &Bed, step: Step) -> Result<()> {
    match step {
        Step::Install => deployed(bed, TENANT, "shop", 1).await.map(drop),
        Step::Update => deployed(bed, TENANT, "shop", 2).await.map(drop),
        Step::Delete => {
            wait_until_gone(bed.hub().api::<DeploymentIntentGroup>(TENANT).await?, "shop", SOON).await
        }
    }
}

/// Without what the servers set, and without the digests and uids of this very life.
fn essence(mut object: Value) -> Value {
    let hook_ran = (object["kind"] == "Job").then(|| object["status"]["succeeded"].clone());
    let Some(fields) = object.as_object_mut() else { return object };
    fields.remove("metadata");
    fields.remove("status");
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
        for field in ["clusterIP", "clusterIPs"] {
            spec.remove(field);
        }
    }
    if let Some(ran) = hook_ran {
        fields.remove("spec");
        fields.insert("succeeded".to_owned(), ran);
    }
    object
}

async fn left(bed: &Bed) -> Result<Left> {
    let mut left = Left::new();
    for edge in EDGES {
        let args = ["get", KINDS, "-n", TENANT, "-l", "emco.io/owner", "-o", "json"];
        let answer: Value = serde_json::from_str(&bed.edge(edge).kubectl().run(&args).await?)?;
        for object in answer["items"].as_array().context("no list")? {
            let name = format!("{edge}/{}/{}", object["kind"], object["metadata"]["name"]);
            left.insert(name, essence(object.clone()));
        }
    }
    // Of the deployment alone: the project's logical cloud stays.
    let args = ["get", "appcontexts,syncshards", "-n", TENANT, "-l", "emco.io/owner-name=shop", "-o", "name"];
    for name in bed.hub().kubectl().run(&args).await?.lines() {
        // A revision that was being stored is planned again under the next number, and kept in the history: how many there
        // are may differ, that none is left after the deletion may not.
        if name.starts_with("appcontext") {
            left.insert("hub/revisions".to_owned(), Value::Null);
            continue;
        }
        // A shard ends with the number of the revision that made it. Two of one slot are one too many.
        let slot = name.rsplit_once('-').map_or(name, |(slot, _)| slot);
        let before = left.insert(format!("hub/{slot}"), Value::Null);
        ensure!(before.is_none(), "there is another shard {slot} than {name}");
    }
    Ok(left)
}

/// What is wrong with the line to an edge while the operator dies and comes back.
#[derive(Debug, Clone, Copy)]
enum Line {
    Good,
    /// Every answer comes late, so reads are cut in the middle.
    Slow,
    /// Nothing passes; connections stay open.
    Cut,
    /// Every connection is closed.
    Closed,
}

const LINES: [Line; 4] = [Line::Good, Line::Slow, Line::Cut, Line::Closed];

async fn disturb(bed: &Bed, edge: &str, line: Line) -> Result<()> {
    let edge = bed.edge(edge);
    match line {
        Line::Good => edge.restore().await,
        Line::Slow => edge.slow(Duration::from_millis(150)).await,
        Line::Cut => edge.cut_off().await,
        Line::Closed => edge.refuse().await,
    }
}

/// One kill in each step of a life. `soak` has more of them.
const KILLS: usize = 3;

#[tokio::test]
async fn an_operator_killed_at_random_moments_ends_where_one_that_was_left_alone_ends() {
    Box::pin(killed(KILLS)).await;
}

/// Lives one life undisturbed, then lives in which each step has a kill, until there were so many.
async fn killed(least: usize) {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    let lives = async {
        let operator = turn.start(&[]).await?;
        register(bed, "acme", &EDGES).await?;
        project(bed, TENANT).await?;
        let web = web()?;
        chart_map(bed, TENANT, "charts", std::slice::from_ref(&web)).await?;

        let mut alone = Vec::new();
        for step in LIFE {
            let start = Instant::now();
            begin(bed, step, &web).await?;
            unless_ended(operator.process(), end(bed, step)).await?;
            alone.push((start.elapsed(), left(bed).await?));
        }
        assert!(alone[0].1.len() > 20 && alone[1].1.len() > 20, "the undisturbed life: {alone:#?}");
        assert!(alone[2].1.is_empty(), "the undisturbed deletion leaves {:#?}", alone[2].1);

        // Other moments each time; those of a failure again with its seed.
        let again = std::env::var("EMCO_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = again.unwrap_or_else(|| u64::from(std::process::id()));
        eprintln!("EMCO_TEST_SEED={seed}");
        let mut random = Random((seed << 16) | 0x9e37);
        let mut kills = 0;
        while kills < least {
            for (step, (took, wanted)) in LIFE.into_iter().zip(&alone) {
                let most = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                let moment = Duration::from_millis(random.below(most));
                let line = *random.of(&LINES);
                let edge = *random.of(&EDGES);
                begin(bed, step, &web).await?;
                disturb(bed, edge, line).await?;
                // Not a wait for something: the moment of the kill.
                tokio::time::sleep(moment).await;
                operator.kill().await?;
                kills += 1;
                eprintln!(
                    "kill {kills}: {step:?} of {most} ms, after {} ms; the line to {edge}: {line:?}",
                    moment.as_millis()
                );
                operator.restart(bed).await?;
                disturb(bed, edge, Line::Good).await?;
                unless_ended(operator.process(), end(bed, step)).await.with_context(|| {
                    format!("after kill {kills}, {step:?}, {} ms, EMCO_TEST_SEED={seed}", moment.as_millis())
                })?;
                let found = left(bed).await?;
                ensure!(
                    found == *wanted,
                    "after kill {kills}, {step:?}, {} ms, EMCO_TEST_SEED={seed}:\n{found:#?}\ninstead of\n{wanted:#?}",
                    moment.as_millis()
                );
            }
        }
        Ok(())
    };
    bed.explain(Box::pin(lives)).await;
}
