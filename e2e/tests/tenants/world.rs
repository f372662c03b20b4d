//! Makes a hub with the charts' roles and policies, a project to attack, and users with full rights in projects of their own.

use anyhow::{Result, anyhow, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, LogicalCloud};
use emco_e2e::bed::{Audit, Bed, BedSpec, PlaneSpec, SharedBed};
use emco_e2e::kubectl::Kubectl;
use emco_e2e::operator::{
    Operator, as_account, chart, chart_map, cluster, deployed, deployment, install_charts, is, program,
    secret, unless_ended, wait,
};
use tokio::sync::OnceCell;

/// What the victim keeps secret. It is in a Secret on the hub and in one on the cluster.
pub const PASSWORD: &str = "victims-own-password-7d1f";
/// Of whatever is deployed.
pub const ON_A: &str = "placement: {allOf: [{provider: acme, cluster: a}]}";

static BED: SharedBed = SharedBed::new(|| {
    BedSpec::default()
        .with(PlaneSpec::light("hub", &[]))
        .with(PlaneSpec::light("a", &["deployment-controller", "replicaset-controller"]).audit(Audit::Writes))
        .with_helm()
});
static OPERATOR: OnceCell<Result<Operator, String>> = OnceCell::const_new();

/// The bed with the world in it, made by the first test that wants it, and its operator.
pub async fn get() -> Result<(&'static Bed, &'static Operator)> {
    let bed = BED.get().await?;
    let start = || async {
        let start = async {
            let told = install_charts(bed).await?;
            let operator = Operator::start_as(bed, &program()?, as_account(bed).await?, told).await?;
            unless_ended(operator.process(), make(bed)).await?;
            Ok::<_, anyhow::Error>(operator)
        };
        start.await.map_err(|error| format!("{error:#}"))
    };
    let operator = OPERATOR.get_or_init(start).await.as_ref().map_err(|error| anyhow!("{error}"))?;
    Ok((bed, operator))
}

/// `vault/strong` is the victim's alone; nobody has to reach it.
pub const PROVIDERS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: acme, labels: {emco.io/provider: acme}}
---
apiVersion: v1
kind: Namespace
metadata: {name: vault, labels: {emco.io/provider: vault}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: acme}
spec:
  grants:
  - {name: victim, projects: [victim], maxLevel: Admin}
  - {name: tenants, projectSelector: {matchLabels: {tenant: 'yes'}}}
  - {name: debtor, projects: [debtor]}
  reservedNamespaces: [monitoring, 'platform-*']
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: vault}
spec: {grants: [{name: victim, projects: [victim], maxLevel: Admin}]}
";

const VICTIM: &str = "
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: victims-cloud, namespace: victim}
spec: {level: Admin, namespace: victims-cloud}
---
apiVersion: v1
kind: Secret
metadata: {name: victims-login, namespace: victim}
stringData: {username: victim, password: PASSWORD}
";

const TILL: &str = "
apiVersion: v1
kind: Secret
metadata: {name: till}
stringData: {password: PASSWORD}
";

async fn make(bed: &Bed) -> Result<()> {
    let hub = bed.hub().kubectl();
    hub.apply(PROVIDERS).await?;
    secret(bed, "acme", "a", &bed.edge("a").kubeconfig()?).await?;
    hub.apply(&cluster("acme", "a")).await?;
    hub.apply(&cluster("vault", "strong")).await?;
    wait(bed, "acme", "a", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await?;
    project(bed, "victim", "", "logicalCloud: {level: Admin}").await?;
    hub.apply(&VICTIM.replace("PASSWORD", PASSWORD)).await?;
    let till = chart("till", "1.0.0", &[("templates/till.yaml", &TILL.replace("PASSWORD", PASSWORD))])?;
    chart_map(bed, "victim", "charts", std::slice::from_ref(&till)).await?;
    hub.apply(&deployment("victim", "till", &[till], ON_A)).await?;
    deployed(bed, "victim", "till", 1).await.map(drop)
}

/// Makes a project of its own namespace.
pub async fn project(bed: &Bed, name: &str, labels: &str, spec: &str) -> Result<()> {
    let project = format!(
        "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{emco.io/project: {name}}}}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {{name: {name}, labels: {{{labels}}}}}
spec: {{{spec}}}
"
    );
    bed.hub().kubectl().apply(&project).await.map(drop)
}

/// A user of the hub and the project that is theirs.
pub struct Tenant {
    pub bed: &'static Bed,
    /// Of project, namespace and user.
    pub name: &'static str,
    /// As the user.
    pub kubectl: Kubectl,
}

impl Tenant {
    /// Makes the project, with a logical cloud `default` of level Standard, and the user with these `ClusterRoles` in its namespace.
    pub async fn new(name: &'static str, roles: &[&str], spec: &str) -> Result<Self> {
        let (bed, _) = get().await?;
        let standard = if spec.is_empty() { "" } else { ", " };
        let spec = format!("logicalCloud: {{level: Standard}}{standard}{spec}");
        project(bed, name, "tenant: 'yes'", &spec).await?;
        bed.hub()
            .kubectl()
            .apply(&roles.iter().map(|role| binding(name, name, role)).collect::<String>())
            .await?;
        let kubectl = user(bed, name).await?;
        kubectl.until(&["get", "secrets", "-n", name], "", true).await?;
        Ok(Self { bed, name, kubectl })
    }

    /// With all rights that anybody can have in a namespace: every verb, of whatever is in it.
    pub async fn mighty(name: &'static str) -> Result<Self> {
        Self::new(name, &["cluster-admin"], "").await
    }

    /// Applies as the user.
    pub async fn apply(&self, yaml: &str) -> Result<()> {
        self.kubectl.apply_to(self.name, yaml).await.map(drop)
    }

    /// The user is refused, with these words.
    pub async fn refused(&self, args: &[&str], input: &str, words: &str) -> Result<()> {
        refused(&self.kubectl, args, input, words).await
    }

    /// Waits until a logical cloud is ready.
    pub async fn ready(&self, cloud: &str) -> Result<()> {
        wait(self.bed, self.name, cloud, |cloud: &LogicalCloud| {
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await
    }
}

/// Binds a `ClusterRole` in a namespace.
pub fn binding(namespace: &str, user: &str, role: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: {user}-{role}, namespace: {namespace}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\n\
         subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: {user}}}]\n---\n"
    )
}

/// kubectl as a user of the hub, who has a certificate and no group.
pub async fn user(bed: &Bed, name: &str) -> Result<Kubectl> {
    let file = bed.dir().join(format!("{name}.kubeconfig"));
    tokio::fs::write(&file, bed.hub().kubeconfig_as(name, None)?).await?;
    Ok(bed.hub().kubectl().with_kubeconfig(&file))
}

/// Whoever it is is refused, with these words in whatever case.
pub async fn refused(kubectl: &Kubectl, args: &[&str], input: &str, words: &str) -> Result<()> {
    let answer = kubectl.output(args, input).await?;
    let said = format!("{}{}", answer.stdout, answer.stderr);
    ensure!(!answer.is_ok(), "{args:?} is taken: {said}\n{input}");
    ensure!(said.to_lowercase().contains(&words.to_lowercase()), "{args:?} without {words:?}: {said}");
    Ok(())
}
