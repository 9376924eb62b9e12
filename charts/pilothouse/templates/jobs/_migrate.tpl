{{/* The migrate Job's spec; its digest is part of the Job's name, as a Job's spec cannot be changed. */}}
{{- define "pilothouse.migrateSpec" -}}
backoffLimit: 10
activeDeadlineSeconds: 3600
template:
  metadata:
    labels: {{- include "pilothouse.selector" (list . "migrate") | nindent 6 }}
  spec:
    restartPolicy: OnFailure
    serviceAccountName: {{ .Release.Name }}-migrate
    automountServiceAccountToken: true
    {{- include "pilothouse.podSettings" . | nindent 4 }}
    containers:
      - name: migrate
        {{- include "pilothouse.containerSettings" . | nindent 8 }}
        command: [python, -I, -m, pilothouse_operator.migrate]
        env:
          {{- include "pilothouse.installationEnv" . | nindent 10 }}
          {{- include "pilothouse.databaseEnv" . | nindent 10 }}
        resources: {{- toYaml .Values.jobs.resources | nindent 10 }}
        volumeMounts:
          - {name: tmp, mountPath: /tmp}
    volumes:
      - {{ include "pilothouse.tmp" . }}
{{- end }}

{{- define "pilothouse.migrateName" -}}
{{ .Release.Name }}-migrate-{{ include "pilothouse.migrateSpec" . | sha256sum | trunc 10 }}
{{- end }}
