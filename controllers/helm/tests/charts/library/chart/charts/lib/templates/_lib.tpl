{{- define "lib.name" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
