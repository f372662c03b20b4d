//! Makes `.Capabilities`: what a cluster can do, with a record of what templates asked.
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::{Field, Record};
use crate::funcs::{Ctx, FuncError, Param};
use crate::limits::{NODE_BYTES, take};
use crate::semver::Version;
use crate::value::{Kind, Method, Object, Text, Value};

/// The API versions Helm 3.17 assumes when it talks to no cluster, in its order.
pub const DEFAULT_API_VERSIONS: &[&str] = &[
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "autoscaling/v2beta1",
    "autoscaling/v2beta2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1alpha1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha1",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1alpha1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

/// What the target cluster can do.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// The cluster's version, for example `v1.36.3`.
    pub kube_version: String,
    /// API versions, and `group/version/Kind` where kinds are known; in the order templates range over.
    pub api_versions: Vec<String>,
    /// The Helm version templates see.
    pub helm_version: String,
}

impl Default for Capabilities {
    /// What Helm 3.17.3 assumes when it talks to no cluster.
    fn default() -> Self {
        Self {
            kube_version: "v1.32.0".to_owned(),
            api_versions: DEFAULT_API_VERSIONS.iter().map(|&version| version.to_owned()).collect(),
            helm_version: "v3.17.3".to_owned(),
        }
    }
}

/// A Kubernetes version that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Kubernetes version {0:?} is not a version such as v1.36.3")]
pub struct KubeVersionError(pub String);

/// What a render asked about its surroundings. A render that read nothing gives the same result everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// API versions asked for with `.Capabilities.APIVersions.Has`.
    pub api_versions: BTreeSet<String>,
    /// The whole list of API versions was read.
    pub all_api_versions: bool,
    /// The cluster's version was read.
    pub kube_version: bool,
    /// Parts of `.Values` that were read, such as `["image", "tag"]`, as paths in the values of the chart that was
    /// rendered; none leads to another. The empty path stands for all of them.
    ///
    /// Conditions and tags of dependencies count. A map that was printed, copied, counted or ranged over was read
    /// whole. What is named here may be more than mattered, never less: renders of one chart for which these parts
    /// and everything else in `Reads` are alike are the same, unless values are refused before anything is rendered
    /// (by a schema, or because a dependency's values are no mapping); warnings may differ.
    pub values: BTreeSet<Vec<String>>,
    /// Random functions were called: another seed gives other manifests.
    pub random: bool,
    /// Objects asked for with `lookup`.
    pub lookups: BTreeSet<crate::render::LookupRead>,
}

impl Reads {
    /// Whether anything of the cluster's capabilities was read.
    pub fn capabilities(&self) -> bool {
        self.kube_version || self.all_api_versions || !self.api_versions.is_empty()
    }
}

type Recorder = Rc<RefCell<Reads>>;

impl Capabilities {
    /// Refuses what `helm template --kube-version` refuses, in its words. What a live cluster says of itself is taken as it is.
    pub fn check_kube_version(version: &str) -> Result<(), String> {
        Version::parse(version)
            .map(drop)
            .map_err(|error| format!("invalid kube version '{version}': {error}"))
    }
}

/// The object `.Capabilities`.
#[derive(Debug)]
pub(crate) struct CapabilitiesObject {
    kube_version: Rc<KubeVersion>,
    api_versions: Rc<VersionSet>,
    helm_version: Rc<Record>,
    reads: Recorder,
}

impl CapabilitiesObject {
    pub fn new(capabilities: &Capabilities, reads: &Recorder) -> Result<Self, KubeVersionError> {
        let helm_version = Record {
            type_name: "version.BuildInfo",
            kind: Kind::Struct,
            fields: vec![
                Field::new("Version", "version", capabilities.helm_version.as_str()),
                Field::new("GitCommit", "git_commit", "e4da49785aa6e6ee2b86efd5dd9e43400318262b"),
                Field::new("GitTreeState", "git_tree_state", "clean"),
                Field::new("GoVersion", "go_version", "go1.23.7"),
            ],
            embedded: None,
        };
        Ok(Self {
            kube_version: Rc::new(KubeVersion::parse(&capabilities.kube_version)?),
            api_versions: Rc::new(VersionSet {
                versions: capabilities
                    .api_versions
                    .iter()
                    .map(|version| Text::from(version.as_str()))
                    .collect(),
                reads: reads.clone(),
            }),
            helm_version: Rc::new(helm_version),
            reads: reads.clone(),
        })
    }
}

impl CapabilitiesObject {
    /// The cluster's version as templates see it.
    pub fn kube_version(&self) -> &str {
        &self.kube_version.version
    }
}

impl Object for CapabilitiesObject {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &'static str {
        "*chartutil.Capabilities"
    }

    fn kind(&self) -> Kind {
        Kind::Pointer
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "KubeVersion" => {
                self.reads.borrow_mut().kube_version = true;
                Some(Value::Object(self.kube_version.clone()))
            }
            "APIVersions" => Some(Value::Object(self.api_versions.clone())),
            "HelmVersion" => Some(Value::Object(self.helm_version.clone())),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<Method> {
        (name == "Copy").then_some(Method::GETTER)
    }

    fn call(&self, _ctx: &mut Ctx<'_>, _name: &str, _args: &[Value]) -> Result<Value, FuncError> {
        Ok(Value::object(Self {
            kube_version: self.kube_version.clone(),
            api_versions: self.api_versions.clone(),
            helm_version: self.helm_version.clone(),
            reads: self.reads.clone(),
        }))
    }

    fn fields(&self) -> Vec<Value> {
        ["KubeVersion", "APIVersions", "HelmVersion"].iter().filter_map(|name| self.field(name)).collect()
    }

    fn field_names(&self) -> Vec<&'static str> {
        vec!["KubeVersion", "APIVersions", "HelmVersion"]
    }

    fn json_fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.field_names().into_iter().zip(self.fields()).collect())
    }

    fn plain(&self) -> Value {
        let names = ["KubeVersion", "APIVersions", "HelmVersion"];
        Value::map(names.iter().filter_map(|&name| Some((Text::from(name), self.field(name)?))))
    }
}

/// `.Capabilities.KubeVersion`
#[derive(Debug)]
struct KubeVersion {
    version: String,
    major: String,
    minor: String,
}

impl KubeVersion {
    fn parse(text: &str) -> Result<Self, KubeVersionError> {
        let bad = || KubeVersionError(text.to_owned());
        let version = text.strip_prefix('v').unwrap_or(text);
        let core = version.split(['-', '+']).next().unwrap_or_default();
        let suffix = version.get(core.len()..).unwrap_or_default();
        let mut parts = core.split('.');
        let mut number = |needed: bool| match parts.next() {
            Some(part) if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => {
                part.parse::<u64>().map_err(|_| bad())
            }
            None if !needed => Ok(0),
            _ => Err(bad()),
        };
        let (major, minor, patch) = (number(true)?, number(false)?, number(false)?);
        if parts.next().is_some() {
            return Err(bad());
        }
        Ok(Self {
            version: format!("v{major}.{minor}.{patch}{suffix}"),
            major: major.to_string(),
            minor: minor.to_string(),
        })
    }
}

impl Object for KubeVersion {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &'static str {
        "chartutil.KubeVersion"
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Version" => Some(Value::text(self.version.as_str())),
            "Major" => Some(Value::text(self.major.as_str())),
            "Minor" => Some(Value::text(self.minor.as_str())),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<Method> {
        matches!(name, "String" | "GitVersion").then_some(Method::GETTER)
    }

    fn call(&self, _ctx: &mut Ctx<'_>, _name: &str, _args: &[Value]) -> Result<Value, FuncError> {
        Ok(Value::text(self.version.as_str()))
    }

    fn print(&self) -> Option<Vec<u8>> {
        Some(self.version.clone().into_bytes())
    }

    fn fields(&self) -> Vec<Value> {
        [&self.version, &self.major, &self.minor].map(|text| Value::text(text.as_str())).into()
    }

    fn field_names(&self) -> Vec<&'static str> {
        vec!["Version", "Major", "Minor"]
    }

    fn json_fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.field_names().into_iter().zip(self.fields()).collect())
    }

    fn plain(&self) -> Value {
        let names = ["Version", "Major", "Minor"];
        Value::map(names.iter().filter_map(|&name| Some((Text::from(name), self.field(name)?))))
    }
}

/// `.Capabilities.APIVersions`
#[derive(Debug)]
struct VersionSet {
    versions: Vec<Text>,
    reads: Recorder,
}

impl Object for VersionSet {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &'static str {
        "chartutil.VersionSet"
    }

    fn kind(&self) -> Kind {
        Kind::Slice
    }

    fn truth(&self) -> bool {
        self.reads.borrow_mut().all_api_versions = true;
        !self.versions.is_empty()
    }

    fn method(&self, name: &str) -> Option<Method> {
        (name == "Has").then_some(Method { params: &[Param::String], variadic: None })
    }

    fn call(&self, _ctx: &mut Ctx<'_>, _name: &str, args: &[Value]) -> Result<Value, FuncError> {
        let Some(Value::Text(wanted)) = args.first() else { return Ok(Value::Bool(false)) };
        if self.reads.borrow_mut().api_versions.insert(wanted.lossy().into_owned()) {
            // It is kept until the render ends.
            take(wanted.len() + NODE_BYTES);
        }
        Ok(Value::Bool(self.versions.contains(wanted)))
    }

    fn plain(&self) -> Value {
        self.reads.borrow_mut().all_api_versions = true;
        Value::strings(self.versions.iter().cloned())
    }
}
