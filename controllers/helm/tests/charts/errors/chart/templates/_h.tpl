{{- define "one" }}
  {{- include "two" . }}
{{- end }}
{{- define "two" }}{{ .Values.missing.deeper.x }}{{ end }}
{{- define "loop" }}{{ include "loop" . }}{{ end }}
{{- define "fails" }}{{ fail "no: way" }}{{ end }}
