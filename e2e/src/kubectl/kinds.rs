//! Where the kinds are served that tests ask for again and again.

/// Kinds as kubectl names them, where they are served, and their own name.
type Row = (&'static [&'static str], &'static str, &'static str);

const CORE: &str = "/api/v1";
const APPS: &str = "/apis/apps/v1";
const EMCO: &str = "/apis/emco.io/v1alpha1";

/// Of a namespace.
const NAMESPACED: &[Row] = &[
    (&["configmaps", "configmap", "cm"], CORE, "ConfigMap"),
    (&["secrets", "secret"], CORE, "Secret"),
    (&["serviceaccounts", "serviceaccount"], CORE, "ServiceAccount"),
    (&["services", "service", "svc"], CORE, "Service"),
    (&["persistentvolumeclaims", "persistentvolumeclaim", "pvc"], CORE, "PersistentVolumeClaim"),
    (&["deployments", "deployment", "deploy", "deployments.apps"], APPS, "Deployment"),
    (&["statefulsets", "statefulset"], APPS, "StatefulSet"),
    (&["jobs", "job", "jobs.batch"], "/apis/batch/v1", "Job"),
    (&["rolebindings", "rolebinding"], "/apis/rbac.authorization.k8s.io/v1", "RoleBinding"),
    (&["deploymentintentgroups", "dig", "deploymentintentgroups.emco.io"], EMCO, "DeploymentIntentGroup"),
    (&["compositeapps", "capp", "compositeapp", "compositeapps.emco.io"], EMCO, "CompositeApp"),
    (&["compositeprofiles", "cprof", "compositeprofiles.emco.io"], EMCO, "CompositeProfile"),
    (&["genericactionintents", "gai"], EMCO, "GenericActionIntent"),
    (&["hardwareintents", "hwi"], EMCO, "HardwareIntent"),
    (&["trafficgroupintents", "tgi"], EMCO, "TrafficGroupIntent"),
    (&["networkpolicies", "networkpolicy", "netpol"], "/apis/networking.k8s.io/v1", "NetworkPolicy"),
    (&["logicalclouds", "lc", "logicalcloud"], EMCO, "LogicalCloud"),
    (&["clusters", "ecl", "clusters.emco.io"], EMCO, "Cluster"),
    (&["gittargets", "gitt", "gittarget"], EMCO, "GitTarget"),
];
/// Of the whole cluster.
const OF_CLUSTER: &[Row] = &[
    (&["namespaces", "namespace"], CORE, "Namespace"),
    (&["nodes", "node"], CORE, "Node"),
    (&["storageclasses", "storageclass"], "/apis/storage.k8s.io/v1", "StorageClass"),
    (&["projects", "eproj", "project", "projects.emco.io"], EMCO, "Project"),
    (&["clusterproviders", "cprov", "clusterprovider", "clusterproviders.emco.io"], EMCO, "ClusterProvider"),
];

/// Where the objects of a kind are, of all namespaces where none is named, and the kind's own name.
pub(crate) fn served(kind: &str, namespace: Option<&str>) -> Option<(String, &'static str)> {
    let find = |rows: &'static [Row]| rows.iter().find(|(names, ..)| names.contains(&kind));
    let within = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    find(NAMESPACED)
        .map(|(names, at, own)| (format!("{at}/{within}{}", names[0]), *own))
        .or_else(|| find(OF_CLUSTER).map(|(names, at, own)| (format!("{at}/{}", names[0]), *own)))
}

#[cfg(test)]
mod tests {
    use super::served;

    #[test]
    fn kinds_are_where_they_are_served_and_others_are_unknown() {
        let place = |kind, namespace| served(kind, namespace).map(|(path, _)| path);
        assert_eq!(place("configmaps", Some("a")).as_deref(), Some("/api/v1/namespaces/a/configmaps"));
        assert_eq!(place("jobs.batch", None).as_deref(), Some("/apis/batch/v1/jobs"));
        assert_eq!(place("namespaces", Some("a")).as_deref(), Some("/api/v1/namespaces"));
        assert_eq!(place("pvc", Some("a")).as_deref(), Some("/api/v1/namespaces/a/persistentvolumeclaims"));
        assert_eq!(place("things.example.com", None), None);
    }
}
