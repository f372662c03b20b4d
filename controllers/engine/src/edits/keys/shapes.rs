//! Says how the lists below each built-in kind are merged, after the tags `patchStrategy` and `patchMergeKey` of k8s.io/api.
//!
//! `e2e/tests/patches.rs` compares it with these tags, and names a field that differs.

use super::Field::{Keyed, Object, Set, Whole};
use super::{NONE, Shape};

static METADATA: Shape = Shape(&[("finalizers", Set), ("ownerReferences", Keyed("uid", &NONE))]);
static MATCH_CONDITIONS: Shape = Shape(&[("matchConditions", Keyed("name", &NONE))]);
pub(super) static MUTATING_ADMISSION_POLICY: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("spec", Object(&MATCH_CONDITIONS))]);
pub(super) static PLAIN: Shape = Shape(&[("metadata", Object(&METADATA))]);
pub(super) static WEBHOOKS: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("webhooks", Keyed("name", &MATCH_CONDITIONS))]);
static VALIDATING_ADMISSION_POLICY_SPEC: Shape =
    Shape(&[("matchConditions", Keyed("name", &NONE)), ("variables", Keyed("name", &NONE))]);
pub(super) static VALIDATING_ADMISSION_POLICY: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("spec", Object(&VALIDATING_ADMISSION_POLICY_SPEC))]);
static CONTAINER: Shape = Shape(&[
    ("env", Keyed("name", &NONE)),
    ("ports", Keyed("containerPort", &NONE)),
    ("volumeDevices", Keyed("devicePath", &NONE)),
    ("volumeMounts", Keyed("mountPath", &NONE)),
]);
static EPHEMERAL_VOLUME_SOURCE: Shape = Shape(&[("volumeClaimTemplate", Object(&PLAIN))]);
static VOLUME: Shape = Shape(&[("ephemeral", Object(&EPHEMERAL_VOLUME_SOURCE))]);
static POD_SPEC: Shape = Shape(&[
    ("containers", Keyed("name", &CONTAINER)),
    ("ephemeralContainers", Keyed("name", &CONTAINER)),
    ("hostAliases", Keyed("ip", &NONE)),
    ("imagePullSecrets", Keyed("name", &NONE)),
    ("initContainers", Keyed("name", &CONTAINER)),
    ("resourceClaims", Keyed("name", &NONE)),
    ("schedulingGates", Keyed("name", &NONE)),
    ("topologySpreadConstraints", Keyed("topologyKey", &NONE)),
    ("volumes", Keyed("name", &VOLUME)),
]);
static POD_TEMPLATE_SPEC: Shape = Shape(&[("metadata", Object(&METADATA)), ("spec", Object(&POD_SPEC))]);
static WORKLOAD_SPEC: Shape = Shape(&[("template", Object(&POD_TEMPLATE_SPEC))]);
static CONDITIONS: Shape = Shape(&[("conditions", Keyed("type", &NONE))]);
pub(super) static WORKLOAD: Shape = Shape(&[
    ("metadata", Object(&METADATA)),
    ("spec", Object(&WORKLOAD_SPEC)),
    ("status", Object(&CONDITIONS)),
]);
pub(super) static WITH_CONDITIONS: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("status", Object(&CONDITIONS))]);
static JOB_TEMPLATE_SPEC: Shape = Shape(&[("metadata", Object(&METADATA)), ("spec", Object(&WORKLOAD_SPEC))]);
static CRON_JOB_SPEC: Shape = Shape(&[("jobTemplate", Object(&JOB_TEMPLATE_SPEC))]);
pub(super) static CRON_JOB: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("spec", Object(&CRON_JOB_SPEC))]);
pub(super) static COMPONENT_STATUS: Shape =
    Shape(&[("conditions", Keyed("type", &NONE)), ("metadata", Object(&METADATA))]);
static NODE_SPEC: Shape = Shape(&[("podCIDRs", Set)]);
static NODE_STATUS: Shape =
    Shape(&[("addresses", Keyed("type", &NONE)), ("conditions", Keyed("type", &NONE))]);
pub(super) static NODE: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("spec", Object(&NODE_SPEC)), ("status", Object(&NODE_STATUS))]);
static POD_STATUS: Shape = Shape(&[
    ("conditions", Keyed("type", &NONE)),
    ("hostIPs", Keyed("ip", &NONE)),
    ("podIPs", Keyed("ip", &NONE)),
    ("resourceClaimStatuses", Keyed("name", &NONE)),
]);
pub(super) static POD: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("spec", Object(&POD_SPEC)), ("status", Object(&POD_STATUS))]);
pub(super) static POD_STATUS_RESULT: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("status", Object(&POD_STATUS))]);
pub(super) static POD_TEMPLATE: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("template", Object(&POD_TEMPLATE_SPEC))]);
static SERVICE_SPEC: Shape = Shape(&[("ports", Keyed("port", &NONE))]);
pub(super) static SERVICE: Shape = Shape(&[
    ("metadata", Object(&METADATA)),
    ("spec", Object(&SERVICE_SPEC)),
    ("status", Object(&CONDITIONS)),
]);
pub(super) static SERVICE_ACCOUNT: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("secrets", Keyed("name", &NONE))]);
static POD_DISRUPTION_BUDGET_SPEC: Shape = Shape(&[("selector", Whole)]);
pub(super) static POD_DISRUPTION_BUDGET: Shape = Shape(&[
    ("metadata", Object(&METADATA)),
    ("spec", Object(&POD_DISRUPTION_BUDGET_SPEC)),
    ("status", Object(&CONDITIONS)),
]);
static RESOURCE_CLAIM_STATUS: Shape = Shape(&[("reservedFor", Keyed("uid", &NONE))]);
pub(super) static RESOURCE_CLAIM: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("status", Object(&RESOURCE_CLAIM_STATUS))]);
pub(super) static RESOURCE_CLAIM_TEMPLATE: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("spec", Object(&PLAIN))]);
static CSI_NODE_SPEC: Shape = Shape(&[("drivers", Keyed("name", &NONE))]);
pub(super) static CSI_NODE: Shape =
    Shape(&[("metadata", Object(&METADATA)), ("spec", Object(&CSI_NODE_SPEC))]);
static POD_GROUP_SPEC: Shape = Shape(&[("resourceClaims", Keyed("name", &NONE))]);
static POD_GROUP_STATUS: Shape =
    Shape(&[("conditions", Keyed("type", &NONE)), ("resourceClaimStatuses", Keyed("name", &NONE))]);
pub(super) static POD_GROUP: Shape = Shape(&[
    ("metadata", Object(&METADATA)),
    ("spec", Object(&POD_GROUP_SPEC)),
    ("status", Object(&POD_GROUP_STATUS)),
]);
