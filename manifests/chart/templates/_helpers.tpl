{{- /* The part of names that tells revisions apart. */ -}}
{{- define "mizzen.suffix" -}}
{{- if and .Values.revision (ne .Values.revision "default") }}-{{ .Values.revision }}{{ end -}}
{{- end -}}

{{- define "mizzen.revision" -}}
{{ .Values.revision | default "default" }}
{{- end -}}

{{- define "mizzen.labels" -}}
istio.io/rev: {{ include "mizzen.revision" . | quote }}
release: {{ .Release.Name | quote }}
app.kubernetes.io/name: istiod
app.kubernetes.io/part-of: istio
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
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
