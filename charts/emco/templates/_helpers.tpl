{{- define "emco.selector" -}}
app.kubernetes.io/name: emco-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "emco.labels" -}}
{{ include "emco.selector" . }}
app.kubernetes.io/part-of: emco
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "emco.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "emco.clusterMaps" -}}
[emco-clusters-0, emco-clusters-1, emco-clusters-2, emco-clusters-3, emco-clusters-4, emco-clusters-5, emco-clusters-6, emco-clusters-7, emco-clusters-8, emco-clusters-9, emco-clusters-10, emco-clusters-11, emco-clusters-12, emco-clusters-13, emco-clusters-14, emco-clusters-15]
{{- end }}
