{{/*
What the chart makes once and then keeps. A render must make each thing once although several templates need it, so the
first to ask leaves it in .Values. Without access to the cluster `lookup` finds nothing: then each render makes new ones.
*/}}

{{- define "pilothouse.password" -}}
{{- if not (hasKey .Values "madePassword") -}}
  {{- $kept := (lookup "v1" "Secret" .Release.Namespace (include "pilothouse.passwordSecret" .)).data | default dict -}}
  {{- $_ := set .Values "madePassword" (get $kept "password" | b64dec | default (randAlphaNum 32)) -}}
{{- end -}}
{{- .Values.madePassword -}}
{{- end }}

{{/* A Secret's data as YAML. The key of the authority is thrown away: nobody can make a second certificate of it. */}}
{{- define "pilothouse.tls" -}}
{{- if not (hasKey .Values "madeTls") -}}
  {{- $kept := (lookup "v1" "Secret" .Release.Namespace (include "pilothouse.tlsSecret" .)).data | default dict -}}
  {{- $made := pick $kept "ca.crt" "tls.crt" "tls.key" -}}
  {{- if ne (len $made) 3 -}}
    {{- $host := printf "%s-gateway" .Release.Name -}}
    {{- $service := printf "%s.%s.svc" $host .Release.Namespace -}}
    {{- $names := list $service (printf "%s.cluster.local" $service) (printf "%s.%s" $host .Release.Namespace) $host -}}
    {{- $ca := genCAWithKey "pilothouse gateway authority" 3650 (genPrivateKey "ecdsa") -}}
    {{- $cert := genSignedCertWithKey "pilothouse gateway" nil $names 3650 $ca (genPrivateKey "ecdsa") -}}
    {{- $made = dict "ca.crt" ($ca.Cert | b64enc) "tls.crt" ($cert.Cert | b64enc) "tls.key" ($cert.Key | b64enc) -}}
  {{- end -}}
  {{- $_ := set .Values "madeTls" (toYaml $made) -}}
{{- end -}}
{{- .Values.madeTls -}}
{{- end }}

{{/* Changes when a Secret of the chart's making changes, so that its readers start anew. */}}
{{- define "pilothouse.secretsChecksum" -}}
{{- $password := "" -}}
{{- if and .Values.postgres.bundled.enabled (not .Values.postgres.bundled.existingSecret) -}}
  {{- $password = include "pilothouse.password" . -}}
{{- end -}}
{{- $tls := "" -}}
{{- if not .Values.gateway.tls.existingSecret -}}
  {{- $tls = include "pilothouse.tls" . -}}
{{- end -}}
{{- printf "%s\n%s" $password $tls | sha256sum -}}
{{- end }}
