{{- define "x" }}from sub{{ end }}{{ define "y" }}from sub{{ end }}
