{{/*
Binds a ClusterRole to the operator: in each served namespace, or in the whole cluster where none is named.
Takes the root context and the role's name without the namespace, as `operator-read`.
*/}}
{{- define "pilothouse.operatorBindings" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- range $namespace := $root.Values.namespaces.served | default (list "") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ empty $namespace | ternary "ClusterRoleBinding" "RoleBinding" }}
metadata:
  name: {{ include "pilothouse.clusterName" (list $root $role) }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "pilothouse.labels" (list $root "operator") | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ include "pilothouse.clusterName" (list $root $role) }}}
subjects:
  - {{- include "pilothouse.subject" (list $root "operator") | nindent 4 }}
{{- end }}
{{- end }}

{{- define "pilothouse.subject" -}}
{{- $root := index . 0 -}}
kind: ServiceAccount
name: {{ $root.Release.Name }}-{{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
{{- end }}

{{/* A Role of one of our accounts in the release namespace, and its binding. Takes root, account, rules. */}}
{{- define "pilothouse.ownRole" -}}
{{- $root := index . 0 -}}
{{- $account := index . 1 -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $root.Release.Name }}-{{ $account }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "pilothouse.labels" (list $root $account) | nindent 4 }}
rules: {{- toYaml (index . 2) | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $root.Release.Name }}-{{ $account }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "pilothouse.labels" (list $root $account) | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $root.Release.Name }}-{{ $account }}}
subjects:
  - {{- include "pilothouse.subject" (list $root $account) | nindent 4 }}
{{- end }}

{{/* The rule "these verbs on these ConfigMaps of ours". */}}
{{- define "pilothouse.configMapRule" -}}
apiGroups: [""]
resources: [configmaps]
resourceNames: {{- toYaml (index . 0) | nindent 2 }}
verbs: {{- toYaml (index . 1) | nindent 2 }}
{{- end }}
