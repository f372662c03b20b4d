{{- define "x" }}from _a{{ end }}
{{- define "blank" }}filled{{ end }}
