/** An agent without Envoy beside applications that speak xDS themselves through their gRPC library. */
import { PARTIALS } from "./partials.ts";

/** Rendered for the template name `grpc-agent`. */
export const GRPC_AGENT_TEMPLATE = `${PARTIALS}
{{- $annotations := .ObjectMeta.Annotations }}
{{- $labels := .ObjectMeta.Labels }}
{{- $proxy := .Values.global.proxy }}
{{- $apps := list }}
{{- range .Spec.Containers }}{{ if ne .Name "istio-proxy" }}{{ $apps = append $apps .Name }}{{ end }}{{ end }}
{{- $name := index $labels "service.istio.io/canonical-name" | default (index $labels "app.kubernetes.io/name") | default (index $labels "app") | default .DeploymentMeta.Name }}
metadata:
  {{- /* Whether the application takes mutual TLS only its own code decides: no security.istio.io/tlsMode here. */}}
  labels:
    {{- template "names" (dict "name" $name "labels" $labels) }}
  annotations:
    istio.io/rev: {{ .Revision | default "default" | quote }}
    sidecar.istio.io/rewriteAppHTTPProbers: "false"
    {{- template "default container" (dict "apps" $apps "annotations" $annotations) }}
spec:
  containers:
  - name: istio-proxy
    {{- template "image" . }}
    ports:
    - {containerPort: 15020, protocol: TCP, name: mesh-metrics}
    args:
    - proxy
    - sidecar
    - --domain
    - {{ printf "$(POD_NAMESPACE).svc.%s" $proxy.clusterDomain | quote }}
    {{- template "log levels" . }}
    lifecycle: {postStart: {exec: {command: [pilot-agent, wait, "--url=http://localhost:15020/healthz/ready"]}}}
    env:
    - {name: ISTIO_META_GENERATOR, value: grpc}
    - {name: OUTPUT_CERTS, value: /var/lib/istio/data}
    {{- if eq .InboundTrafficPolicyMode "localhost" }}
    - {name: REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION, value: "true"}
    {{- end }}
    {{- template "control plane" . }}
    {{- template "place" . }}
    {{- template "proxy config" . }}
    - {name: ISTIO_META_APP_CONTAINERS, value: {{ $apps | join "," | quote }}}
    {{- template "cluster" . }}
    {{- template "network" . }}
    {{- with .DeploymentMeta.Name }}
    - {name: ISTIO_META_WORKLOAD_NAME, value: {{ . | quote }}}
    {{- end }}
    {{- template "owner" . }}
    {{- template "trust domain" . }}
    {{- template "proxy metadata" . }}
    {{- /* Names of the form xds:/// are resolved by xDS, not by DNS. */}}
    - {name: ISTIO_META_DNS_CAPTURE, value: "false"}
    - {name: DISABLE_ENVOY, value: "true"}
    {{- if ne (annotation .ObjectMeta "status.sidecar.istio.io/port" $proxy.statusPort) "0" }}
    readinessProbe:
      httpGet: {path: /healthz/ready, port: 15020}
      initialDelaySeconds: {{ annotation .ObjectMeta "readiness.status.sidecar.istio.io/initialDelaySeconds" $proxy.readinessInitialDelaySeconds }}
      periodSeconds: {{ annotation .ObjectMeta "readiness.status.sidecar.istio.io/periodSeconds" $proxy.readinessPeriodSeconds }}
      timeoutSeconds: 3
      failureThreshold: {{ annotation .ObjectMeta "readiness.status.sidecar.istio.io/failureThreshold" $proxy.readinessFailureThreshold }}
    {{- end }}
    {{- template "resources" . }}
    volumeMounts:
    - {name: workload-socket, mountPath: /var/run/secrets/workload-spiffe-uds}
    {{- template "workload certificate mount" . }}
    {{- if eq .Values.global.pilotCertProvider "istiod" }}
    - {name: istiod-ca-cert, mountPath: /var/run/secrets/istio}
    {{- end }}
    - {name: istio-data, mountPath: /var/lib/istio/data}
    - {name: istio-xds, mountPath: /etc/istio/proxy}
    {{- template "token mounts" . }}
    {{- template "user volume mounts" . }}
  {{- range $app := $apps }}
  - name: {{ $app | quote }}
    env:
    - {name: GRPC_XDS_EXPERIMENTAL_SECURITY_SUPPORT, value: "true"}
    - {name: GRPC_XDS_BOOTSTRAP, value: /etc/istio/proxy/grpc-bootstrap.json}
    volumeMounts:
    - {name: istio-data, mountPath: /var/lib/istio/data}
    - {name: istio-xds, mountPath: /etc/istio/proxy}
    {{- template "workload certificate mount" $ }}
  {{- end }}
  volumes:
  - {name: workload-socket, emptyDir: null}
  {{- if eq .Values.global.caName "GkeWorkloadCertificate" }}
  - {name: gke-workload-certificate, csi: {driver: workloadcertificates.security.cloud.google.com}}
  {{- else }}
  - {name: workload-certs, emptyDir: null}
  {{- end }}
  {{- if isset $annotations "sidecar.istio.io/bootstrapOverride" }}
  - {name: custom-bootstrap-volume, configMap: {name: {{ index $annotations "sidecar.istio.io/bootstrapOverride" | quote }}}}
  {{- end }}
  - {name: istio-xds, emptyDir: {medium: Memory}}
  {{- template "pod volumes" . }}
  {{- template "certificate secret" . }}
  {{- template "user volumes" . }}
  {{- template "pull secrets" . }}
`;
