/** Objects that hold a pod template, and Services. How the tables read: `type-table.ts`. */
export const WORKLOAD_TYPES = `
CronJob
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec CronJobSpec; Status CronJobStatus
CronJobSpec
  Schedule string; TimeZone? *string; StartingDeadlineSeconds? *int; ConcurrencyPolicy? string; Suspend? *bool;
  JobTemplate JobTemplateSpec; SuccessfulJobsHistoryLimit? *int; FailedJobsHistoryLimit? *int
CronJobStatus
  Active? []ObjectReference; LastScheduleTime? *time; LastSuccessfulTime? *time
CustomDeploymentStrategyParams
  Image? string; Environment? []EnvVar; Command? []string
DaemonSet
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec DaemonSetSpec; Status DaemonSetStatus
DaemonSetCondition
  Type string; Status string; LastTransitionTime time; Reason? string; Message? string
DaemonSetSpec
  Selector *LabelSelector; Template PodTemplateSpec; UpdateStrategy DaemonSetUpdateStrategy; MinReadySeconds? int;
  RevisionHistoryLimit? *int
DaemonSetStatus
  CurrentNumberScheduled int; NumberMisscheduled int; DesiredNumberScheduled int; NumberReady int;
  ObservedGeneration? int; UpdatedNumberScheduled? int; NumberAvailable? int; NumberUnavailable? int;
  CollisionCount? *int; Conditions? []DaemonSetCondition merge:type
DaemonSetUpdateStrategy
  Type? string; RollingUpdate? *RollingUpdateDaemonSet
Deployment
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec DeploymentSpec; Status DeploymentStatus
DeploymentCause
  Type string; ImageTrigger? *DeploymentCauseImageTrigger
DeploymentCauseImageTrigger
  From ObjectReference
DeploymentCondition
  Type string; Status string; LastUpdateTime time; LastTransitionTime time; Reason? string; Message? string
DeploymentCondition2
  Type string; Status string; LastUpdateTime time; LastTransitionTime time; Reason? string; Message? string
DeploymentConfig
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec DeploymentConfigSpec; Status
  DeploymentConfigStatus
DeploymentConfigSpec
  Strategy DeploymentStrategy2; MinReadySeconds? int; Triggers []DeploymentTriggerPolicy; Replicas int;
  RevisionHistoryLimit? *int; Test bool; Paused? bool; Selector? {}string; Template? *PodTemplateSpec
DeploymentConfigStatus
  LatestVersion int; ObservedGeneration int; Replicas int; UpdatedReplicas int; AvailableReplicas int;
  UnavailableReplicas int; Details? *DeploymentDetails; Conditions? []DeploymentCondition2 merge:type;
  ReadyReplicas? int
DeploymentDetails
  Message? string; Causes []DeploymentCause
DeploymentSpec
  Replicas? *int; Selector *LabelSelector; Template PodTemplateSpec; Strategy DeploymentStrategy; MinReadySeconds?
  int; RevisionHistoryLimit? *int; Paused? bool; ProgressDeadlineSeconds? *int
DeploymentStatus
  ObservedGeneration? int; Replicas? int; UpdatedReplicas? int; ReadyReplicas? int; AvailableReplicas? int;
  UnavailableReplicas? int; TerminatingReplicas? *int; Conditions? []DeploymentCondition merge:type;
  CollisionCount? *int
DeploymentStrategy
  Type? string; RollingUpdate? *RollingUpdateDeployment
DeploymentStrategy2
  Type? string; CustomParams? *CustomDeploymentStrategyParams; RecreateParams? *RecreateDeploymentStrategyParams;
  RollingParams? *RollingDeploymentStrategyParams; Resources ResourceRequirements; Labels? {}string; Annotations?
  {}string; ActiveDeadlineSeconds? *int
DeploymentTriggerImageChangeParams
  Automatic? bool; ContainerNames? []string; From ObjectReference; LastTriggeredImage? string
DeploymentTriggerPolicy
  Type? string; ImageChangeParams? *DeploymentTriggerImageChangeParams
ExecNewPodHook
  Command []string; Env? []EnvVar; ContainerName string; Volumes? []string
Job
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec JobSpec; Status JobStatus
JobCondition
  Type string; Status string; LastProbeTime time; LastTransitionTime time; Reason? string; Message? string
JobSpec
  Parallelism? *int; Completions? *int; ActiveDeadlineSeconds? *int; PodFailurePolicy? *PodFailurePolicy;
  SuccessPolicy? *SuccessPolicy; BackoffLimit? *int; BackoffLimitPerIndex? *int; MaxFailedIndexes? *int; Selector?
  *LabelSelector; ManualSelector? *bool; Template PodTemplateSpec; TTLSecondsAfterFinished? *int; CompletionMode?
  *string; Suspend? *bool; PodReplacementPolicy? *string; ManagedBy? *string
JobStatus
  Conditions? []JobCondition merge:type; StartTime? *time; CompletionTime? *time; Active? int; Succeeded? int;
  Failed? int; Terminating? *int; CompletedIndexes? string; FailedIndexes? *string; UncountedTerminatedPods?
  *UncountedTerminatedPods; Ready? *int
JobTemplateSpec
  ObjectMeta=metadata ObjectMeta; Spec JobSpec
LifecycleHook
  FailurePolicy string; ExecNewPod? *ExecNewPodHook; TagImages? []TagImageHook
ModifyVolumeStatus
  TargetVolumeAttributesClassName? string; Status string
ObjectReference
  Kind? string; Namespace? string; Name? string; UID? string; APIVersion? string; ResourceVersion? string;
  FieldPath? string
PersistentVolumeClaim
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec PersistentVolumeClaimSpec; Status
  PersistentVolumeClaimStatus
PersistentVolumeClaimCondition
  Type string; Status string; LastProbeTime time; LastTransitionTime time; Reason? string; Message? string
PersistentVolumeClaimStatus
  Phase? string; AccessModes? []string; Capacity? {}quantity; Conditions? []PersistentVolumeClaimCondition
  merge:type; AllocatedResources? {}quantity; AllocatedResourceStatuses? {}string;
  CurrentVolumeAttributesClassName? *string; ModifyVolumeStatus? *ModifyVolumeStatus
PodFailurePolicy
  Rules []PodFailurePolicyRule
PodFailurePolicyOnExitCodesRequirement
  ContainerName? *string; Operator string; Values []int
PodFailurePolicyOnPodConditionsPattern
  Type string; Status string
PodFailurePolicyRule
  Action string; OnExitCodes? *PodFailurePolicyOnExitCodesRequirement; OnPodConditions?
  []PodFailurePolicyOnPodConditionsPattern
PodTemplateSpec
  ObjectMeta=metadata ObjectMeta; Spec PodSpec
RecreateDeploymentStrategyParams
  TimeoutSeconds? *int; Pre? *LifecycleHook; Mid? *LifecycleHook; Post? *LifecycleHook
ReplicaSet
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec ReplicaSetSpec; Status ReplicaSetStatus
ReplicaSetCondition
  Type string; Status string; LastTransitionTime time; Reason? string; Message? string
ReplicaSetSpec
  Replicas? *int; MinReadySeconds? int; Selector *LabelSelector; Template PodTemplateSpec
ReplicaSetStatus
  Replicas int; FullyLabeledReplicas? int; ReadyReplicas? int; AvailableReplicas? int; TerminatingReplicas? *int;
  ObservedGeneration? int; Conditions? []ReplicaSetCondition merge:type
ReplicationController
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec ReplicationControllerSpec; Status
  ReplicationControllerStatus
ReplicationControllerCondition
  Type string; Status string; LastTransitionTime time; Reason? string; Message? string
ReplicationControllerSpec
  Replicas? *int; MinReadySeconds? int; Selector? {}string; Template? *PodTemplateSpec
ReplicationControllerStatus
  Replicas int; FullyLabeledReplicas? int; ReadyReplicas? int; AvailableReplicas? int; ObservedGeneration? int;
  Conditions? []ReplicationControllerCondition merge:type
RollingDeploymentStrategyParams
  UpdatePeriodSeconds? *int; IntervalSeconds? *int; TimeoutSeconds? *int; MaxUnavailable? *intstr; MaxSurge?
  *intstr; Pre? *LifecycleHook; Post? *LifecycleHook
RollingUpdateDaemonSet
  MaxUnavailable? *intstr; MaxSurge? *intstr
RollingUpdateDeployment
  MaxUnavailable? *intstr; MaxSurge? *intstr
RollingUpdateStatefulSetStrategy
  Partition? *int; MaxUnavailable? *intstr
Service
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec ServiceSpec; Status any
ServicePort
  Name? string; Protocol? string; AppProtocol? *string; Port int; TargetPort? intstr; NodePort? int
ServiceSpec
  Ports? []ServicePort merge:port; Selector? {}string; ClusterIP? string; ClusterIPs? []string; Type? string;
  ExternalIPs? []string; SessionAffinity? string; LoadBalancerIP? string; LoadBalancerSourceRanges? []string;
  ExternalName? string; ExternalTrafficPolicy? string; HealthCheckNodePort? int; PublishNotReadyAddresses? bool;
  SessionAffinityConfig? any; IPFamilies? []string; IPFamilyPolicy? *string; AllocateLoadBalancerNodePorts? *bool;
  LoadBalancerClass? *string; InternalTrafficPolicy? *string; TrafficDistribution? *string
StatefulSet
  Kind? string; APIVersion? string; ObjectMeta=metadata ObjectMeta; Spec StatefulSetSpec; Status StatefulSetStatus
StatefulSetCondition
  Type string; Status string; LastTransitionTime time; Reason? string; Message? string
StatefulSetOrdinals
  Start int
StatefulSetPersistentVolumeClaimRetentionPolicy
  WhenDeleted? string; WhenScaled? string
StatefulSetSpec
  Replicas? *int; Selector *LabelSelector; Template PodTemplateSpec; VolumeClaimTemplates?
  []PersistentVolumeClaim; ServiceName string; PodManagementPolicy? string; UpdateStrategy
  StatefulSetUpdateStrategy; RevisionHistoryLimit? *int; MinReadySeconds? int;
  PersistentVolumeClaimRetentionPolicy? *StatefulSetPersistentVolumeClaimRetentionPolicy; Ordinals?
  *StatefulSetOrdinals
StatefulSetStatus
  ObservedGeneration? int; Replicas int; ReadyReplicas? int; CurrentReplicas? int; UpdatedReplicas? int;
  CurrentRevision? string; UpdateRevision? string; CollisionCount? *int; Conditions? []StatefulSetCondition
  merge:type; AvailableReplicas int
StatefulSetUpdateStrategy
  Type? string; RollingUpdate? *RollingUpdateStatefulSetStrategy
SuccessPolicy
  Rules []SuccessPolicyRule
SuccessPolicyRule
  SucceededIndexes? *string; SucceededCount? *int
TagImageHook
  ContainerName string; To ObjectReference
UncountedTerminatedPods
  Succeeded? []string; Failed? []string
`;
