{{- define "helper" }}base{{ end }}
{{- define "caller" }}[{{ include "helper" . }}]{{ end }}
{{- define "novalue" }}{{ .Values.nope }}{{ end }}
