//! Lists the kinds that are built into Kubernetes, with the shape of each.
//!
//! `e2e/tests/patches.rs` compares the list with `k8s.io/api`, and names a kind that is missing here.

use super::Shape;
use super::shapes::{
    COMPONENT_STATUS, CRON_JOB, CSI_NODE, MUTATING_ADMISSION_POLICY, NODE, PLAIN, POD, POD_DISRUPTION_BUDGET,
    POD_GROUP, POD_STATUS_RESULT, POD_TEMPLATE, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, SERVICE,
    SERVICE_ACCOUNT, VALIDATING_ADMISSION_POLICY, WEBHOOKS, WITH_CONDITIONS, WORKLOAD,
};

/// Group and version; its kinds without merged lists but those of metadata; the others.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static Shape)]);

/// Every kind of k8s.io/api 0.36 that has metadata, as kubectl knows them, and those two that API servers have besides. Requests that
/// are answered and not kept, such as a `TokenReview`, are no objects of a chart.
static KINDS: &[Row] = &[
    (
        "v1",
        "Binding ConfigMap Endpoints Event LimitRange PersistentVolume RangeAllocation ResourceQuota Secret",
        &[
            ("ComponentStatus", &COMPONENT_STATUS),
            ("Namespace", &WITH_CONDITIONS),
            ("Node", &NODE),
            ("PersistentVolumeClaim", &WITH_CONDITIONS),
            ("Pod", &POD),
            ("PodStatusResult", &POD_STATUS_RESULT),
            ("PodTemplate", &POD_TEMPLATE),
            ("ReplicationController", &WORKLOAD),
            ("Service", &SERVICE),
            ("ServiceAccount", &SERVICE_ACCOUNT),
        ],
    ),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicyBinding ValidatingAdmissionPolicyBinding",
        &[
            ("MutatingAdmissionPolicy", &MUTATING_ADMISSION_POLICY),
            ("MutatingWebhookConfiguration", &WEBHOOKS),
            ("ValidatingAdmissionPolicy", &VALIDATING_ADMISSION_POLICY),
            ("ValidatingWebhookConfiguration", &WEBHOOKS),
        ],
    ),
    (
        "admissionregistration.k8s.io/v1alpha1",
        "MutatingAdmissionPolicyBinding ValidatingAdmissionPolicyBinding",
        &[
            ("MutatingAdmissionPolicy", &MUTATING_ADMISSION_POLICY),
            ("ValidatingAdmissionPolicy", &VALIDATING_ADMISSION_POLICY),
        ],
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "MutatingAdmissionPolicyBinding ValidatingAdmissionPolicyBinding",
        &[
            ("MutatingAdmissionPolicy", &MUTATING_ADMISSION_POLICY),
            ("MutatingWebhookConfiguration", &WEBHOOKS),
            ("ValidatingAdmissionPolicy", &VALIDATING_ADMISSION_POLICY),
            ("ValidatingWebhookConfiguration", &WEBHOOKS),
        ],
    ),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", &[]),
    ("apiregistration.k8s.io/v1", "", &[("APIService", &WITH_CONDITIONS)]),
    (
        "apps/v1",
        "ControllerRevision",
        &[
            ("DaemonSet", &WORKLOAD),
            ("Deployment", &WORKLOAD),
            ("ReplicaSet", &WORKLOAD),
            ("StatefulSet", &WORKLOAD),
        ],
    ),
    ("apps/v1beta1", "ControllerRevision Scale", &[("Deployment", &WORKLOAD), ("StatefulSet", &WORKLOAD)]),
    (
        "apps/v1beta2",
        "ControllerRevision Scale",
        &[
            ("DaemonSet", &WORKLOAD),
            ("Deployment", &WORKLOAD),
            ("ReplicaSet", &WORKLOAD),
            ("StatefulSet", &WORKLOAD),
        ],
    ),
    ("autoscaling/v1", "HorizontalPodAutoscaler Scale", &[]),
    ("autoscaling/v2", "", &[("HorizontalPodAutoscaler", &WITH_CONDITIONS)]),
    ("batch/v1", "", &[("CronJob", &CRON_JOB), ("Job", &WORKLOAD)]),
    ("batch/v1beta1", "", &[("CronJob", &CRON_JOB)]),
    ("certificates.k8s.io/v1", "CertificateSigningRequest", &[]),
    ("certificates.k8s.io/v1alpha1", "ClusterTrustBundle", &[]),
    (
        "certificates.k8s.io/v1beta1",
        "CertificateSigningRequest ClusterTrustBundle",
        &[("PodCertificateRequest", &WITH_CONDITIONS)],
    ),
    ("coordination.k8s.io/v1", "Lease", &[]),
    ("coordination.k8s.io/v1alpha2", "LeaseCandidate", &[]),
    ("coordination.k8s.io/v1beta1", "Lease LeaseCandidate", &[]),
    ("discovery.k8s.io/v1", "EndpointSlice", &[]),
    ("discovery.k8s.io/v1beta1", "EndpointSlice", &[]),
    ("events.k8s.io/v1", "Event", &[]),
    ("events.k8s.io/v1beta1", "Event", &[]),
    (
        "extensions/v1beta1",
        "Ingress NetworkPolicy Scale",
        &[("DaemonSet", &WORKLOAD), ("Deployment", &WORKLOAD), ("ReplicaSet", &WORKLOAD)],
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1",
        "",
        &[("FlowSchema", &WITH_CONDITIONS), ("PriorityLevelConfiguration", &WITH_CONDITIONS)],
    ),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema PriorityLevelConfiguration", &[]),
    ("flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema PriorityLevelConfiguration", &[]),
    (
        "flowcontrol.apiserver.k8s.io/v1beta3",
        "",
        &[("FlowSchema", &WITH_CONDITIONS), ("PriorityLevelConfiguration", &WITH_CONDITIONS)],
    ),
    ("internal.apiserver.k8s.io/v1alpha1", "StorageVersion", &[]),
    (
        "networking.k8s.io/v1",
        "IPAddress Ingress IngressClass NetworkPolicy",
        &[("ServiceCIDR", &WITH_CONDITIONS)],
    ),
    ("networking.k8s.io/v1beta1", "IPAddress Ingress IngressClass", &[("ServiceCIDR", &WITH_CONDITIONS)]),
    ("node.k8s.io/v1", "RuntimeClass", &[]),
    ("node.k8s.io/v1alpha1", "RuntimeClass", &[]),
    ("node.k8s.io/v1beta1", "RuntimeClass", &[]),
    ("policy/v1", "Eviction", &[("PodDisruptionBudget", &POD_DISRUPTION_BUDGET)]),
    ("policy/v1beta1", "Eviction", &[("PodDisruptionBudget", &WITH_CONDITIONS)]),
    ("rbac.authorization.k8s.io/v1", "ClusterRole ClusterRoleBinding Role RoleBinding", &[]),
    ("rbac.authorization.k8s.io/v1alpha1", "ClusterRole ClusterRoleBinding Role RoleBinding", &[]),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole ClusterRoleBinding Role RoleBinding", &[]),
    (
        "resource.k8s.io/v1",
        "DeviceClass ResourceSlice",
        &[("ResourceClaim", &RESOURCE_CLAIM), ("ResourceClaimTemplate", &RESOURCE_CLAIM_TEMPLATE)],
    ),
    (
        "resource.k8s.io/v1alpha3",
        "",
        &[("DeviceTaintRule", &WITH_CONDITIONS), ("ResourcePoolStatusRequest", &WITH_CONDITIONS)],
    ),
    (
        "resource.k8s.io/v1beta1",
        "DeviceClass ResourceSlice",
        &[("ResourceClaim", &RESOURCE_CLAIM), ("ResourceClaimTemplate", &RESOURCE_CLAIM_TEMPLATE)],
    ),
    (
        "resource.k8s.io/v1beta2",
        "DeviceClass ResourceSlice",
        &[
            ("DeviceTaintRule", &WITH_CONDITIONS),
            ("ResourceClaim", &RESOURCE_CLAIM),
            ("ResourceClaimTemplate", &RESOURCE_CLAIM_TEMPLATE),
        ],
    ),
    ("scheduling.k8s.io/v1", "PriorityClass", &[]),
    ("scheduling.k8s.io/v1alpha2", "Workload", &[("PodGroup", &POD_GROUP)]),
    ("scheduling.k8s.io/v1beta1", "PriorityClass", &[]),
    (
        "storage.k8s.io/v1",
        "CSIDriver CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
        &[("CSINode", &CSI_NODE)],
    ),
    ("storage.k8s.io/v1alpha1", "CSIStorageCapacity VolumeAttachment VolumeAttributesClass", &[]),
    (
        "storage.k8s.io/v1beta1",
        "CSIDriver CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
        &[("CSINode", &CSI_NODE)],
    ),
    ("storagemigration.k8s.io/v1beta1", "", &[("StorageVersionMigration", &WITH_CONDITIONS)]),
];

/// Every kind after its group and version, with its shape.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static Shape)> {
    KINDS.iter().flat_map(|&(version, plain, others)| {
        let plain = plain.split(' ').filter(|name| !name.is_empty()).map(|name| (name, &PLAIN));
        plain.chain(others.iter().copied()).map(move |(kind, shape)| (version, kind, shape))
    })
}

/// The shape of a kind, if it is built in.
pub(super) fn shape(api_version: &str, kind: &str) -> Option<&'static Shape> {
    let (_, plain, others) = KINDS.iter().find(|(version, ..)| *version == api_version)?;
    if let Some(&(_, shape)) = others.iter().find(|(name, _)| *name == kind) {
        return Some(shape);
    }
    plain.split(' ').find(|name| !name.is_empty() && *name == kind).map(|_| &PLAIN)
}
