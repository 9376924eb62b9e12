{{/* Parts of NetworkPolicies. */}}

{{/* The metadata of a policy for one of our own components, and whom it selects. Takes root and component. */}}
{{- define "pilothouse.policyHead" -}}
{{- $root := index . 0 -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $root.Release.Name }}-{{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "pilothouse.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "pilothouse.selector" . | nindent 6 }}
{{- end }}

{{/* A resolver may be a Pod, or a node's own at a link-local address: anywhere, but not where clouds hand out credentials. */}}
{{- define "pilothouse.dnsRule" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
  to:
    - namespaceSelector: {}
    - ipBlock: {cidr: 0.0.0.0/0, except: [169.254.169.254/32]}
    - ipBlock: {cidr: "::/0", except: ["fd00:ec2::254/128"]}
{{- end }}

{{- define "pilothouse.apiServerRule" -}}
- ports:
    - {port: 443, protocol: TCP}
    - {port: 6443, protocol: TCP}
  {{- with .Values.networkPolicy.apiServer }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "pilothouse.databaseRule" -}}
{{- if .Values.postgres.bundled.enabled -}}
{{ include "pilothouse.peerRule" (list . "postgres" 5432) }}
{{- else -}}
- ports:
    - {port: {{ .Values.networkPolicy.database.port }}, protocol: TCP}
  {{- with .Values.networkPolicy.database.cidrs }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* To a port of one of our own components. Takes root, component, port. */}}
{{- define "pilothouse.peerRule" -}}
- ports:
    - {port: {{ index . 2 }}, protocol: TCP}
  to:
    - podSelector:
        matchLabels: {{- include "pilothouse.selector" . | nindent 10 }}
{{- end }}

{{- define "pilothouse.metricsRule" -}}
- ports:
    - {port: 8080, protocol: TCP}
  {{- with .Values.networkPolicy.metricsFrom }}
  from: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
