{{/* Names and labels. Each takes the root context, or a list of it and a component. */}}

{{- define "pilothouse.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: pilothouse
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "pilothouse.labels" -}}
{{- $root := index . 0 -}}
{{ include "pilothouse.selector" . }}
app.kubernetes.io/part-of: pilothouse
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{/* Objects without a namespace carry the release's, so that two releases never meet. */}}
{{- define "pilothouse.clusterName" -}}
{{- $root := index . 0 -}}
{{ $root.Release.Name }}-{{ index . 1 }}.{{ $root.Release.Namespace }}
{{- end }}

{{- define "pilothouse.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "pilothouse.installation" -}}
{{ .Release.Name }}-installation
{{- end }}

{{- define "pilothouse.gatewayUrl" -}}
https://{{ .Release.Name }}-gateway.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "pilothouse.passwordSecret" -}}
{{ .Values.postgres.bundled.existingSecret | default (printf "%s-postgres" .Release.Name) }}
{{- end }}

{{- define "pilothouse.tlsSecret" -}}
{{ .Values.gateway.tls.existingSecret | default (printf "%s-gateway-tls" .Release.Name) }}
{{- end }}
