/** The proxy beside an application, and the init container that sends its traffic there. */
import { PARTIALS } from "./partials.ts";

/** Rendered for the template name `sidecar`, the default. */
export const SIDECAR_TEMPLATE = `${PARTIALS}
{{- $annotations := .ObjectMeta.Annotations }}
{{- $labels := .ObjectMeta.Labels }}
{{- $proxy := .Values.global.proxy }}
{{- $cni := .Values.pilot.cni }}
{{- $mode := annotation .ObjectMeta "sidecar.istio.io/interceptionMode" .ProxyConfig.InterceptionMode }}
{{- $tproxy := eq $mode "TPROXY" }}
{{- $bindsLowPorts := eq (annotation .ObjectMeta "sidecar.istio.io/capNetBindService" $proxy.capNetBindService) "true" }}
{{- $native := ne (index $annotations "sidecar.istio.io/nativeSidecar" | default (printf "%t" .NativeSidecars)) "false" }}
{{- $privileged := $proxy.privileged | default false }}
{{- $statusPort := annotation .ObjectMeta "status.sidecar.istio.io/port" $proxy.statusPort }}
{{- $includeRanges := annotation .ObjectMeta "traffic.sidecar.istio.io/includeOutboundIPRanges" $proxy.includeIPRanges }}
{{- $excludeRanges := annotation .ObjectMeta "traffic.sidecar.istio.io/excludeOutboundIPRanges" $proxy.excludeIPRanges }}
{{- $includeIn := annotation .ObjectMeta "traffic.sidecar.istio.io/includeInboundPorts" $proxy.includeInboundPorts }}
{{- $excludeIn := excludeInboundPort $statusPort (annotation .ObjectMeta "traffic.sidecar.istio.io/excludeInboundPorts" $proxy.excludeInboundPorts) }}
{{- $givesIncludeOut := or (isset $annotations "traffic.sidecar.istio.io/includeOutboundPorts") (ne (valueOrDefault $proxy.includeOutboundPorts "") "") }}
{{- $includeOut := annotation .ObjectMeta "traffic.sidecar.istio.io/includeOutboundPorts" $proxy.includeOutboundPorts }}
{{- $givesExcludeOut := or (isset $annotations "traffic.sidecar.istio.io/excludeOutboundPorts") (ne (valueOrDefault $proxy.excludeOutboundPorts "") "") }}
{{- $excludeOut := annotation .ObjectMeta "traffic.sidecar.istio.io/excludeOutboundPorts" $proxy.excludeOutboundPorts }}
{{- $apps := list }}
{{- range .Spec.Containers }}{{ if ne .Name "istio-proxy" }}{{ $apps = append $apps .Name }}{{ end }}{{ end }}
{{- $name := index $labels "service.istio.io/canonical-name" | default (index $labels "app.kubernetes.io/name") | default (index $labels "app") | default .DeploymentMeta.Name | trunc 63 | trimSuffix "-" }}
metadata:
  labels:
    security.istio.io/tlsMode: {{ index $labels "security.istio.io/tlsMode" | default "istio" | quote }}
    {{- if eq (index .ProxyConfig.ProxyMetadata "ISTIO_META_ENABLE_HBONE") "true" }}
    networking.istio.io/tunnel: {{ index $labels "networking.istio.io/tunnel" | default "http" | quote }}
    {{- end }}
    {{- template "names" (dict "name" $name "labels" $labels) }}
  annotations:
    istio.io/rev: {{ .Revision | default "default" | quote }}
    {{- template "default container" (dict "apps" $apps "annotations" $annotations) }}
    {{- if $cni.enabled }}
    {{- if eq $cni.provider "multus" }}
    k8s.v1.cni.cncf.io/networks: {{ appendMultusNetwork (index $annotations "k8s.v1.cni.cncf.io/networks") "default/istio-cni" | quote }}
    {{- end }}
    sidecar.istio.io/interceptionMode: {{ $mode | quote }}
    {{- with $includeRanges }}
    traffic.sidecar.istio.io/includeOutboundIPRanges: {{ . | quote }}
    {{- end }}
    {{- with $excludeRanges }}
    traffic.sidecar.istio.io/excludeOutboundIPRanges: {{ . | quote }}
    {{- end }}
    traffic.sidecar.istio.io/includeInboundPorts: {{ $includeIn | quote }}
    traffic.sidecar.istio.io/excludeInboundPorts: {{ $excludeIn | quote }}
    {{- if $givesIncludeOut }}
    traffic.sidecar.istio.io/includeOutboundPorts: {{ $includeOut | quote }}
    {{- end }}
    {{- if $givesExcludeOut }}
    traffic.sidecar.istio.io/excludeOutboundPorts: {{ $excludeOut | quote }}
    {{- end }}
    {{- range $key := tuple "traffic.sidecar.istio.io/kubevirtInterfaces" "istio.io/reroute-virtual-interfaces" "traffic.sidecar.istio.io/excludeInterfaces" }}
    {{- with index $annotations $key }}
    {{ $key }}: {{ . | quote }}
    {{- end }}
    {{- end }}
    {{- end }}
spec:
  initContainers:
  {{- if ne $mode "NONE" }}
  - name: {{ ternary "istio-validation" "istio-init" (not (empty $cni.enabled)) }}
    {{- $initImage := annotation .ObjectMeta "sidecar.istio.io/proxyImage" .Values.global.proxy_init.image }}
    image: {{ if contains "/" $initImage }}{{ $initImage | quote }}{{ else }}{{ .ProxyImage | quote }}{{ end }}
    {{- with .Values.global.imagePullPolicy }}
    imagePullPolicy: {{ . | quote }}
    {{- end }}
    args:
    - istio-iptables
    - "-p"
    - {{ .MeshConfig.ProxyListenPort | default "15001" | quote }}
    - "-z"
    - {{ .MeshConfig.ProxyInboundListenPort | default "15006" | quote }}
    - "-u"
    - {{ if $tproxy }}"1337"{{ else }}{{ .ProxyUID | default "1337" | quote }}{{ end }}
    - "-m"
    - {{ $mode | quote }}
    - "-i"
    - {{ $includeRanges | quote }}
    - "-x"
    - {{ $excludeRanges | quote }}
    - "-b"
    - {{ $includeIn | quote }}
    - "-d"
    - {{ list "15090" "15021" $excludeIn | compact | join "," | quote }}
    {{- if $givesIncludeOut }}
    - "-q"
    - {{ $includeOut | quote }}
    {{- end }}
    {{- if $givesExcludeOut }}
    - "-o"
    - {{ $excludeOut | quote }}
    {{- end }}
    {{- if isset $annotations "istio.io/reroute-virtual-interfaces" }}
    - "-k"
    - {{ index $annotations "istio.io/reroute-virtual-interfaces" | quote }}
    {{- else if isset $annotations "traffic.sidecar.istio.io/kubevirtInterfaces" }}
    - "-k"
    - {{ index $annotations "traffic.sidecar.istio.io/kubevirtInterfaces" | quote }}
    {{- end }}
    {{- if isset $annotations "traffic.sidecar.istio.io/excludeInterfaces" }}
    - "-c"
    - {{ index $annotations "traffic.sidecar.istio.io/excludeInterfaces" | quote }}
    {{- end }}
    - {{ printf "--log_output_level=%s" (annotation .ObjectMeta "sidecar.istio.io/agentLogLevel" .Values.global.logging.level) | quote }}
    {{- if .Values.global.logAsJson }}
    - --log_as_json
    {{- end }}
    {{- if $cni.enabled }}
    - --run-validation
    - --skip-rule-apply
    {{- else if .Values.global.proxy_init.forceApplyIptables }}
    - --force-apply
    {{- end }}
    {{- if .Values.global.nativeNftables }}
    - --native-nftables
    {{- end }}
    {{- if .ProxyConfig.ProxyMetadata }}
    env:
    {{- template "proxy metadata" . }}
    {{- end }}
    {{- template "resources" . }}
    securityContext:
      allowPrivilegeEscalation: {{ $privileged }}
      privileged: {{ $privileged }}
      {{- if $cni.enabled }}
      capabilities: {drop: [ALL]}
      readOnlyRootFilesystem: true
      runAsGroup: {{ if $tproxy }}1337{{ else }}{{ .ProxyGID | default "1337" }}{{ end }}
      runAsUser: {{ if $tproxy }}1337{{ else }}{{ .ProxyUID | default "1337" }}{{ end }}
      runAsNonRoot: true
      {{- else }}
      capabilities: {add: [NET_ADMIN, NET_RAW], drop: [ALL]}
      readOnlyRootFilesystem: false
      runAsGroup: 0
      runAsUser: 0
      runAsNonRoot: false
      {{- end }}
      {{- with $proxy.seccompProfile }}
      seccompProfile: {{ toJson . }}
      {{- end }}
  {{- else if not $native }} []
  {{- end }}
  {{- if not $native }}
  containers:
  {{- end }}
  - name: istio-proxy
    {{- template "image" . }}
    {{- if $native }}
    restartPolicy: Always
    {{- end }}
    ports:
    - {containerPort: 15090, protocol: TCP, name: http-envoy-prom}
    args:
    - proxy
    - sidecar
    - --domain
    - {{ printf "$(POD_NAMESPACE).svc.%s" $proxy.clusterDomain | quote }}
    {{- template "log levels" . }}
    {{- with $proxy.outlierLogPath }}
    - {{ printf "--outlierLogPath=%s" . | quote }}
    {{- end }}
    {{- $holds := and (or .ProxyConfig.HoldApplicationUntilProxyStarts.GetValue $proxy.holdApplicationUntilProxyStarts) (not $native) }}
    {{- if $proxy.lifecycle }}
    lifecycle: {{ toJson $proxy.lifecycle }}
    {{- else if $holds }}
    lifecycle: {postStart: {exec: {command: [pilot-agent, wait]}}}
    {{- else if $native }}
    lifecycle: {preStop: {exec: {command: [pilot-agent, request, {{ printf "--debug-port=%s" $statusPort | quote }}, POST, drain]}}}
    {{- end }}
    env:
    {{- if eq .InboundTrafficPolicyMode "localhost" }}
    - {name: REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION, value: "true"}
    {{- end }}
    {{- template "control plane" . }}
    {{- template "place" . }}
    - {name: ISTIO_CPU_LIMIT, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1"}}}
    {{- template "proxy config" . }}
    - {name: ISTIO_META_APP_CONTAINERS, value: {{ $apps | join "," | quote }}}
    {{- template "limits" . }}
    {{- template "cluster" . }}
    - {name: ISTIO_META_INTERCEPTION_MODE, value: {{ index $annotations "sidecar.istio.io/interceptionMode" | default .ProxyConfig.InterceptionMode.String | quote }}}
    {{- template "network" . }}
    {{- with index $labels "service.istio.io/workload-name" | default .DeploymentMeta.Name }}
    - {name: ISTIO_META_WORKLOAD_NAME, value: {{ . | quote }}}
    {{- end }}
    {{- template "owner" . }}
    {{- template "bootstrap override" . }}
    {{- template "trust domain" . }}
    {{- if and (eq $proxy.tracer "datadog") (isset $annotations "apm.datadoghq.com/env") }}
    {{- range $name, $value := fromJSON (index $annotations "apm.datadoghq.com/env") }}
    - {name: {{ $name | quote }}, value: {{ $value | quote }}}
    {{- end }}
    {{- end }}
    {{- template "proxy metadata" . }}
    {{- if ne $statusPort "0" }}
    {{- if $proxy.startupProbe.enabled }}
    startupProbe:
      httpGet: {path: /healthz/ready, port: 15021}
      periodSeconds: 1
      timeoutSeconds: 3
      failureThreshold: {{ $proxy.startupProbe.failureThreshold }}
    {{- end }}
    readinessProbe:
      httpGet: {path: /healthz/ready, port: 15021}
      initialDelaySeconds: {{ annotation .ObjectMeta "readiness.status.sidecar.istio.io/initialDelaySeconds" $proxy.readinessInitialDelaySeconds }}
      periodSeconds: {{ annotation .ObjectMeta "readiness.status.sidecar.istio.io/periodSeconds" $proxy.readinessPeriodSeconds }}
      timeoutSeconds: 3
      failureThreshold: {{ annotation .ObjectMeta "readiness.status.sidecar.istio.io/failureThreshold" $proxy.readinessFailureThreshold }}
    {{- end }}
    securityContext:
      readOnlyRootFilesystem: true
      {{- if eq (index .ProxyConfig.ProxyMetadata "IPTABLES_TRACE_LOGGING") "true" }}
      allowPrivilegeEscalation: true
      capabilities: {add: [NET_ADMIN], drop: [ALL]}
      privileged: true
      runAsGroup: {{ .ProxyGID | default "1337" }}
      runAsNonRoot: false
      runAsUser: 0
      {{- else }}
      allowPrivilegeEscalation: {{ $privileged }}
      privileged: {{ $privileged }}
      {{- if or $tproxy $bindsLowPorts }}
      capabilities:
        add: {{ list (ternary "NET_ADMIN" "" $tproxy) (ternary "NET_BIND_SERVICE" "" $bindsLowPorts) | compact | toJson }}
        drop: [ALL]
      runAsNonRoot: false
      runAsUser: 0
      runAsGroup: 1337
      {{- else }}
      capabilities: {drop: [ALL]}
      runAsNonRoot: true
      runAsUser: {{ .ProxyUID | default "1337" }}
      runAsGroup: {{ .ProxyGID | default "1337" }}
      {{- end }}
      {{- end }}
      {{- with $proxy.seccompProfile }}
      seccompProfile: {{ toJson . }}
      {{- end }}
    {{- template "resources" . }}
    volumeMounts:
    - {name: workload-socket, mountPath: /var/run/secrets/workload-spiffe-uds}
    - {name: credential-socket, mountPath: /var/run/secrets/credential-uds}
    {{- template "workload certificate mount" . }}
    {{- if eq .Values.global.pilotCertProvider "istiod" }}
    - {name: istiod-ca-cert, mountPath: /var/run/secrets/istio}
    - {name: istio-ca-crl, mountPath: /var/run/secrets/istio/crl}
    {{- end }}
    - {name: istio-data, mountPath: /var/lib/istio/data}
    {{- if isset $annotations "sidecar.istio.io/bootstrapOverride" }}
    - {name: custom-bootstrap-volume, mountPath: /etc/istio/custom-bootstrap}
    {{- end }}
    - {name: istio-envoy, mountPath: /etc/istio/proxy}
    {{- template "token mounts" . }}
    {{- $sendsToLightstep := and (eq $proxy.tracer "lightstep") .ProxyConfig.GetTracing.GetTlsSettings }}
    {{- if $sendsToLightstep }}
    - {name: lightstep-certs, mountPath: {{ directory .ProxyConfig.GetTracing.GetTlsSettings.GetCaCertificates | quote }}, readOnly: true}
    {{- end }}
    {{- template "user volume mounts" . }}
  volumes:
  - {name: workload-socket, emptyDir: null}
  - {name: credential-socket, emptyDir: null}
  {{- if eq .Values.global.caName "GkeWorkloadCertificate" }}
  - {name: gke-workload-certificate, csi: {driver: workloadcertificates.security.cloud.google.com}}
  {{- else }}
  - {name: workload-certs, emptyDir: null}
  {{- end }}
  {{- if isset $annotations "sidecar.istio.io/bootstrapOverride" }}
  - {name: custom-bootstrap-volume, configMap: {name: {{ index $annotations "sidecar.istio.io/bootstrapOverride" | quote }}}}
  {{- end }}
  - {name: istio-envoy, emptyDir: {medium: Memory}}
  {{- template "pod volumes" . }}
  - {name: istio-ca-crl, configMap: {name: {{ .Values.pilot.crlConfigMapName | default "istio-ca-crl" | quote }}, optional: true}}
  {{- template "certificate secret" . }}
  {{- template "user volumes" . }}
  {{- if $sendsToLightstep }}
  - {name: lightstep-certs, secret: {optional: true, secretName: lightstep.cacert}}
  {{- end }}
  {{- template "pull secrets" . }}
`;
