/** What volumes are made of. How the tables read: `type-table.ts`. */
export const VOLUME_TYPES = `
AWSElasticBlockStoreVolumeSource
  VolumeID string; FSType? string; Partition? int; ReadOnly? bool
AzureDiskVolumeSource
  DiskName string; DataDiskURI=diskURI string; CachingMode? *string; FSType? *string; ReadOnly? *bool; Kind?
  *string
AzureFileVolumeSource
  SecretName string; ShareName string; ReadOnly? bool
CSIVolumeSource
  Driver string; ReadOnly? *bool; FSType? *string; VolumeAttributes? {}string; NodePublishSecretRef?
  *LocalObjectReference
CephFSVolumeSource
  Monitors []string; Path? string; User? string; SecretFile? string; SecretRef? *LocalObjectReference; ReadOnly?
  bool
CinderVolumeSource
  VolumeID string; FSType? string; ReadOnly? bool; SecretRef? *LocalObjectReference
ClusterTrustBundleProjection
  Name? *string; SignerName? *string; LabelSelector? *LabelSelector; Optional? *bool; Path string
ConfigMapProjection
  Name? string; Items? []KeyToPath; Optional? *bool
ConfigMapVolumeSource
  Name? string; Items? []KeyToPath; DefaultMode? *int; Optional? *bool
DownwardAPIProjection
  Items? []DownwardAPIVolumeFile
DownwardAPIVolumeFile
  Path string; FieldRef? *ObjectFieldSelector; ResourceFieldRef? *ResourceFieldSelector; Mode? *int
DownwardAPIVolumeSource
  Items? []DownwardAPIVolumeFile; DefaultMode? *int
EmptyDirVolumeSource
  Medium? string; SizeLimit? *quantity
EphemeralVolumeSource
  VolumeClaimTemplate? *PersistentVolumeClaimTemplate
FCVolumeSource
  TargetWWNs? []string; Lun? *int; FSType? string; ReadOnly? bool; WWIDs=wwids? []string
FlexVolumeSource
  Driver string; FSType? string; SecretRef? *LocalObjectReference; ReadOnly? bool; Options? {}string
FlockerVolumeSource
  DatasetName? string; DatasetUUID? string
GCEPersistentDiskVolumeSource
  PDName string; FSType? string; Partition? int; ReadOnly? bool
GitRepoVolumeSource
  Repository string; Revision? string; Directory? string
GlusterfsVolumeSource
  EndpointsName=endpoints string; Path string; ReadOnly? bool
HostPathVolumeSource
  Path string; Type? *string
ISCSIVolumeSource
  TargetPortal string; IQN string; Lun int; ISCSIInterface? string; FSType? string; ReadOnly? bool; Portals?
  []string; DiscoveryCHAPAuth=chapAuthDiscovery? bool; SessionCHAPAuth=chapAuthSession? bool; SecretRef?
  *LocalObjectReference; InitiatorName? *string
ImageVolumeSource
  Reference? string; PullPolicy? string
KeyToPath
  Key string; Path string; Mode? *int
LabelSelector
  MatchLabels? {}string; MatchExpressions? []LabelSelectorRequirement
LabelSelectorRequirement
  Key string; Operator string; Values? []string
LocalObjectReference
  Name? string
ManagedFieldsEntry
  Manager? string; Operation? string; APIVersion? string; Time? *time; FieldsType? string; FieldsV1? *any;
  Subresource? string
NFSVolumeSource
  Server string; Path string; ReadOnly? bool
ObjectFieldSelector
  APIVersion? string; FieldPath string
OwnerReference
  APIVersion string; Kind string; Name string; UID string; Controller? *bool; BlockOwnerDeletion? *bool
PersistentVolumeClaimSpec
  AccessModes? []string; Selector? *LabelSelector; Resources VolumeResourceRequirements; VolumeName? string;
  StorageClassName? *string; VolumeMode? *string; DataSource? *TypedLocalObjectReference; DataSourceRef?
  *TypedObjectReference; VolumeAttributesClassName? *string
PersistentVolumeClaimTemplate
  ObjectMeta=metadata ObjectMeta; Spec PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource
  ClaimName string; ReadOnly? bool
PhotonPersistentDiskVolumeSource
  PdID string; FSType? string
PodCertificateProjection
  SignerName? string; KeyType? string; MaxExpirationSeconds? *int; CredentialBundlePath? string; KeyPath? string;
  CertificateChainPath? string; UserAnnotations? {}string
PortworxVolumeSource
  VolumeID string; FSType? string; ReadOnly? bool
ProjectedVolumeSource
  Sources []VolumeProjection; DefaultMode? *int
QuobyteVolumeSource
  Registry string; Volume string; ReadOnly? bool; User? string; Group? string; Tenant? string
RBDVolumeSource
  CephMonitors=monitors []string; RBDImage=image string; FSType? string; RBDPool=pool? string; RadosUser=user?
  string; Keyring? string; SecretRef? *LocalObjectReference; ReadOnly? bool
ResourceFieldSelector
  ContainerName? string; Resource string; Divisor quantity
ScaleIOVolumeSource
  Gateway string; System string; SecretRef *LocalObjectReference; SSLEnabled? bool; ProtectionDomain? string;
  StoragePool? string; StorageMode? string; VolumeName? string; FSType? string; ReadOnly? bool
SecretProjection
  Name? string; Items? []KeyToPath; Optional? *bool
SecretVolumeSource
  SecretName? string; Items? []KeyToPath; DefaultMode? *int; Optional? *bool
ServiceAccountTokenProjection
  Audience? string; ExpirationSeconds? *int; Path string
StorageOSVolumeSource
  VolumeName? string; VolumeNamespace? string; FSType? string; ReadOnly? bool; SecretRef? *LocalObjectReference
TypedLocalObjectReference
  APIGroup *string; Kind string; Name string
TypedObjectReference
  APIGroup *string; Kind string; Name string; Namespace? *string
Volume
  Name string; HostPath? *HostPathVolumeSource; EmptyDir? *EmptyDirVolumeSource; GCEPersistentDisk?
  *GCEPersistentDiskVolumeSource; AWSElasticBlockStore? *AWSElasticBlockStoreVolumeSource; GitRepo?
  *GitRepoVolumeSource; Secret? *SecretVolumeSource; NFS? *NFSVolumeSource; ISCSI? *ISCSIVolumeSource; Glusterfs?
  *GlusterfsVolumeSource; PersistentVolumeClaim? *PersistentVolumeClaimVolumeSource; RBD? *RBDVolumeSource;
  FlexVolume? *FlexVolumeSource; Cinder? *CinderVolumeSource; CephFS=cephfs? *CephFSVolumeSource; Flocker?
  *FlockerVolumeSource; DownwardAPI? *DownwardAPIVolumeSource; FC? *FCVolumeSource; AzureFile?
  *AzureFileVolumeSource; ConfigMap? *ConfigMapVolumeSource; VsphereVolume? *VsphereVirtualDiskVolumeSource;
  Quobyte? *QuobyteVolumeSource; AzureDisk? *AzureDiskVolumeSource; PhotonPersistentDisk?
  *PhotonPersistentDiskVolumeSource; Projected? *ProjectedVolumeSource; PortworxVolume? *PortworxVolumeSource;
  ScaleIO? *ScaleIOVolumeSource; StorageOS=storageos? *StorageOSVolumeSource; CSI? *CSIVolumeSource; Ephemeral?
  *EphemeralVolumeSource; Image? *ImageVolumeSource
VolumeProjection
  Secret? *SecretProjection; DownwardAPI? *DownwardAPIProjection; ConfigMap? *ConfigMapProjection;
  ServiceAccountToken? *ServiceAccountTokenProjection; ClusterTrustBundle? *ClusterTrustBundleProjection;
  PodCertificate? *PodCertificateProjection
VolumeResourceRequirements
  Limits? {}quantity; Requests? {}quantity
VsphereVirtualDiskVolumeSource
  VolumePath string; FSType? string; StoragePolicyName? string; StoragePolicyID? string
`;
