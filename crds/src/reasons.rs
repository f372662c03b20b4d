//! The closed sets of condition reasons, one per kind. They are metric labels too: nothing else may be a reason.

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $reason:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)] // the names are the documentation; the book explains each
        pub enum $name { $($(#[$vdoc])* $reason),+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$reason),+];

            /// The text in a condition.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$reason => stringify!($reason)),+ }
            }

            /// The reason of this text.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|r| r.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl From<$name> for &'static str {
            fn from(reason: $name) -> Self {
                reason.as_str()
            }
        }
    };
}

reasons!(
    /// Of a `ClusterProvider`.
    ClusterProviderReason {
        NamespaceOwned,
        NamespaceTaken,
        NamespaceNotOurs,
        Terminating,
        HeldBy,
        ReconcileFailed,
        NotSupportedYet,
    }
);

reasons!(
    /// Of a `GitTarget`.
    GitTargetReason {
        Published,
        Publishing,
        NoClusterProvider,
        SameFolderTwice,
        SecretNotFound,
        SecretKeyNotFound,
        Unauthorized,
        Forbidden,
        RepositoryNotFound,
        BranchNotFound,
        AddressNotAllowed,
        TLSFailed,
        DNSFailed,
        Timeout,
        ConnectionRefused,
        ServerError,
        NotGit,
        PushConflict,
        PushRefused,
        ClaimedByAnotherHub,
        FolderNotOurs,
        HubRestored,
        RepositoryTooLarge,
        Terminating,
        HeldBy,
        ReconcileFailed,
    }
);

reasons!(
    /// Of a Cluster.
    ClusterReason {
        Reachable,
        Connecting,
        Published,
        TargetNotFound,
        TargetNotReady,
        AgentNotInstalled,
        AgentNotSyncing,
        AgentFailed,
        NoClusterProvider,
        SecretNotFound,
        SecretKeyNotFound,
        KubeconfigInvalid,
        KubeconfigForbidden,
        Unauthorized,
        Forbidden,
        TLSFailed,
        DNSFailed,
        Timeout,
        ConnectionRefused,
        AddressNotAllowed,
        ServerError,
        SameClusterTwice,
        ClusterReplaced,
        ClaimedByAnotherHub,
        HubRestored,
        Accepted,
        EndSoon,
        RenewalRefused,
        Terminating,
        HeldBy,
        ReconcileFailed,
        NotSupportedYet,
    }
);

reasons!(
    /// Of a Project.
    ProjectReason {
        NamespaceReady,
        NamespaceTaken,
        NamespaceNotOurs,
        MembersNotBound,
        NoClustersGranted,
        Terminating,
        HeldBy,
        ReconcileFailed,
        NotSupportedYet,
    }
);

reasons!(
    /// Of a `LogicalCloud`.
    LogicalCloudReason {
        Ready,
        Instantiated,
        Instantiating,
        NotGranted,
        LevelNotGranted,
        NamespaceConflict,
        NamespaceNotOurs,
        NamespaceReserved,
        CSRDenied,
        CSRNotSigned,
        CredentialRefused,
        PermissionRejected,
        QuotaRejected,
        ShrinkWaits,
        NoClusters,
        NoProject,
        FormatUnknown,
        // Of a cluster, as of a deployment
        Unreachable,
        ServerError,
        Forbidden,
        Invalid,
        Conflict,
        KindMissing,
        ContentLost,
        ClusterReplaced,
        SameClusterTwice,
        ClaimedByAnotherHub,
        HubRestored,
        TargetNotFound,
        TargetNotReady,
        AgentFailed,
        NotSupportedByGit,
        DriftFight,
        ProgressDeadlineExceeded,
        Suspended,
        Terminating,
        HeldBy,
        ReconcileFailed,
        NotSupportedYet,
    }
);

reasons!(
    /// Of a `CompositeApp`.
    CompositeAppReason {
        ChartsResolved,
        Fetching,
        ChartNotFound,
        ChartUnauthorized,
        ChartSourceNotAllowed,
        ChartDigestChanged,
        ChartInvalid,
        ChartTooLarge,
        ChartIsLibrary,
        SourceUnreachable,
        ConfigMapNotFound,
        SecretNotFound,
        DependencyCycle,
        NoProject,
        Terminating,
        HeldBy,
        ReconcileFailed,
        NotSupportedYet,
    }
);

reasons!(
    /// Of a `CompositeProfile`.
    CompositeProfileReason {
        Valid,
        AppNotFound,
        ConfigMapNotFound,
        SecretNotFound,
        KeyNotFound,
        ValuesInvalid,
        TemplateInvalid,
        Terminating,
        HeldBy,
        ReconcileFailed,
        NotSupportedYet,
    }
);

reasons!(
    /// Of a `GenericActionIntent`.
    GenericActionIntentReason {
        Valid,
        ConfigMapNotFound,
        SecretNotFound,
        KeyNotFound,
        ResourceInvalid,
        PatchInvalid,
        TemplateInvalid,
        Terminating,
        HeldBy,
        ReconcileFailed,
    }
);

reasons!(
    /// Of a `HardwareIntent`.
    HardwareIntentReason {
        Valid,
        RequirementInvalid,
        Terminating,
        HeldBy,
        ReconcileFailed,
    }
);

reasons!(
    /// Of a `TrafficGroupIntent`.
    TrafficGroupIntentReason { Valid, ServerInvalid, Terminating, HeldBy, ReconcileFailed }
);

reasons!(
    /// Of a `DeploymentIntentGroup`. Those of Ready=False stand in the order of the conditions they come from.
    DeploymentIntentGroupReason {
        // Resolved
        ReferencesFound,
        NoProject,
        CompositeAppNotFound,
        CompositeProfileNotFound,
        LogicalCloudNotFound,
        LogicalCloudNotReady,
        IntentNotFound,
        IntentKindUnknown,
        IntentInvalid,
        AppNotFound,
        ConfigMapNotFound,
        SecretNotFound,
        ChartNotReady,
        Fetching,
        DuplicateRelease,
        TooManyDeployments,
        DependencyCycle,
        RevisionUnavailable,
        FormatUnknown,
        NotSupportedYet,
        // Approved
        Automatic,
        ApprovedBy,
        AwaitingApproval,
        Rejected,
        StaleApproval,
        RemovalNeedsConfirmation,
        // Placed
        ClustersChosen,
        NoClusterMatches,
        NotEnoughClusters,
        ClusterNotFound,
        ClusterNotInLogicalCloud,
        HardwareUnsatisfiable,
        BackendMissing,
        ControllerFailed,
        AffinityCircular,
        // Rendered
        Rendered,
        TemplateError,
        ValuesInvalid,
        SchemaViolation,
        VariableUnknown,
        TargetMissing,
        PatchFailed,
        EditConflict,
        DuplicateResource,
        ReachabilityViolated,
        NotAllowedByLevel,
        NotSupportedByGit,
        OutputTooLarge,
        PlanTooLong,
        // Deployed
        Deployed,
        Progressing,
        WaitingForDependency,
        WaitingForWave,
        Unreachable,
        ServerError,
        Forbidden,
        Invalid,
        Conflict,
        NotOurs,
        KindMissing,
        NamespaceMissing,
        HookFailed,
        ImmutableField,
        BlockedByPrune,
        RolloutPaused,
        ContentLost,
        ClusterReplaced,
        SameClusterTwice,
        ClaimedByAnotherHub,
        HubRestored,
        TargetNotFound,
        TargetNotReady,
        AgentFailed,
        DriftFight,
        // Ready
        Ready,
        NotReady,
        ProgressDeadlineExceeded,
        Suspended,
        Planned,
        Pinned,
        Terminating,
        Terminated,
        Abandoned,
        HeldBy,
        ReconcileFailed,
    }
);

reasons!(
    /// Of a `DeploymentApproval`.
    DeploymentApprovalReason { InEffect, Waiting, Stale, Superseded, ReconcileFailed, NotSupportedYet }
);

reasons!(
    /// Of a `DeploymentView`.
    DeploymentViewReason { Answered, Waiting, Running, Refused, ReconcileFailed }
);

reasons!(
    /// Of an `AppContext`.
    AppContextReason { Stored, Storing, ContentLost, FormatUnknown }
);

reasons!(
    /// Of a `SyncShard`.
    SyncShardReason { Ready, Progressing, Unreachable, Failed, ContentLost, Orphaned, FormatUnknown, Terminating }
);

/// Reason of Ready=False of an object of any kind whose reconcile fails again and again.
pub const RECONCILE_FAILED: &str = "ReconcileFailed";

/// Reasons of Ready=False, of any kind, that are a step on the way: work that goes on, a wait for something that comes by itself, or
/// what a person asked for.
const PROGRESS: &[&str] = &[
    "Connecting",
    "Fetching",
    "Publishing",
    "Instantiating",
    "Progressing",
    "NotReady",
    "WaitingForDependency",
    "WaitingForWave",
    "AwaitingApproval",
    "Waiting",
    "ShrinkWaits",
    "Storing",
    "Suspended",
    "Planned",
    "Pinned",
    "Terminating",
    "Terminated",
    "HeldBy",
];

/// Whether a Ready=False of this reason needs nobody's attention. Everything else is a failure, and a Warning as an Event.
pub fn is_progress(reason: &str) -> bool {
    PROGRESS.contains(&reason)
}

impl DeploymentIntentGroupReason {
    /// Whether only an edit helps. Everything else may cure itself.
    pub const fn stalled(self) -> bool {
        matches!(
            self,
            Self::DuplicateRelease
                | Self::TooManyDeployments
                | Self::Rejected
                | Self::IntentKindUnknown
                | Self::IntentInvalid
                | Self::AppNotFound
                | Self::TemplateError
                | Self::ValuesInvalid
                | Self::SchemaViolation
                | Self::VariableUnknown
                | Self::TargetMissing
                | Self::PatchFailed
                | Self::EditConflict
                | Self::DuplicateResource
                | Self::ReachabilityViolated
                | Self::NotAllowedByLevel
                | Self::NotSupportedByGit
                | Self::OutputTooLarge
                | Self::PlanTooLong
                | Self::DependencyCycle
                | Self::RevisionUnavailable
                | Self::NotSupportedYet
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_on_the_way_is_a_reason_of_a_kind() {
        let all = [
            ClusterProviderReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            GitTargetReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            ClusterReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            ProjectReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            LogicalCloudReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            CompositeAppReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            CompositeProfileReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            GenericActionIntentReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            HardwareIntentReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            TrafficGroupIntentReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            DeploymentIntentGroupReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            DeploymentApprovalReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            DeploymentViewReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            AppContextReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
            SyncShardReason::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
        ]
        .concat();
        let unknown: Vec<_> = PROGRESS.iter().filter(|reason| !all.contains(reason)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
