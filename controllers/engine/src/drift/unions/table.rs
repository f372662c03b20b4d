//! The unions of Kubernetes' own kinds, and where they stand.

/// The fields that a union admits at a time.
pub(super) enum Admits {
    /// One of these.
    One(&'static [&'static str]),
    /// One of all that there are, but for these, which are no members.
    OneBut(&'static [&'static str]),
    /// Those that the value of a field admits.
    By {
        /// The field.
        field: &'static str,
        /// Its value where nothing is said, as far as that is a decision, too.
        default: Option<&'static str>,
        /// Values with the fields that they exclude. A value that is not here excludes nothing that is known.
        without: &'static [(&'static str, &'static [&'static str])],
    },
}

/// One union.
pub(super) struct Union {
    /// Its place: names of fields with dots between, lists with the keys of their items in brackets.
    pub at: &'static str,
    pub admits: Admits,
}

const fn one(at: &'static str, members: &'static [&'static str]) -> Union {
    Union { at, admits: Admits::One(members) }
}

const fn one_but(at: &'static str, besides: &'static [&'static str]) -> Union {
    Union { at, admits: Admits::OneBut(besides) }
}

const fn by(
    at: &'static str,
    field: &'static str,
    without: &'static [(&'static str, &'static [&'static str])],
) -> Union {
    Union { at, admits: Admits::By { field, default: None, without } }
}

const HANDLERS: &[&str] = &["exec", "grpc", "httpGet", "tcpSocket"];
const LOCAL: &[(&str, &[&str])] =
    &[("RuntimeDefault", &["localhostProfile"]), ("Unconfined", &["localhostProfile"])];

/// Below each container.
const CONTAINER: &[Union] = &[
    one("env[name]", &["value", "valueFrom"]),
    one_but("env[name].valueFrom", &[]),
    one("livenessProbe", HANDLERS),
    one("readinessProbe", HANDLERS),
    one("startupProbe", HANDLERS),
    one_but("lifecycle.postStart", &[]),
    one_but("lifecycle.preStop", &["stopSignal"]),
    by("securityContext.seccompProfile", "type", LOCAL),
    by("securityContext.appArmorProfile", "type", LOCAL),
];

/// Below the specification of a Pod.
const POD: &[Union] = &[
    one_but("volumes[name]", &["name"]),
    by("securityContext.seccompProfile", "type", LOCAL),
    by("securityContext.appArmorProfile", "type", LOCAL),
];

const DEPLOYMENT: &[Union] = &[by("spec.strategy", "type", &[("Recreate", &["rollingUpdate"])])];
const UPDATED: &[Union] = &[by("spec.updateStrategy", "type", &[("OnDelete", &["rollingUpdate"])])];

/// Fields that a Service is given, or may say, for its type alone.
const SERVICE: &[Union] = &[
    Union {
        at: "spec",
        admits: Admits::By {
            field: "type",
            default: Some("ClusterIP"),
            without: &[
                (
                    "ClusterIP",
                    &[
                        "allocateLoadBalancerNodePorts",
                        "externalName",
                        "externalTrafficPolicy",
                        "healthCheckNodePort",
                        "loadBalancerClass",
                        "loadBalancerSourceRanges",
                    ],
                ),
                (
                    "NodePort",
                    &[
                        "allocateLoadBalancerNodePorts",
                        "externalName",
                        "healthCheckNodePort",
                        "loadBalancerClass",
                        "loadBalancerSourceRanges",
                    ],
                ),
                ("LoadBalancer", &["externalName"]),
                (
                    "ExternalName",
                    &[
                        "allocateLoadBalancerNodePorts",
                        "clusterIP",
                        "clusterIPs",
                        "externalTrafficPolicy",
                        "healthCheckNodePort",
                        "internalTrafficPolicy",
                        "ipFamilies",
                        "ipFamilyPolicy",
                        "loadBalancerClass",
                        "loadBalancerSourceRanges",
                    ],
                ),
            ],
        },
    },
    Union {
        at: "spec",
        admits: Admits::By {
            field: "sessionAffinity",
            default: Some("None"),
            without: &[("None", &["sessionAffinityConfig"])],
        },
    },
];

const CLAIM: &[Union] = &[one("spec", &["dataSource", "dataSourceRef"])];
const INGRESS: &[Union] = &[
    one("spec.defaultBackend", &["resource", "service"]),
    one("spec.defaultBackend.service.port", &["name", "number"]),
];
const WEBHOOKS: &[Union] = &[one("webhooks[name].clientConfig", &["service", "url"])];
const DEFINITION: &[Union] = &[
    by("spec.conversion", "strategy", &[("None", &["webhook"])]),
    one("spec.conversion.webhook.clientConfig", &["service", "url"]),
];
const PRIORITY: &[Union] = &[
    by("spec", "type", &[("Exempt", &["limited"]), ("Limited", &["exempt"])]),
    by("spec.limited.limitResponse", "type", &[("Reject", &["queuing"])]),
];

/// The unions of a kind, each with what stands before its place.
pub(super) fn of_kind(kind: (&str, &str)) -> Vec<(String, &'static Union)> {
    let own: &[Union] = match kind {
        ("apps", "Deployment") => DEPLOYMENT,
        ("apps", "DaemonSet" | "StatefulSet") => UPDATED,
        ("", "Service") => SERVICE,
        ("", "PersistentVolumeClaim") => CLAIM,
        ("networking.k8s.io", "Ingress") => INGRESS,
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => WEBHOOKS,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => DEFINITION,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => PRIORITY,
        _ => &[],
    };
    let pod = match kind {
        ("", "Pod") => Some("spec."),
        ("", "PodTemplate") => Some("template.spec."),
        ("", "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job") => Some("spec.template.spec."),
        ("batch", "CronJob") => Some("spec.jobTemplate.spec.template.spec."),
        _ => None,
    };
    let mut all: Vec<(String, &Union)> = own.iter().map(|union| (String::new(), union)).collect();
    if let Some(pod) = pod {
        all.extend(POD.iter().map(|union| (pod.to_owned(), union)));
        for list in ["containers[name].", "initContainers[name]."] {
            all.extend(CONTAINER.iter().map(|union| (format!("{pod}{list}"), union)));
        }
    }
    all
}
