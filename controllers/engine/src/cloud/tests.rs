use emco_crds::ClusterProviderSpec;
use serde_json::Value;

use super::*;
use crate::role::Reach;
use crate::set::Phase;

mod bindings;
mod derived;

fn facts(id: &str, label: &str, scheduling: Scheduling) -> (ClusterId, ClusterFacts) {
    let id = ClusterId::parse(id).unwrap();
    let (key, value) = label.split_once('=').unwrap();
    let facts = ClusterFacts {
        id: id.clone(),
        labels: [(key.to_owned(), value.to_owned())].into(),
        properties: BTreeMap::new(),
        scheduling,
        reachable: true,
        by_git: false,
        uid: None,
        kubernetes_version: None,
        apis: None,
        nodes: None,
        network_policy: None,
    };
    (id, facts)
}

fn fleet() -> BTreeMap<ClusterId, ClusterFacts> {
    [
        facts("acme/a", "tier=edge", Scheduling::Enabled),
        facts("acme/b", "tier=core", Scheduling::Enabled),
        facts("other/c", "tier=edge", Scheduling::Enabled),
    ]
    .into()
}

fn provider(name: &str, grants: &str) -> ClusterProvider {
    let spec = serde_yaml::from_str(&format!("grants: {grants}")).unwrap();
    ClusterProvider::new(name, spec)
}

fn levels(grants: &str) -> BTreeMap<String, Level> {
    let labels = [("dept".to_owned(), "it".to_owned())].into();
    granted("team-a", &labels, &[&provider("acme", grants)], &fleet())
        .into_iter()
        .map(|(id, level)| (id.to_string(), level))
        .collect()
}

struct Case {
    spec: &'static str,
    grants: &'static str,
    reserves: &'static [&'static str],
    own: &'static str,
    held: &'static [&'static str],
    clusters: BTreeMap<ClusterId, ClusterFacts>,
    derived: BTreeMap<ClusterId, Option<Rights>>,
    running: Option<Running>,
    now: i64,
}

impl Default for Case {
    fn default() -> Self {
        let grants = "[{name: all, projectSelector: {}, maxLevel: Admin}]";
        let derived = BTreeMap::new();
        Self {
            spec: "{level: Admin}",
            grants,
            reserves: &[],
            own: "emco-system",
            held: &[],
            clusters: fleet(),
            derived,
            running: None,
            now: 1,
        }
    }
}

impl Case {
    fn plan(&self) -> Result<CloudPlan, Refusal> {
        let installation = Installation { id: "i".to_owned(), digest_key: [1; 32], random_key: [2; 32] };
        let spec: LogicalCloudSpec = serde_yaml::from_str(self.spec).unwrap();
        let provider = &ClusterProvider {
            spec: ClusterProviderSpec {
                reserved_namespaces: self.reserves.iter().map(|one| (*one).to_owned()).collect(),
                ..provider("acme", self.grants).spec
            },
            ..provider("acme", self.grants)
        };
        let mut granted = granted("team-a", &BTreeMap::new(), &[provider], &self.clusters);
        let reserved = reserve(&mut granted, "shop", self.own, &[provider]);
        let held = self.held.iter().map(|id| ClusterId::parse(id).unwrap()).collect();
        plan(&Request {
            installation: &installation,
            project: "team-a",
            name: "edge",
            spec: &spec,
            namespace: "shop",
            clusters: &self.clusters,
            granted: &granted,
            reserved: &reserved,
            held: &held,
            derived: &self.derived,
            running: self.running.as_ref(),
            now: self.now,
        })
        .map_err(|refusal| *refusal)
    }

    fn refusal(&self) -> (&'static str, String) {
        let refusal = self.plan().unwrap_err();
        (refusal.reason, refusal.message)
    }
}

fn on(plan: &CloudPlan) -> Vec<&str> {
    plan.assignment.keys().map(ClusterId::as_str).collect()
}

fn run(plan: &CloudPlan) -> Running {
    Running {
        revision: 1,
        plan_digest: plan.plan_digest.clone(),
        inputs_digest: plan.inputs_digest.clone(),
        composite_app: String::new(),
        assignment: plan.assignment.clone(),
        sets: plan.sets.clone(),
        parts: BTreeMap::new(),
        waves: None,
    }
}

#[test]
fn no_grant_means_nobody_and_the_highest_of_several_holds() {
    assert!(levels("[]").is_empty());
    assert!(levels("[{name: x, projects: [team-b]}]").is_empty());
    assert_eq!(levels("[{name: x, projects: [team-a]}]")["acme/a"], Level::Standard);
    let two = "[{name: x, projects: [team-a], maxLevel: Privileged}, \
               {name: y, projectSelector: {matchLabels: {dept: it}}, maxLevel: Admin, clusters: [{selector: {matchLabels: \
               {tier: edge}}}]}]";
    let levels = levels(two);
    assert_eq!(levels["acme/a"], Level::Admin);
    assert_eq!(levels["acme/b"], Level::Privileged);
}

#[test]
fn a_provider_grants_only_its_own_clusters() {
    let all = "[{name: x, projectSelector: {}, clusters: [{selector: {}}]}]";
    assert!(!levels(all).contains_key("other/c"));
}

#[test]
fn the_namespace_goes_to_every_granted_cluster_and_takes_what_is_there() {
    let plan = Case::default().plan().unwrap();
    assert_eq!(on(&plan), ["acme/a", "acme/b"]);
    let set = plan.sets.values().next().unwrap();
    assert_eq!(set.app, "namespace");
    assert_eq!(set.manifests[0].phase, Phase::Foundation);
    assert!(set.manifests[0].take_existing);
    assert_eq!(
        set.manifests[0].json,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"emco.io/project": "team-a"}}})
    );
    assert_eq!(plan.change.unwrap().cause, Cause::Create);
}

/// What each of the manifests is, and whether one that is there already is taken.
fn objects(spec: &'static str) -> Vec<(Value, bool, Phase)> {
    let plan = Case { spec, ..Case::default() }.plan().unwrap();
    let set = plan.sets.values().next().unwrap();
    set.manifests.iter().map(|m| (m.json.clone(), m.take_existing, m.phase)).collect()
}

#[test]
fn confined_pods_are_those_of_a_namespace_of_its_own() {
    let labels = |level: &str| json!({"emco.io/project": "team-a", "pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/warn": level});
    for (written, level) in
        [("Privileged", "privileged"), ("Baseline", "baseline"), ("Restricted", "restricted")]
    {
        let spec = format!("{{level: Admin, podSecurity: {written}}}").leak();
        let [(namespace, take, Phase::Foundation)] = &objects(spec)[..] else { panic!("{written}") };
        assert_eq!((&namespace["metadata"]["labels"], take), (&labels(level), &false));
    }
    let [(_, take, _), (policy, policy_taken, phase)] =
        &objects("{level: Admin, isolation: DefaultDeny}")[..]
    else {
        panic!("a namespace and a policy")
    };
    assert_eq!((take, policy_taken, phase), (&false, &false, &Phase::Main));
    assert_eq!(policy["metadata"], json!({"name": "emco-isolation", "namespace": "shop"}));
    assert_eq!(
        policy["spec"],
        json!({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {}}]}]})
    );
}

#[test]
fn a_closed_namespace_lets_nobody_in_by_itself() {
    let [_, (policy, ..)] = &objects("{level: Admin, isolation: Closed}")[..] else { panic!("a policy") };
    assert_eq!(policy["metadata"]["name"], "emco-isolation");
    assert_eq!(policy["spec"], json!({"podSelector": {}, "policyTypes": ["Ingress"]}));
}

/// Kind, name and phase of each.
fn kinds(spec: &'static str) -> Vec<(String, String)> {
    let text =
        |json: &Value, pointer: &str| json.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    objects(spec).iter().map(|(json, ..)| (text(json, "/kind"), text(json, "/metadata/name"))).collect()
}

#[test]
fn level_standard_has_an_account_with_role_admin_in_its_namespace() {
    let pair = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    assert_eq!(
        kinds(
            "{quotas: [{name: pods, hard: {pods: '9'}}], isolation: DefaultDeny, \
             limitRanges: [{name: small, limits: [{type: Container, max: {memory: 1Gi}}]}]}"
        ),
        [
            pair("Namespace", "shop"),
            pair("RoleBinding", "emco:hub"),
            pair("NetworkPolicy", "emco-isolation"),
            pair("ResourceQuota", "emco-pods"),
            pair("LimitRange", "emco-small"),
            pair("ServiceAccount", "emco-edge"),
            pair("RoleBinding", "emco-edge"),
        ]
    );
    assert!(objects("{}").iter().all(|(_, take, _)| !take), "a namespace of others is not taken");
    assert_eq!(account("shop", "edge"), "system:serviceaccount:shop:emco-edge");
}

#[test]
fn a_limit_range_has_the_fields_that_were_said_and_no_others() {
    let all = objects(
        "{limitRanges: [{name: small, limits: [{type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 100m}}, \
         {type: PersistentVolumeClaim, max: {storage: 1Gi}}]}]}",
    );
    let (range, ..) = all.iter().find(|(json, ..)| json["kind"] == "LimitRange").unwrap();
    assert_eq!(
        range["spec"],
        serde_json::json!({"limits": [
            {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}},
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
        ]})
    );
}

#[test]
fn permissions_are_bound_in_the_place_of_the_role_admin() {
    let pair = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    assert_eq!(
        kinds(
            "{permissions: [{name: view, clusterRole: view}, {name: own, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}]}"
        ),
        [
            pair("Namespace", "shop"),
            pair("RoleBinding", "emco:hub"),
            pair("RoleBinding", "emco:hub-ceiling"),
            pair("ServiceAccount", "emco-edge"),
            pair("Role", "emco-edge-own"),
            pair("RoleBinding", "emco-edge-view"),
            pair("RoleBinding", "emco-edge-own"),
        ]
    );
}

#[test]
fn level_privileged_binds_its_account_where_permissions_say() {
    let spec = "{level: Privileged, permissions: [{name: own, clusterRole: admin}, \
                {name: logs, namespaces: [logs, shop], rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}, \
                {name: look, scope: Cluster, clusterRole: view}, \
                {name: nodes, scope: Cluster, rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]}]}";
    let made: Vec<String> = objects(spec)
        .iter()
        .map(|(json, ..)| {
            let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
            format!("{} {} {}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
        })
        .collect();
    assert_eq!(
        made,
        [
            "Namespace - shop",
            "RoleBinding shop emco:hub",
            "RoleBinding shop emco:hub-ceiling",
            "ServiceAccount shop emco-edge",
            "ClusterRole - emco:shop:edge:nodes",
            "ClusterRoleBinding - emco:shop:edge:look",
            "ClusterRoleBinding - emco:shop:edge:nodes",
            "Role shop emco-edge-logs",
            "Role logs emco:shop:edge:logs",
            "RoleBinding shop emco-edge-own",
            "RoleBinding shop emco-edge-logs",
            "RoleBinding logs emco:shop:edge:logs",
        ]
    );
    let (binding, ..) =
        objects(spec).into_iter().find(|(json, ..)| json["kind"] == "ClusterRoleBinding").unwrap();
    assert_eq!(binding["roleRef"]["name"], "view");
    assert_eq!(
        binding["subjects"],
        json!([{"kind": "ServiceAccount", "name": "emco-edge", "namespace": "shop"}])
    );
}

#[test]
fn only_listed_namespaces_are_reached_and_the_cluster_by_its_scope() {
    let reach = |spec: &str| Reach::of(&serde_yaml::from_str(spec).unwrap());
    assert_eq!(reach("{}"), Reach::default());
    assert!(reach("{level: Admin}").cluster);
    let listed =
        reach("{level: Privileged, permissions: [{name: a, namespaces: [x, y], clusterRole: view}]}");
    assert_eq!((listed.namespaces.len(), listed.cluster), (2, false));
    assert!(
        reach("{level: Privileged, permissions: [{name: a, scope: Cluster, clusterRole: view}]}").cluster
    );
    assert!(
        !reach("{level: Privileged, permissions: [{name: a, scope: Namespace, clusterRole: view}]}").cluster
    );
}

#[test]
fn what_confines_is_an_update_and_leaving_it_out_is_another() {
    let first = Case::default().plan().unwrap();
    let confined =
        Case { spec: "{level: Admin, podSecurity: Baseline}", running: Some(run(&first)), ..Case::default() };
    let second = confined.plan().unwrap();
    assert_eq!(second.change.as_ref().unwrap().cause, Cause::Update);
    let third = Case { running: Some(run(&second)), ..Case::default() }.plan().unwrap();
    assert_eq!((third.change.unwrap().cause, third.inputs_digest), (Cause::Update, first.inputs_digest));
}

#[test]
fn planning_again_changes_nothing() {
    let first = Case::default().plan().unwrap();
    let second = Case { running: Some(run(&first)), ..Case::default() }.plan().unwrap();
    assert_eq!(second.change, None);
    assert_eq!(second.assignment, first.assignment);
}

#[test]
fn a_level_that_is_not_granted_is_refused_with_the_grant_that_would_do() {
    let case = Case { grants: "[{name: all, projectSelector: {}}]", ..Case::default() };
    let (reason, message) = case.refusal();
    assert_eq!(reason, "LevelNotGranted");
    assert_eq!(
        message,
        "LogicalCloud edge: level Admin is not granted to project team-a on acme/a, acme/b: a grant of the ClusterProvider \
         needs maxLevel: Admin"
    );
}

#[test]
fn a_namespace_that_a_provider_reserves_is_nobodys() {
    for reserves in [&["shop"][..], &["other", "sh*"]] {
        let (reason, message) = Case { reserves, ..Case::default() }.refusal();
        assert_eq!(reason, "NamespaceReserved");
        assert!(message.contains("namespace shop is reserved on acme/a, acme/b"), "{message}");
    }
    for reserves in [&["shop-floor"][..], &["shops*"], &["sho"]] {
        assert_eq!(on(&Case { reserves, ..Case::default() }.plan().unwrap()), ["acme/a", "acme/b"]);
    }
}

#[test]
fn the_operators_own_namespace_is_nobodys() {
    assert_eq!(Case { own: "shop", ..Case::default() }.refusal().0, "NamespaceReserved");
    let mut granted = granted(
        "team-a",
        &BTreeMap::new(),
        &[&provider("acme", "[{name: a, projectSelector: {}}]")],
        &fleet(),
    );
    assert_eq!(reserve(&mut granted, "emco-system", "emco", &[]).len(), 2);
    assert!(granted.is_empty());
}

#[test]
fn a_namespace_that_is_reserved_later_stays_while_a_deployment_holds_it() {
    let first = Case::default().plan().unwrap();
    let running = Some(run(&first));
    let held = Case { reserves: &["shop"], held: &["acme/a"], running, ..Case::default() }.plan().unwrap();
    assert_eq!((on(&held), held.members.reserved.len()), (vec!["acme/a"], 2));
}

#[test]
fn a_cluster_that_is_named_but_not_granted_is_refused() {
    let case = Case { spec: "{level: Admin, clusters: [{provider: other, cluster: c}]}", ..Case::default() };
    let (reason, message) = case.refusal();
    assert_eq!(reason, "NotGranted");
    assert!(message.contains("project team-a may not use other/c"), "{message}");
}

#[test]
fn a_cloud_without_any_cluster_says_what_to_do() {
    let case = Case { grants: "[]", ..Case::default() };
    assert_eq!(case.refusal().0, "NoClusters");
    let case = Case { spec: "{level: Admin, clusters: [{provider: nobody}]}", ..Case::default() };
    let (reason, message) = case.refusal();
    assert_eq!(reason, "NoClusters");
    assert!(message.contains("no cluster matches spec.clusters (nobody)"), "{message}");
    let case = Case { spec: "{level: Admin, clusters: [{provider: acme, cluster: z}]}", ..Case::default() };
    let (reason, message) = case.refusal();
    assert_eq!(reason, "NoClusters");
    assert!(message.contains("no cluster matches spec.clusters (acme/z): "), "{message}");
}

#[test]
fn a_cluster_that_left_the_cloud_keeps_the_namespace_while_a_group_is_there() {
    let first = Case::default().plan().unwrap();
    let smaller = "{level: Admin, clusters: [{provider: acme, cluster: a}]}";
    let shrunk = |held| Case { spec: smaller, held, running: Some(run(&first)), ..Case::default() }.plan();
    let waiting = shrunk(&["acme/b"]).unwrap();
    assert_eq!(on(&waiting), ["acme/a", "acme/b"]);
    assert_eq!(waiting.shrink_waits.len(), 1);
    let gone = shrunk(&[]).unwrap();
    assert_eq!(on(&gone), ["acme/a"]);
    assert_eq!(gone.change.unwrap().removals["namespace"], 1);
}

#[test]
fn a_cloud_on_demand_has_the_clusters_where_something_is_placed() {
    let plan = |held, running| {
        Case { spec: "{level: Admin, provision: OnDemand}", held, running, ..Case::default() }.plan()
    };
    let idle = plan(&[], None).unwrap();
    assert_eq!((on(&idle), idle.members.candidates.len(), &idle.change), (vec![], 2, &None));
    let placed = plan(&["acme/b"], None).unwrap();
    assert_eq!((on(&placed), placed.change.as_ref().unwrap().cause), (vec!["acme/b"], Cause::Create));
    let left = plan(&[], Some(run(&placed))).unwrap();
    assert_eq!((on(&left), left.change.as_ref().unwrap().removals["namespace"]), (vec![], 1));
}

#[test]
fn a_drained_cluster_is_left_and_a_cordoned_one_kept() {
    let first = Case::default().plan().unwrap();
    let mut clusters = fleet();
    clusters.get_mut(&ClusterId::new("acme", "a")).unwrap().scheduling = Scheduling::Drained;
    clusters.get_mut(&ClusterId::new("acme", "b")).unwrap().scheduling = Scheduling::Cordoned;
    let fresh = Case { clusters: clusters.clone(), ..Case::default() }.plan().unwrap();
    assert!(on(&fresh).is_empty());
    let later = Case { clusters, running: Some(run(&first)), ..Case::default() }.plan().unwrap();
    assert_eq!(on(&later), ["acme/b"]);
}
