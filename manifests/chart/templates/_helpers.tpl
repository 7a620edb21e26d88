{{- /* The part of names that tells revisions apart. */ -}}
{{- define "mizzen.suffix" -}}
{{- if and .Values.revision (ne .Values.revision "default") }}-{{ .Values.revision }}{{ end -}}
{{- end -}}

{{- define "mizzen.revision" -}}
{{ .Values.revision | default "default" }}
{{- end -}}

{{- /* By what Services find the pods. */ -}}
{{- define "mizzen.servicePods" -}}
app: istiod
{{- if include "mizzen.suffix" . }}
istio.io/rev: {{ .Values.revision | quote }}
{{- else }}
istio: pilot
{{- end -}}
{{- end -}}

{{- /* By what a Deployment finds its pods: names that Istio uses, so that one can take over from the other. */ -}}
{{- define "mizzen.pods" -}}
{{- if include "mizzen.suffix" . -}}
app: istiod
istio.io/rev: {{ .Values.revision | quote }}
{{- else -}}
istio: pilot
{{- end -}}
{{- end -}}

{{- define "mizzen.labels" -}}
istio.io/rev: {{ include "mizzen.revision" . | quote }}
release: {{ .Release.Name | quote }}
app.kubernetes.io/name: istiod
{{ include "mizzen.partLabels" . }}
operator.istio.io/component: Pilot
{{- end -}}

{{- /* What every object has. */ -}}
{{- define "mizzen.partLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/part-of: istio
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
install.operator.istio.io/owning-resource: {{ .Values.ownerName | default "unknown" | quote }}
{{- end -}}

{{- /* The mesh config that other values make; `meshConfig` counts more. */ -}}
{{- define "mizzen.mesh" -}}
{{- $proxy := .Values.global.proxy }}
{{- $tracer := .Values.global.tracer }}
rootNamespace: {{ .Release.Namespace }}
trustDomain: cluster.local
{{- if and .Values.telemetry.enabled .Values.telemetry.v2.enabled .Values.telemetry.v2.prometheus.enabled (not .Values.meshConfig.defaultProviders) }}
defaultProviders:
  metrics: [prometheus]
{{- end }}
defaultConfig:
  discoveryAddress: istiod{{ include "mizzen.suffix" . }}.{{ .Release.Namespace }}.svc:15012
  {{- with .Values.global.meshID }}
  meshId: {{ . | quote }}
  {{- end }}
  {{- with $proxy.variant | default .Values.global.variant }}
  image:
    imageType: {{ . | quote }}
  {{- end }}
  {{- if eq $proxy.tracer "zipkin" }}
  tracing:
    zipkin:
      address: {{ $tracer.zipkin.address | default (printf "zipkin.%s:9411" .Release.Namespace) | quote }}
  {{- else if eq $proxy.tracer "datadog" }}
  tracing:
    datadog:
      address: {{ $tracer.datadog.address | default "$(HOST_IP):8126" | quote }}
  {{- else if eq $proxy.tracer "lightstep" }}
  tracing:
    lightstep:
      address: {{ $tracer.lightstep.address | quote }}
      accessToken: {{ $tracer.lightstep.accessToken | quote }}
  {{- else if eq $proxy.tracer "stackdriver" }}
  tracing:
    stackdriver: {{ toJson $tracer.stackdriver }}
  {{- else if ne $proxy.tracer "none" }}
  {{- fail (printf "global.proxy.tracer: %q is none of zipkin, datadog, lightstep, stackdriver, none" $proxy.tracer) }}
  {{- end }}
{{- end -}}

{{- /* Environment of the control plane: what makes it like an earlier version, and what `pilot.env` says over it. */ -}}
{{- define "mizzen.pilotEnv" -}}
{{- $env := deepCopy .Values.pilot.env }}
{{- $since := dict "1.28" (list "DISABLE_TRACK_REMAINING_CB_METRICS") }}
{{- $_ := set $since "1.27" (append (get $since "1.28") "DISABLE_SHADOW_HOST_SUFFIX") }}
{{- $_ := set $since "1.26" (append (get $since "1.27") "ENABLE_NATIVE_SIDECARS") }}
{{- $_ := set $since "1.25" (get $since "1.26") }}
{{- with toString .Values.compatibilityVersion }}
{{- if not (hasKey $since .) }}
{{- fail (printf "compatibilityVersion: %q is none of 1.25, 1.26, 1.27, 1.28" .) }}
{{- end }}
{{- range get $since . }}
{{- if not (hasKey $env .) }}
{{- $_ := set $env . "false" }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $map := dict "PILOT_CA_CERT_CONFIGMAP" .Values.global.trustBundleName "PILOT_CRL_CONFIGMAP" .Values.pilot.crlConfigMapName }}
{{- if and $map (not (hasKey $env $name)) }}
{{- $_ := set $env $name $map }}
{{- end }}
{{- end }}
{{- toJson $env }}
{{- end -}}

{{- /* Whether objects say what became of them; then it needs more rights. */ -}}
{{- define "mizzen.writesStatus" -}}
{{- $env := .Values.pilot.env }}
{{- $analysis := ternary $env.PILOT_ENABLE_ANALYSIS .Values.global.istiod.enableAnalysis (hasKey $env "PILOT_ENABLE_ANALYSIS") }}
{{- $isOn := list "1" "t" "T" "TRUE" "true" "True" }}
{{- if or (has (toString $env.PILOT_ENABLE_STATUS) $isOn) (has (toString $analysis) $isOn) }}true{{ end -}}
{{- end -}}

{{- /* Kinds that have an effect, by group. */ -}}
{{- define "mizzen.kinds" -}}
networking.istio.io:
  - destinationrules
  - envoyfilters
  - gateways
  - proxyconfigs
  - serviceentries
  - sidecars
  - virtualservices
  - workloadentries
  - workloadgroups
security.istio.io:
  - authorizationpolicies
  - peerauthentications
  - requestauthentications
{{- end -}}

{{- /* ConfigMaps that every namespace has. */ -}}
{{- define "mizzen.namespaceMaps" -}}
{{- $env := fromYaml (include "mizzen.pilotEnv" .) }}
{{- list ($env.PILOT_CA_CERT_CONFIGMAP | default "istio-ca-root-cert") ($env.PILOT_CRL_CONFIGMAP | default "istio-ca-crl") | toJson }}
{{- end -}}

{{- /* A budget for disruptions of a single pod would keep its node from ever being emptied. */ -}}
{{- define "mizzen.isSeveral" -}}
{{- if gt (int (ternary .autoscaleMin .replicaCount .autoscaleEnabled)) 1 }}true{{ end -}}
{{- end -}}

{{- /* An image by name, or as a whole; `own` may say other parts of the name than `global`. */ -}}
{{- define "mizzen.image" -}}
{{- if contains "/" .image -}}
{{ .image }}
{{- else -}}
{{ .own.hub | default .global.hub }}/{{ .image }}:{{ .own.tag | default .global.tag }}{{ with .own.variant | default .global.variant }}-{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* Of the control plane: its own Service, and those of tags. */ -}}
{{- define "mizzen.servicePorts" -}}
{{- with .Values.pilot.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.pilot.ipFamilies }}
ipFamilies:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pilot.trafficDistribution }}
trafficDistribution: {{ . }}
{{- end }}
ports:
  - {name: grpc-xds, port: 15010, protocol: TCP}
  - {name: https-dns, port: 15012, protocol: TCP}
  - {name: https-webhook, port: 443, targetPort: 15017, protocol: TCP}
  - {name: http-monitoring, port: 15014, protocol: TCP}
{{- end -}}

{{- /* No process of the mesh needs more than this. */ -}}
{{- define "mizzen.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 1337
runAsGroup: 1337
privileged: false
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "mizzen.gatewayLabels" -}}
{{ toYaml .gateway.labels }}
chart: gateways
heritage: Tiller
release: {{ .root.Release.Name | quote }}
istio.io/rev: {{ include "mizzen.revision" .root | quote }}
istio.io/dataplane-mode: none
app.kubernetes.io/name: {{ .name | quote }}
{{ include "mizzen.partLabels" .root }}
operator.istio.io/component: {{ .gateway.component }}
{{- end -}}

{{- /* How the API server reaches a webhook at a path: `root`, `path`, and a `url` or a `bundle` that somebody gives. */ -}}
{{- define "mizzen.client" -}}
{{- if .url -}}
url: {{ .url | quote }}
{{- else -}}
service:
  name: istiod{{ include "mizzen.suffix" .root }}
  namespace: {{ .root.Release.Namespace }}
  path: {{ .path | quote }}
  {{- if .port }}
  port: {{ .port }}
  {{- end }}
{{- end }}
{{- with .bundle }}
caBundle: {{ . | quote }}
{{- end }}
{{- end -}}

{{- /*
Webhooks of injection for those who name a revision, or a tag, as `named`; with `unnamed` also for those who name none. Pods that
ask for no injection never reach them, the control plane's own among them: so it can always come back.
*/ -}}
{{- define "mizzen.injectors" -}}
{{- $notRefused := dict "key" "sidecar.istio.io/inject" "operator" "NotIn" "values" (list "false") }}
{{- $named := dict "key" "istio.io/rev" "operator" "In" "values" (list .named) }}
{{- $noRevision := dict "key" "istio.io/rev" "operator" "DoesNotExist" }}
{{- $noLabel := dict "key" "istio-injection" "operator" "DoesNotExist" }}
{{- include "mizzen.injector" (dict "root" .root "name" "rev.namespace." "namespace" (list $named $noLabel) "object" (list $notRefused)) }}
{{- include "mizzen.injector" (dict "root" .root "name" "rev.object." "namespace" (list $noRevision $noLabel) "object" (list $notRefused $named)) }}
{{- if .unnamed }}
{{- $enabled := dict "key" "istio-injection" "operator" "In" "values" (list "enabled") }}
{{- $asked := dict "key" "sidecar.istio.io/inject" "operator" "In" "values" (list "true") }}
{{- include "mizzen.injector" (dict "root" .root "name" "namespace." "namespace" (list $enabled) "object" (list $notRefused)) }}
{{- include "mizzen.injector" (dict "root" .root "name" "object." "namespace" (list $noLabel $noRevision) "object" (list $asked $noRevision)) }}
{{- if .root.Values.sidecarInjectorWebhook.enableNamespacesByDefault }}
{{- $elsewhere := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" (list "kube-system" "kube-public" "kube-node-lease" "local-path-storage") }}
{{- $unasked := dict "key" "sidecar.istio.io/inject" "operator" "DoesNotExist" }}
{{- include "mizzen.injector" (dict "root" .root "name" "auto." "namespace" (list $noLabel $noRevision $elsewhere) "object" (list $unasked $noRevision)) }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* One of them: for pods that these selectors of namespaces and pods match. */ -}}
{{- define "mizzen.injector" }}
  {{- $remote := .root.Values.istiodRemote }}
  - name: {{ .name }}sidecar-injector.istio.io
    clientConfig:
      {{- include "mizzen.client" (dict "root" .root "path" $remote.injectionPath "port" 443 "url" $remote.injectionURL "bundle" $remote.injectionCABundle) | nindent 6 }}
    sideEffects: None
    rules:
      - operations: [CREATE]
        apiGroups: [""]
        apiVersions: [v1]
        resources: [pods]
    failurePolicy: Fail
    reinvocationPolicy: {{ .root.Values.sidecarInjectorWebhook.reinvocationPolicy | quote }}
    admissionReviewVersions: [v1]
    namespaceSelector:
      matchExpressions:
        {{- toYaml .namespace | nindent 8 }}
    objectSelector:
      matchExpressions:
        {{- toYaml .object | nindent 8 }}
{{- end }}

{{- /* The webhooks of validation `name`, for objects that `object` selects. Until the control plane has filled in caBundle, no
object is held up but those that protect workloads: nobody may take one for stored and effective that validation would
reject. Then the control plane sets failurePolicy to Fail for all. */ -}}
{{- define "mizzen.validator" }}
  {{- $policy := .root.Values.base.validationFailurePolicy }}
  {{- if .root.Values.base.validationCABundle }}{{ $policy = "Fail" }}{{ end }}
  {{- $groups := list "networking.istio.io" "telemetry.istio.io" "extensions.istio.io" }}
  {{- include "mizzen.validatorOf" (dict "root" .root "name" .name "object" .object "groups" $groups "policy" ($policy | default "Ignore")) }}
  {{- include "mizzen.validatorOf" (dict "root" .root "name" (print .name "security.") "object" .object "groups" (list "security.istio.io") "policy" ($policy | default "Fail")) }}
{{- end }}

{{- /* One of them, for these API groups. */ -}}
{{- define "mizzen.validatorOf" }}
  {{- $base := .root.Values.base }}
  - name: {{ .name }}validation.istio.io
    clientConfig:
      {{- include "mizzen.client" (dict "root" .root "path" "/validate" "url" $base.validationURL "bundle" $base.validationCABundle) | nindent 6 }}
    rules:
      - operations: [CREATE, UPDATE]
        apiGroups:
          {{- toYaml .groups | nindent 10 }}
        apiVersions: ["*"]
        resources: ["*"]
    failurePolicy: {{ .policy }}
    sideEffects: None
    admissionReviewVersions: [v1]
    objectSelector:
      matchExpressions:
        {{- toYaml .object | nindent 8 }}
{{- end }}
