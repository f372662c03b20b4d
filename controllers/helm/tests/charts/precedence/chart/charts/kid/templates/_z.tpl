{{- define "x" }}from kid{{ end }}{{ define "y" }}from kid{{ end }}{{ define "z" }}from kid{{ end }}
