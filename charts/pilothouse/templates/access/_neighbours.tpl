{{/*
Fails where another release's operator serves a namespace that this one is to serve: each would run its workflows. It is
told by the bindings of `operator-write`. `helm template` sees no cluster, and so finds nobody.
*/}}
{{- define "pilothouse.refuseNeighbours" -}}
{{- $everywhere := (lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "").items | default list -}}
{{- range $namespace := .Values.namespaces.served | default (list "") -}}
{{- $there := (lookup "rbac.authorization.k8s.io/v1" "RoleBinding" $namespace "").items | default list -}}
{{- range concat $everywhere $there -}}
{{- $ours := eq .roleRef.name (include "pilothouse.clusterName" (list $ "operator-write")) -}}
{{- $release := get (.metadata.labels | default dict) "app.kubernetes.io/instance" -}}
{{- if and (regexMatch "^.+-operator-write[.][^.]+$" .roleRef.name) (not $ours) $release -}}
{{- $place := .metadata.namespace | default $namespace -}}
{{- fail (printf "%s served already by the release %q of namespace %q: both would run its workflows; name other namespaces in namespaces.served, of this release or of that one" (empty $place | ternary "all namespaces are" (printf "namespace %q is" $place)) $release (last (splitList "." .roleRef.name))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
