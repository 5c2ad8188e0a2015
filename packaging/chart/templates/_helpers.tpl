{{- define "signet.name" -}}
{{- if contains "signet" .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-signet" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "signet.selector" -}}
app.kubernetes.io/name: signet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "signet.labels" -}}
{{ include "signet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "signet-%s" .Chart.Version | replace "+" "_" | trunc 63 | quote }}
{{- end }}

{{- define "signet.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default (.Chart.AppVersion | replace "+" "-") }}{{ end }}
{{- end }}

{{- /* What would start and then not work is refused here, with what to do. */ -}}
{{- define "signet.check" -}}
{{- if not (hasPrefix "https://" .Values.externalUrl) }}{{ fail "set externalUrl to the https:// URL under which people reach Signet" }}{{ end }}
{{- if not .Values.existingSecret.name }}{{ fail "set existingSecret.name to a Secret with the master key, see values.yaml" }}{{ end }}
{{- if not (has .Values.engine (list "sqlite" "postgresql")) }}{{ fail "engine must be sqlite or postgresql" }}{{ end }}
{{- if and (eq .Values.engine "sqlite") .Values.autoscaling.enabled }}{{ fail "the embedded database is for one node: set engine to postgresql, or autoscaling.enabled to false" }}{{ end }}
{{- end }}

{{- define "signet.shutdownDelay" -}}
{{ if eq .Values.engine "postgresql" }}{{ int .Values.shutdownDelaySeconds }}{{ else }}0{{ end }}
{{- end }}

{{- define "signet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "signet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* The data, for the server and for the migration. */ -}}
{{- define "signet.dataEnv" -}}
- name: SIGNET_DATA_DIR
  value: /var/lib/signet/data
- name: SIGNET_MASTER_KEY
  valueFrom:
    secretKeyRef: {name: {{ .Values.existingSecret.name }}, key: {{ .Values.existingSecret.masterKey }}}
{{- if eq .Values.engine "postgresql" }}
- name: SIGNET_DATABASE
  valueFrom:
    secretKeyRef: {name: {{ .Values.existingSecret.name }}, key: {{ .Values.existingSecret.database }}}
{{- end }}
{{- end }}

{{- define "signet.pod" -}}
metadata:
  labels:
    {{- include "signet.labels" . | nindent 4 }}
    app.kubernetes.io/component: server
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "signet.name" . }}
  automountServiceAccountToken: false
  # Variables such as SIGNET_PORT, which Kubernetes makes of services, look like settings.
  enableServiceLinks: false
  # The delay, 15 seconds for running requests, and time to close the database.
  terminationGracePeriodSeconds: {{ add (include "signet.shutdownDelay" .) 35 }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "signet.podSecurity" . | nindent 4 }}
    {{- if eq .Values.engine "sqlite" }}
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
  containers:
    - name: signet
      image: {{ include "signet.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        {{- include "signet.containerSecurity" . | nindent 8 }}
      env:
        {{- include "signet.dataEnv" . | nindent 8 }}
        - name: SIGNET_LISTEN
          value: ":8080"
        - name: SIGNET_EXTERNAL_URL
          value: {{ .Values.externalUrl | quote }}
        - name: SIGNET_LOG_FORMAT
          value: json
        - name: SIGNET_SHUTDOWN_DELAY
          value: {{ include "signet.shutdownDelay" . }}s
        {{- with .Values.trustedProxies }}
        - name: SIGNET_TRUSTED_PROXIES
          value: {{ join "," . | quote }}
        {{- end }}
        {{- if .Values.metrics.enabled }}
        - name: SIGNET_METRICS_LISTEN
          value: ":{{ .Values.metrics.port }}"
        {{- end }}
        {{- range $name, $value := .Values.env }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      ports:
        - {name: http, containerPort: 8080}
        {{- if .Values.metrics.enabled }}
        - {name: metrics, containerPort: {{ .Values.metrics.port }}}
        {{- end }}
      startupProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        failureThreshold: {{ .Values.startupAttempts }}
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      # Only what a restart would help: a database that is down makes a node unready, not dead.
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /var/lib/signet}
  {{- if eq .Values.engine "postgresql" }}
  volumes:
    # A lock, and once first-admin.json.
    - name: data
      emptyDir: {sizeLimit: 16Mi}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "signet.selector" . | nindent 10 }}
          app.kubernetes.io/component: server
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
