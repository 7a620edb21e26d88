/** What a pod is made of, except its volumes. How the tables read: `type-table.ts`. */
export const POD_TYPES = `
Affinity
  NodeAffinity? *NodeAffinity; PodAffinity? *PodAffinity; PodAntiAffinity? *PodAntiAffinity
AppArmorProfile
  Type string; LocalhostProfile? *string
Capabilities
  Add? []string; Drop? []string
ConfigMapEnvSource
  Name? string; Optional? *bool
ConfigMapKeySelector
  Name? string; Key string; Optional? *bool
Container
  Name string; Image? string; Command? []string; Args? []string; WorkingDir? string; Ports? []ContainerPort
  merge:containerPort; EnvFrom? []EnvFromSource; Env? []EnvVar merge:name; Resources ResourceRequirements;
  ResizePolicy? []ContainerResizePolicy; RestartPolicy? *string; RestartPolicyRules? []ContainerRestartRule;
  VolumeMounts? []VolumeMount merge:mountPath; VolumeDevices? []VolumeDevice merge:devicePath; LivenessProbe?
  *Probe; ReadinessProbe? *Probe; StartupProbe? *Probe; Lifecycle? *Lifecycle; TerminationMessagePath? string;
  TerminationMessagePolicy? string; ImagePullPolicy? string; SecurityContext? *SecurityContext; Stdin? bool;
  StdinOnce? bool; TTY? bool
ContainerExtendedResourceRequest
  ContainerName string; ResourceName string; RequestName string
ContainerPort
  Name? string; HostPort? int; ContainerPort int; Protocol? string; HostIP? string
ContainerResizePolicy
  ResourceName string; RestartPolicy string
ContainerRestartRule
  Action? string; ExitCodes? *ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes
  Operator? string; Values? []int
ContainerState
  Waiting? *ContainerStateWaiting; Running? *ContainerStateRunning; Terminated? *ContainerStateTerminated
ContainerStateRunning
  StartedAt time
ContainerStateTerminated
  ExitCode int; Signal? int; Reason? string; Message? string; StartedAt time; FinishedAt time; ContainerID? string
ContainerStateWaiting
  Reason? string; Message? string
ContainerStatus
  Name string; State ContainerState; LastTerminationState=lastState ContainerState; Ready bool; RestartCount int;
  Image string; ImageID string; ContainerID? string; Started? *bool; AllocatedResources? {}quantity; Resources?
  *ResourceRequirements; VolumeMounts? []VolumeMountStatus merge:mountPath; User? *ContainerUser;
  AllocatedResourcesStatus? []ResourceStatus merge:name; StopSignal? *string
ContainerUser
  Linux? *LinuxContainerUser
EnvFromSource
  Prefix? string; ConfigMapRef? *ConfigMapEnvSource; SecretRef? *SecretEnvSource
EnvVar
  Name string; Value? string; ValueFrom? *EnvVarSource
EnvVarSource
  FieldRef? *ObjectFieldSelector; ResourceFieldRef? *ResourceFieldSelector; ConfigMapKeyRef?
  *ConfigMapKeySelector; SecretKeyRef? *SecretKeySelector; FileKeyRef? *FileKeySelector
EphemeralContainer
  Name string; Image? string; Command? []string; Args? []string; WorkingDir? string; Ports? []ContainerPort
  merge:containerPort; EnvFrom? []EnvFromSource; Env? []EnvVar merge:name; Resources ResourceRequirements;
  ResizePolicy? []ContainerResizePolicy; RestartPolicy? *string; RestartPolicyRules? []ContainerRestartRule;
  VolumeMounts? []VolumeMount merge:mountPath; VolumeDevices? []VolumeDevice merge:devicePath; LivenessProbe?
  *Probe; ReadinessProbe? *Probe; StartupProbe? *Probe; Lifecycle? *Lifecycle; TerminationMessagePath? string;
  TerminationMessagePolicy? string; ImagePullPolicy? string; SecurityContext? *SecurityContext; Stdin? bool;
  StdinOnce? bool; TTY? bool; TargetContainerName? string
ExecAction
  Command? []string
FileKeySelector
  VolumeName string; Path string; Key string; Optional? *bool
GRPCAction
  Port int; Service *string
HTTPGetAction
  Path? string; Port intstr; Host? string; Scheme? string; HTTPHeaders? []HTTPHeader
HTTPHeader
  Name string; Value string
HostAlias
  IP string; Hostnames? []string
HostIP
  IP string
Lifecycle
  PostStart? *LifecycleHandler; PreStop? *LifecycleHandler; StopSignal? *string
LifecycleHandler
  Exec? *ExecAction; HTTPGet? *HTTPGetAction; TCPSocket? *TCPSocketAction; Sleep? *SleepAction
LinuxContainerUser
  UID int; GID int; SupplementalGroups? []int
NodeAffinity
  RequiredDuringSchedulingIgnoredDuringExecution? *NodeSelector; PreferredDuringSchedulingIgnoredDuringExecution?
  []PreferredSchedulingTerm
NodeSelector
  NodeSelectorTerms []NodeSelectorTerm
NodeSelectorRequirement
  Key string; Operator string; Values? []string
NodeSelectorTerm
  MatchExpressions? []NodeSelectorRequirement; MatchFields? []NodeSelectorRequirement
ObjectMeta
  Name? string; GenerateName? string; Namespace? string; SelfLink? string; UID? string; ResourceVersion? string;
  Generation? int; CreationTimestamp? time; DeletionTimestamp? *time; DeletionGracePeriodSeconds? *int; Labels?
  {}string; Annotations? {}string; OwnerReferences? []OwnerReference merge:uid; Finalizers? []string merge;
  ManagedFields? []ManagedFieldsEntry
Pod
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec PodSpec; Status PodStatus
PodAffinity
  RequiredDuringSchedulingIgnoredDuringExecution? []PodAffinityTerm;
  PreferredDuringSchedulingIgnoredDuringExecution? []WeightedPodAffinityTerm
PodAffinityTerm
  LabelSelector? *LabelSelector; Namespaces? []string; TopologyKey string; NamespaceSelector? *LabelSelector;
  MatchLabelKeys? []string; MismatchLabelKeys? []string
PodAntiAffinity
  RequiredDuringSchedulingIgnoredDuringExecution? []PodAffinityTerm;
  PreferredDuringSchedulingIgnoredDuringExecution? []WeightedPodAffinityTerm
PodCondition
  Type string; ObservedGeneration? int; Status string; LastProbeTime time; LastTransitionTime time; Reason?
  string; Message? string
PodDNSConfig
  Nameservers? []string; Searches? []string; Options? []PodDNSConfigOption
PodDNSConfigOption
  Name? string; Value? *string
PodExtendedResourceClaimStatus
  RequestMappings []ContainerExtendedResourceRequest; ResourceClaimName string
PodIP
  IP string
PodOS
  Name string
PodReadinessGate
  ConditionType string
PodResourceClaim
  Name string; ResourceClaimName? *string; ResourceClaimTemplateName? *string
PodResourceClaimStatus
  Name string; ResourceClaimName? *string
PodSchedulingGate
  Name string
PodSecurityContext
  SELinuxOptions? *SELinuxOptions; WindowsOptions? *WindowsSecurityContextOptions; RunAsUser? *int; RunAsGroup?
  *int; RunAsNonRoot? *bool; SupplementalGroups? []int; SupplementalGroupsPolicy? *string; FSGroup? *int; Sysctls?
  []Sysctl; FSGroupChangePolicy? *string; SeccompProfile? *SeccompProfile; AppArmorProfile? *AppArmorProfile;
  SELinuxChangePolicy? *string
PodSpec
  Volumes? []Volume merge:name; InitContainers? []Container merge:name; Containers []Container merge:name;
  EphemeralContainers? []EphemeralContainer merge:name; RestartPolicy? string; TerminationGracePeriodSeconds?
  *int; ActiveDeadlineSeconds? *int; DNSPolicy? string; NodeSelector? {}string; ServiceAccountName? string;
  DeprecatedServiceAccount=serviceAccount? string; AutomountServiceAccountToken? *bool; NodeName? string;
  HostNetwork? bool; HostPID? bool; HostIPC? bool; ShareProcessNamespace? *bool; SecurityContext?
  *PodSecurityContext; ImagePullSecrets? []LocalObjectReference merge:name; Hostname? string; Subdomain? string;
  Affinity? *Affinity; SchedulerName? string; Tolerations? []Toleration; HostAliases? []HostAlias merge:ip;
  PriorityClassName? string; Priority? *int; DNSConfig? *PodDNSConfig; ReadinessGates? []PodReadinessGate;
  RuntimeClassName? *string; EnableServiceLinks? *bool; PreemptionPolicy? *string; Overhead? {}quantity;
  TopologySpreadConstraints? []TopologySpreadConstraint merge:topologyKey; SetHostnameAsFQDN? *bool; OS? *PodOS;
  HostUsers? *bool; SchedulingGates? []PodSchedulingGate merge:name; ResourceClaims? []PodResourceClaim
  merge:name; Resources? *ResourceRequirements; HostnameOverride? *string; WorkloadRef? *WorkloadReference
PodStatus
  ObservedGeneration? int; Phase? string; Conditions? []PodCondition merge:type; Message? string; Reason? string;
  NominatedNodeName? string; HostIP? string; HostIPs? []HostIP merge:ip; PodIP? string; PodIPs? []PodIP merge:ip;
  StartTime? *time; InitContainerStatuses? []ContainerStatus; ContainerStatuses? []ContainerStatus; QOSClass?
  string; EphemeralContainerStatuses? []ContainerStatus; Resize? string; ResourceClaimStatuses?
  []PodResourceClaimStatus merge:name; ExtendedResourceClaimStatus? *PodExtendedResourceClaimStatus;
  AllocatedResources? {}quantity; Resources? *ResourceRequirements
PreferredSchedulingTerm
  Weight int; Preference NodeSelectorTerm
Probe
  Exec? *ExecAction; HTTPGet? *HTTPGetAction; TCPSocket? *TCPSocketAction; GRPC? *GRPCAction; InitialDelaySeconds?
  int; TimeoutSeconds? int; PeriodSeconds? int; SuccessThreshold? int; FailureThreshold? int;
  TerminationGracePeriodSeconds? *int
ResourceClaim
  Name string; Request? string
ResourceHealth
  ResourceID string; Health? string
ResourceRequirements
  Limits? {}quantity; Requests? {}quantity; Claims? []ResourceClaim
ResourceStatus
  Name string; Resources? []ResourceHealth
SELinuxOptions
  User? string; Role? string; Type? string; Level? string
SeccompProfile
  Type string; LocalhostProfile? *string
SecretEnvSource
  Name? string; Optional? *bool
SecretKeySelector
  Name? string; Key string; Optional? *bool
SecurityContext
  Capabilities? *Capabilities; Privileged? *bool; SELinuxOptions? *SELinuxOptions; WindowsOptions?
  *WindowsSecurityContextOptions; RunAsUser? *int; RunAsGroup? *int; RunAsNonRoot? *bool; ReadOnlyRootFilesystem?
  *bool; AllowPrivilegeEscalation? *bool; ProcMount? *string; SeccompProfile? *SeccompProfile; AppArmorProfile?
  *AppArmorProfile
SleepAction
  Seconds int
Sysctl
  Name string; Value string
TCPSocketAction
  Port intstr; Host? string
Toleration
  Key? string; Operator? string; Value? string; Effect? string; TolerationSeconds? *int
TopologySpreadConstraint
  MaxSkew int; TopologyKey string; WhenUnsatisfiable string; LabelSelector? *LabelSelector; MinDomains? *int;
  NodeAffinityPolicy? *string; NodeTaintsPolicy? *string; MatchLabelKeys? []string
VolumeDevice
  Name string; DevicePath string
VolumeMount
  Name string; ReadOnly? bool; RecursiveReadOnly? *string; MountPath string; SubPath? string; MountPropagation?
  *string; SubPathExpr? string
VolumeMountStatus
  Name string; MountPath string; ReadOnly? bool; RecursiveReadOnly? *string
WeightedPodAffinityTerm
  Weight int; PodAffinityTerm PodAffinityTerm
WindowsSecurityContextOptions
  GMSACredentialSpecName? *string; GMSACredentialSpec? *string; RunAsUserName? *string; HostProcess? *bool
WorkloadReference
  Name string; PodGroup string; PodGroupReplicaKey? string
`;
