{{/* What all our own Pods have in common: Pod Security "restricted", and where they run. */}}

{{- define "pilothouse.podSettings" -}}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduling }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "pilothouse.containerSettings" -}}
image: {{ include "pilothouse.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "pilothouse.tmp" -}}
{name: tmp, emptyDir: {sizeLimit: 64Mi}}
{{- end }}

{{/* Which database, for whoever speaks to it. */}}
{{- define "pilothouse.databaseEnv" -}}
{{- if .Values.postgres.bundled.enabled -}}
- name: PILOTHOUSE_DATABASE_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "pilothouse.passwordSecret" . }}, key: password}}
- name: PILOTHOUSE_DSN
  value: "postgresql://pilothouse:$(PILOTHOUSE_DATABASE_PASSWORD)@{{ .Release.Name }}-postgres.{{ .Release.Namespace }}.svc:5432/pilothouse?sslmode=disable"
{{- else -}}
- name: PILOTHOUSE_DSN
  valueFrom: {secretKeyRef: {name: {{ .Values.postgres.dsnSecret.name }}, key: {{ .Values.postgres.dsnSecret.key }}}}
{{- end }}
{{- end }}

{{/* Which installation this is. */}}
{{- define "pilothouse.installationEnv" -}}
- {name: PILOTHOUSE_NAMESPACE, value: {{ .Release.Namespace }}}
- {name: PILOTHOUSE_RELEASE, value: {{ .Release.Name }}}
- {name: PILOTHOUSE_INSTALLATION_CONFIGMAP, value: {{ include "pilothouse.installation" . }}}
{{- end }}

{{- define "pilothouse.metricsAnnotations" -}}
{{- if .Values.metrics.annotations -}}
prometheus.io/scrape: "true"
prometheus.io/port: "8080"
prometheus.io/path: /metrics
{{- end }}
{{- end }}
