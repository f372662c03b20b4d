-- The health of an EMCO object for Argo CD, one script for every kind. Made part of argocd-cm.yaml by `make generate`.
-- There are no string functions in the place where this runs.

-- Failures that may cure themselves, but that somebody should look at: EMCO goes on trying, and says Reconciling.
local degraded = {
  Cluster = {
    SecretNotFound = true, SecretKeyNotFound = true, KubeconfigInvalid = true, KubeconfigForbidden = true,
    Unauthorized = true, Forbidden = true, TLSFailed = true, DNSFailed = true, Timeout = true,
    ConnectionRefused = true, AddressNotAllowed = true, ServerError = true, ClaimedByAnotherHub = true,
    TargetNotFound = true, TargetNotReady = true, AgentNotInstalled = true, AgentNotSyncing = true, AgentFailed = true,
  },
  GitTarget = {
    SecretNotFound = true, SecretKeyNotFound = true, Unauthorized = true, Forbidden = true, RepositoryNotFound = true,
    BranchNotFound = true, AddressNotAllowed = true, TLSFailed = true, DNSFailed = true, Timeout = true,
    ConnectionRefused = true, ServerError = true, NotGit = true, PushConflict = true, PushRefused = true,
    ClaimedByAnotherHub = true, RepositoryTooLarge = true,
  },
  SyncShard = { Unreachable = true, Failed = true, ContentLost = true, Orphaned = true, FormatUnknown = true },
  AppContext = { ContentLost = true, FormatUnknown = true },
}
local failed = { InstantiateFailed = true, UpdateFailed = true, TerminateFailed = true }

local function health(status, message)
  return { status = status, message = message }
end

if obj.metadata.deletionTimestamp ~= nil then
  local message = "being deleted"
  if obj.status ~= nil and obj.status.conditions ~= nil then
    for _, condition in ipairs(obj.status.conditions) do
      if condition.type == "InUse" or (condition.type == "Ready" and message == "being deleted") then
        message = "being deleted: " .. (condition.message or "")
      end
    end
  end
  return health("Progressing", message)
end

local conditions = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    conditions[condition.type] = condition
  end
end
local ready = conditions.Ready
if ready == nil then
  return health("Progressing", "the operator has not looked at it yet")
end
-- Whatever else it says may be about an older generation.
if ready.reason == "ReconcileFailed" then
  return health("Degraded", ready.message)
end
local observed = obj.status.observedGeneration
if observed ~= nil and obj.metadata.generation ~= nil and observed ~= obj.metadata.generation then
  return health("Progressing", "the operator has not looked at the last change yet")
end

if conditions.Stalled ~= nil and conditions.Stalled.status == "True" then
  return health("Degraded", conditions.Stalled.message)
end
if obj.status.state ~= nil and failed[obj.status.state] then
  return health("Degraded", ready.message)
end
if obj.kind == "DeploymentIntentGroup" then
  if ready.reason == "Terminated" or ready.reason == "Suspended" or ready.reason == "Planned" then
    return health("Suspended", ready.message)
  end
end
if ready.status ~= "True" and degraded[obj.kind] ~= nil and degraded[obj.kind][ready.reason] then
  return health("Degraded", ready.message)
end
if conditions.Reconciling ~= nil and conditions.Reconciling.status == "True" then
  return health("Progressing", conditions.Reconciling.message)
end
if ready.status == "True" then
  return health("Healthy", ready.message)
end
return health("Progressing", ready.message)
