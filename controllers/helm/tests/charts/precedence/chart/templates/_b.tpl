{{- define "x" }}from _b{{ end }}
{{- define "blank" }}   {{ end }}
