{{- define "mark" }}{{ $_ := set .Values "marked" true }}{{ $_ := set .Values.m.a "b" 2 }}{{ end }}
