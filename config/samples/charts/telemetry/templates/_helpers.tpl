{{- define "telemetry.name" -}}
{{ .Release.Name }}-telemetry
{{- end -}}
{{- define "telemetry.labels" -}}
app.kubernetes.io/name: telemetry
app.kubernetes.io/instance: {{ .Release.Name }}
{{- range $key, $value := .Values.labels }}
{{ $key }}: {{ tpl $value $ | quote }}
{{- end }}
{{- end -}}
