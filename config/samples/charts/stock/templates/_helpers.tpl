{{- define "stock.name" -}}
{{ .Release.Name }}-stock
{{- end -}}

{{- define "stock.labels" -}}
app.kubernetes.io/name: stock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "stock.password" -}}
{{- $known := lookup "v1" "Secret" .Release.Namespace (include "stock.name" .) -}}
{{- if .Values.auth.password -}}
{{ .Values.auth.password }}
{{- else if $known -}}
{{ index $known.data "password" | b64dec }}
{{- else -}}
{{ randAlphaNum 24 }}
{{- end -}}
{{- end -}}
