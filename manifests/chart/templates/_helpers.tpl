{{- /* The part of names that tells revisions apart. */ -}}
{{- define "mizzen.suffix" -}}
{{- if and .Values.revision (ne .Values.revision "default") }}-{{ .Values.revision }}{{ end -}}
{{- end -}}

{{- define "mizzen.revision" -}}
{{ .Values.revision | default "default" }}
{{- end -}}

{{- /* By what Deployment and Service find the pods: names that Istio uses, so that one can take over from the other. */ -}}
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
app.kubernetes.io/part-of: istio
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
operator.istio.io/component: Pilot
install.operator.istio.io/owning-resource: unknown
{{- end -}}

{{- /* Whether objects say what became of them; then it needs more rights. */ -}}
{{- define "mizzen.writesStatus" -}}
{{- if eq (toString .Values.pilot.env.PILOT_ENABLE_STATUS) "true" }}true{{ end -}}
{{- end -}}

{{- define "mizzen.image" -}}
{{- if contains "/" .image -}}
{{ .image }}
{{- else -}}
{{ .global.hub }}/{{ .image }}:{{ .global.tag }}{{ with .global.variant }}-{{ . }}{{ end }}
{{- end -}}
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
release: istio
istio.io/rev: {{ include "mizzen.revision" .root | quote }}
operator.istio.io/component: {{ .gateway.component }}
install.operator.istio.io/owning-resource: unknown
{{- end -}}

{{- /* One webhook of injection: pods that these selectors of namespaces and pods match. */ -}}
{{- define "mizzen.injection" }}
  - name: {{ .name }}sidecar-injector.istio.io
    clientConfig:
      service:
        {{- toYaml .service | nindent 8 }}
    sideEffects: None
    rules:
      - operations: [CREATE]
        apiGroups: [""]
        apiVersions: [v1]
        resources: [pods]
    failurePolicy: Fail
    reinvocationPolicy: {{ .policy }}
    admissionReviewVersions: [v1]
    namespaceSelector:
      matchExpressions:
        {{- toYaml .namespace | nindent 8 }}
    objectSelector:
      matchExpressions:
        {{- toYaml .object | nindent 8 }}
{{- end }}
