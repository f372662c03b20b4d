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
