//! What the stages are made from.

/// A rollout with a gate before its only wave.
pub const GATED: &str = "rollout: {waves: [{name: first, size: 100%, approval: Before}]}";

/// Says no to that gate.
pub const REJECTED: &str = "
apiVersion: emco.io/v1alpha1
kind: DeploymentApproval
metadata: {name: rejection, namespace: shop}
spec:
  deploymentIntentGroupRef: {name: paused}
  digest: DIGEST
  wave: first
  decision: Rejected
  approvedBy: tester
";

/// A provider whose clusters are granted to nobody.
pub const SPARE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: spare, labels: {emco.io/provider: spare}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: spare}
spec: {}
";

/// Objects that are broken, wait for something, or are ended.
pub const MORE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: not-ours}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: other}
spec: {namespace: not-ours}
---
apiVersion: emco.io/v1alpha1
kind: GitTarget
metadata: {name: without-secret, namespace: spare}
spec: {url: 'https://git.example.com/fleet.git', branch: main, secretRef: {name: absent}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {name: taken}
spec: {namespace: not-ours}
---
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: empty, namespace: shop}
spec: {level: Admin, namespace: shop-empty, clusters: [{provider: acme, selector: {matchLabels: {tier: none}}}]}
---
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: second, namespace: shop}
spec: {level: Admin, namespace: shop}
---
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {name: waits, namespace: shop}
spec: {apps: [{name: web, chart: {configMapRef: {name: absent, key: web.tgz}}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: rubbish, namespace: shop}
data: {web.tgz: this is no archive}
---
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {name: broken, namespace: shop}
spec: {apps: [{name: web, chart: {configMapRef: {name: rubbish, key: web.tgz}}}]}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: good, namespace: shop}
spec: {apps: [{app: web, values: {a: 1}}]}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: secret, namespace: shop}
spec: {apps: [{app: web, valuesFrom: [{kind: Secret, name: absent}]}]}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: waits, namespace: shop}
spec: {apps: [{app: web, valuesFrom: [{kind: ConfigMap, name: absent}]}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: values, namespace: shop}
data: {values.yaml: \"[this, is, a, list]\"}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: broken, namespace: shop}
spec: {apps: [{app: web, valuesFrom: [{kind: ConfigMap, name: values, key: values.yaml}]}]}
---
apiVersion: emco.io/v1alpha1
kind: GenericActionIntent
metadata: {name: good, namespace: shop}
spec: {actions: [{name: less, app: web, type: Delete, target: {apiVersion: v1, kind: Service, name: web}}]}
---
apiVersion: emco.io/v1alpha1
kind: GenericActionIntent
metadata: {name: waits, namespace: shop}
spec: {actions: [{name: more, app: web, type: Add, add: {from: {kind: ConfigMap, name: absent}}}]}
---
apiVersion: emco.io/v1alpha1
kind: GenericActionIntent
metadata: {name: broken, namespace: shop}
spec: {actions: [{name: more, app: web, type: Add, add: {inline: {kind: ConfigMap}}}]}
---
apiVersion: emco.io/v1alpha1
kind: HardwareIntent
metadata: {name: good, namespace: shop}
spec: {consumers: [{name: disk, app: web, requirements: [{name: disk, nodeSelector: {matchLabels: {disk: nvme}}}]}]}
---
apiVersion: emco.io/v1alpha1
kind: HardwareIntent
metadata: {name: broken, namespace: shop}
spec:
  consumers:
  - name: disk
    app: web
    requirements:
    - {name: a, nodeSelector: {matchLabels: {disk: nvme}}}
    - {name: b, nodeSelector: {matchLabels: {disk: hdd}}}
---
apiVersion: emco.io/v1alpha1
kind: TrafficGroupIntent
metadata: {name: good, namespace: shop}
spec: {servers: [{name: web, app: web, clients: [{name: office, cidrs: [10.1.0.0/16]}]}]}
---
apiVersion: emco.io/v1alpha1
kind: TrafficGroupIntent
metadata: {name: broken, namespace: shop}
spec: {servers: [{name: web, app: web, clients: [{name: office, cidrs: [10.1.0.7/16]}]}]}
---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {name: waits, namespace: shop}
spec: {compositeAppRef: {name: absent}, placement: {allOf: [{provider: acme}]}}
---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {name: broken, namespace: shop}
spec: {compositeAppRef: {name: web}, release: broken, overrideValues: [{app: absent, values: {a: 1}}], placement: {allOf: [{provider: acme}]}}
---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {name: ended, namespace: shop}
spec: {compositeAppRef: {name: web}, desiredState: Terminated, placement: {allOf: [{provider: acme}]}}
---
apiVersion: emco.io/v1alpha1
kind: DeploymentApproval
metadata: {name: early, namespace: shop}
spec:
  deploymentIntentGroupRef: {name: web}
  digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
  approvedBy: tester
";
