{{/*
Fails where the bundled database's volume is to be another than it was made as: Kubernetes lets nobody change that of a
StatefulSet, and Helm would fail in the middle of the upgrade. `helm template` sees no cluster, and so no volume.
*/}}
{{- define "pilothouse.refuseOtherVolume" -}}
{{- $wanted := .Values.postgres.bundled -}}
{{- $name := printf "%s-postgres" .Release.Name -}}
{{- with lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- $made := .spec.volumeClaimTemplates | default list -}}
{{- if ne (empty $made) (not $wanted.persistence) -}}
{{- fail (printf "postgres.bundled.persistence cannot be changed by an upgrade: set it to %t as it was, or delete the StatefulSet %s first" (not (empty $made)) $name) -}}
{{- end -}}
{{- range $made -}}
{{- $size := .spec.resources.requests.storage -}}
{{- $class := .spec.storageClassName | default "" -}}
{{- if ne (toString $wanted.storage.size) $size -}}
{{- fail (printf "postgres.bundled.storage.size cannot be changed by an upgrade: set it to %s as it was; for more room enlarge the claim data-%s-0, where its storage class allows it" $size $name) -}}
{{- end -}}
{{- if ne ($wanted.storage.className | default "") $class -}}
{{- fail (printf "postgres.bundled.storage.className cannot be changed by an upgrade: set it to %q as it was" $class) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
