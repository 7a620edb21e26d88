/** A proxy that is the whole pod: the pod has a container `istio-proxy` with the image `auto`. */
import { PARTIALS } from "./partials.ts";

/** Rendered for the template name `gateway`. */
export const GATEWAY_TEMPLATE = `${PARTIALS}
{{- $annotations := .ObjectMeta.Annotations }}
{{- $labels := .ObjectMeta.Labels }}
{{- $proxy := .Values.global.proxy }}
{{- $apps := list }}
{{- range .Spec.Containers }}{{ if ne .Name "istio-proxy" }}{{ $apps = append $apps .Name }}{{ end }}{{ end }}
{{- $name := index $labels "service.istio.io/canonical-name" | default (index $labels "app.kubernetes.io/name") | default (index $labels "app") | default .DeploymentMeta.Name }}
metadata:
  labels:
    {{- template "names" (dict "name" $name "labels" $labels) }}
  annotations:
    istio.io/rev: {{ .Revision | default "default" | quote }}
    {{- template "default container" (dict "apps" $apps "annotations" $annotations) }}
spec:
  {{- if .Values.gateways.securityContext }}
  securityContext: {{ toJson .Values.gateways.securityContext }}
  {{- else }}
  securityContext: {sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "0"}]}
  {{- end }}
  containers:
  - name: istio-proxy
    {{- template "image" . }}
    ports:
    - {containerPort: 15090, protocol: TCP, name: http-envoy-prom}
    args:
    - proxy
    - router
    - --domain
    - {{ printf "$(POD_NAMESPACE).svc.%s" $proxy.clusterDomain | quote }}
    {{- template "log levels" . }}
    {{- with $proxy.lifecycle }}
    lifecycle: {{ toJson . }}
    {{- end }}
    securityContext: {runAsUser: {{ .ProxyUID | default "1337" }}, runAsGroup: {{ .ProxyGID | default "1337" }}}
    env:
    {{- template "control plane" . }}
    {{- template "place" . }}
    - {name: ISTIO_CPU_LIMIT, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1"}}}
    {{- template "proxy config" . }}
    {{- template "limits" . }}
    - {name: ISTIO_META_APP_CONTAINERS, value: {{ $apps | join "," | quote }}}
    {{- template "cluster" . }}
    - {name: ISTIO_META_INTERCEPTION_MODE, value: {{ .ProxyConfig.InterceptionMode.String }}}
    {{- template "network" . }}
    {{- with .DeploymentMeta.Name }}
    - {name: ISTIO_META_WORKLOAD_NAME, value: {{ . | quote }}}
    {{- end }}
    {{- template "owner" . }}
    {{- template "bootstrap override" . }}
    {{- template "trust domain" . }}
    {{- template "proxy metadata" . }}
    readinessProbe:
      httpGet: {path: /healthz/ready, port: 15021}
      initialDelaySeconds: {{ $proxy.readinessInitialDelaySeconds }}
      periodSeconds: {{ $proxy.readinessPeriodSeconds }}
      timeoutSeconds: 3
      failureThreshold: {{ $proxy.readinessFailureThreshold }}
    volumeMounts:
    - {name: workload-socket, mountPath: /var/run/secrets/workload-spiffe-uds}
    - {name: credential-socket, mountPath: /var/run/secrets/credential-uds}
    {{- template "workload certificate mount" . }}
    {{- if eq .Values.global.pilotCertProvider "istiod" }}
    - {name: istiod-ca-cert, mountPath: /var/run/secrets/istio}
    {{- end }}
    - {name: istio-data, mountPath: /var/lib/istio/data}
    {{- if isset $annotations "sidecar.istio.io/bootstrapOverride" }}
    - {name: custom-bootstrap-volume, mountPath: /etc/istio/custom-bootstrap}
    {{- end }}
    - {name: istio-envoy, mountPath: /etc/istio/proxy}
    {{- template "token mounts" . }}
  volumes:
  - {name: workload-socket, emptyDir: null}
  - {name: credential-socket, emptyDir: {}}
  {{- if eq .Values.global.caName "GkeWorkloadCertificate" }}
  - {name: gke-workload-certificate, csi: {driver: workloadcertificates.security.cloud.google.com}}
  {{- else }}
  - {name: workload-certs, emptyDir: {}}
  {{- end }}
  {{- if isset $annotations "sidecar.istio.io/bootstrapOverride" }}
  - {name: custom-bootstrap-volume, configMap: {name: {{ index $annotations "sidecar.istio.io/bootstrapOverride" | quote }}}}
  {{- end }}
  - {name: istio-envoy, emptyDir: {medium: Memory}}
  {{- template "pod volumes" . }}
  {{- template "certificate secret" . }}
  {{- template "pull secrets" . }}
`;
