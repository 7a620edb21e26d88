/**
 * What the templates of proxies share. Entries are in flow style, which no indentation can break, and every text that comes
 * from outside is quoted, so that none can add fields of its own.
 */

/** Named templates; `.` is the data of injection unless said otherwise. */
export const PARTIALS = `
{{- define "names" }}
    service.istio.io/canonical-name: {{ .name | quote }}
    service.istio.io/canonical-revision: {{ index .labels "service.istio.io/canonical-revision" | default (index .labels "app.kubernetes.io/version") | default (index .labels "version") | default "latest" | quote }}
{{- end }}

{{- /* The container that kubectl picks, unless the pod says which. */}}
{{- define "default container" }}
  {{- range tuple "kubectl.kubernetes.io/default-logs-container" "kubectl.kubernetes.io/default-container" }}
    {{- if and $.apps (not (isset $.annotations .)) }}
    {{ . }}: {{ index $.apps 0 | quote }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "image" }}
  {{- $named := annotation .ObjectMeta "sidecar.istio.io/proxyImage" .Values.global.proxy.image }}
    image: {{ if contains "/" $named }}{{ $named | quote }}{{ else }}{{ .ProxyImage | quote }}{{ end }}
    {{- with .Values.global.imagePullPolicy }}
    imagePullPolicy: {{ . | quote }}
    {{- end }}
{{- end }}

{{- /* Annotations replace all that values say, not only what they name. */}}
{{- define "resources" }}
  {{- $asked := dict }}
  {{- $annotations := .ObjectMeta.Annotations }}
  {{- range $part, $names := dict "requests" (dict "cpu" "proxyCPU" "memory" "proxyMemory") "limits" (dict "cpu" "proxyCPULimit" "memory" "proxyMemoryLimit") }}
    {{- range $resource, $name := $names }}
      {{- $key := printf "sidecar.istio.io/%s" $name }}
      {{- if isset $annotations $key }}
        {{- $amounts := set (get $asked $part | default dict) $resource (index $annotations $key) }}
        {{- $asked = set $asked $part $amounts }}
      {{- end }}
    {{- end }}
  {{- end }}
    resources: {{ if $asked }}{{ toJson $asked }}{{ else }}{{ omitNil .Values.global.proxy.resources | toJson }}{{ end }}
{{- end }}

{{- define "log levels" }}
    - {{ printf "--proxyLogLevel=%s" (annotation .ObjectMeta "sidecar.istio.io/logLevel" .Values.global.proxy.logLevel) | quote }}
    - {{ printf "--proxyComponentLogLevel=%s" (annotation .ObjectMeta "sidecar.istio.io/componentLogLevel" .Values.global.proxy.componentLogLevel) | quote }}
    - {{ printf "--log_output_level=%s" (annotation .ObjectMeta "sidecar.istio.io/agentLogLevel" .Values.global.logging.level) | quote }}
  {{- with .Values.global.sts.servicePort }}
    - {{ printf "--stsPort=%v" . | quote }}
  {{- end }}
  {{- if .Values.global.logAsJson }}
    - --log_as_json
  {{- end }}
{{- end }}

{{- define "control plane" }}
    - {name: PILOT_CERT_PROVIDER, value: {{ .Values.global.pilotCertProvider | quote }}}
    - name: CA_ADDR
  {{- $istiod := printf "istiod%s.%s.svc:15012" (ternary "" (printf "-%s" .Values.revision) (empty .Values.revision)) .Values.global.istioNamespace }}
      value: {{ .Values.global.caAddress | default $istiod | quote }}
{{- end }}

{{- define "place" }}
    - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: INSTANCE_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: SERVICE_ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
    - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
{{- end }}

{{- define "proxy config" }}
    - {name: PROXY_CONFIG, value: {{ printf "%s\\n" (protoToJSON .ProxyConfig) | quote }}}
    - name: ISTIO_META_POD_PORTS
      value: |-
        [
    {{- $isFirst := true }}
    {{- range .Spec.Containers }}
      {{- range .Ports }}
            {{ if not $isFirst }},{{ end }}{{ structToJSON . }}
        {{- $isFirst = false }}
      {{- end }}
    {{- end }}
        ]
{{- end }}

{{- /* An agent in Go sizes itself by these. */}}
{{- define "limits" }}
    - {name: GOMEMLIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: "1"}}}
    - {name: GOMAXPROCS, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1"}}}
  {{- with .CompliancePolicy }}
    - {name: COMPLIANCE_POLICY, value: {{ . | quote }}}
  {{- end }}
{{- end }}

{{- define "cluster" }}
    - {name: ISTIO_META_CLUSTER_ID, value: {{ valueOrDefault .Values.global.multiCluster.clusterName "Kubernetes" | quote }}}
    - {name: ISTIO_META_NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
{{- end }}

{{- define "network" }}
  {{- with .Values.global.network }}
    - {name: ISTIO_META_NETWORK, value: {{ . | quote }}}
  {{- end }}
{{- end }}

{{- define "owner" }}
  {{- if and .TypeMeta.APIVersion .DeploymentMeta.Name }}
    - name: ISTIO_META_OWNER
      value: {{ printf "kubernetes://apis/%s/namespaces/%s/%ss/%s" .TypeMeta.APIVersion (valueOrDefault .DeploymentMeta.Namespace "default") (toLower .TypeMeta.Kind) .DeploymentMeta.Name | quote }}
  {{- end }}
{{- end }}

{{- define "bootstrap override" }}
  {{- if isset .ObjectMeta.Annotations "sidecar.istio.io/bootstrapOverride" }}
    - {name: ISTIO_BOOTSTRAP_OVERRIDE, value: /etc/istio/custom-bootstrap/custom_bootstrap.json}
  {{- end }}
{{- end }}

{{- define "trust domain" }}
  {{- $domain := valueOrDefault .MeshConfig.TrustDomain .Values.global.trustDomain }}
  {{- with .Values.global.meshID | default $domain }}
    - {name: ISTIO_META_MESH_ID, value: {{ . | quote }}}
  {{- end }}
  {{- with $domain }}
    - {name: TRUST_DOMAIN, value: {{ . | quote }}}
  {{- end }}
{{- end }}

{{- define "proxy metadata" }}
  {{- range $name, $value := .ProxyConfig.ProxyMetadata }}
    - {name: {{ $name | quote }}, value: {{ $value | quote }}}
  {{- end }}
{{- end }}

{{- define "workload certificate mount" }}
  {{- if eq .Values.global.caName "GkeWorkloadCertificate" }}
    - {name: gke-workload-certificate, mountPath: /var/run/secrets/workload-spiffe-credentials, readOnly: true}
  {{- else }}
    - {name: workload-certs, mountPath: /var/run/secrets/workload-spiffe-credentials}
  {{- end }}
{{- end }}

{{- define "token mounts" }}
    - {name: istio-token, mountPath: /var/run/secrets/tokens}
  {{- if .Values.global.mountMtlsCerts }}
    - {name: istio-certs, mountPath: /etc/certs/, readOnly: true}
  {{- end }}
    - {name: istio-podinfo, mountPath: /etc/istio/pod}
{{- end }}

{{- define "pod volumes" }}
  - {name: istio-data, emptyDir: {}}
  - name: istio-podinfo
    downwardAPI:
      items:
      - {path: labels, fieldRef: {fieldPath: metadata.labels}}
      - {path: annotations, fieldRef: {fieldPath: metadata.annotations}}
  - name: istio-token
    projected:
      sources:
      - serviceAccountToken: {path: istio-token, expirationSeconds: 43200, audience: {{ .Values.global.sds.token.aud | quote }}}
  {{- if eq .Values.global.pilotCertProvider "istiod" }}
  - name: istiod-ca-cert
    {{- if eq (.Values.pilot.env).ENABLE_CLUSTER_TRUST_BUNDLE_API true }}
    projected:
      sources:
      - clusterTrustBundle:
          name: {{ printf "istio.io:istiod-ca:%s" (.Values.global.trustBundleName | default "root-cert") | quote }}
          path: root-cert.pem
    {{- else }}
    configMap: {name: {{ .Values.global.trustBundleName | default "istio-ca-root-cert" | quote }}}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "certificate secret" }}
  {{- if .Values.global.mountMtlsCerts }}
  - name: istio-certs
    secret: {optional: true, secretName: {{ printf "istio.%s" (.Spec.ServiceAccountName | default "default") | quote }}}
  {{- end }}
{{- end }}

{{- define "user volumes" }}
  {{- if isset .ObjectMeta.Annotations "sidecar.istio.io/userVolume" }}
    {{- range $name, $volume := fromJSON (index .ObjectMeta.Annotations "sidecar.istio.io/userVolume") }}
  - {{ mergeOverwrite (dict "name" $name) $volume | toJson }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "user volume mounts" }}
  {{- if isset .ObjectMeta.Annotations "sidecar.istio.io/userVolumeMount" }}
    {{- range $name, $mount := fromJSON (index .ObjectMeta.Annotations "sidecar.istio.io/userVolumeMount") }}
    - {{ mergeOverwrite (dict "name" $name) $mount | toJson }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "pull secrets" }}
  {{- with .Values.global.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
  - {name: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}
`;
