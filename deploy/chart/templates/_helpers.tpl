{{- define "assay.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{/* The name of the objects: at most 46 characters, because the controllers add to the names of CronJobs and Deployments. */}}
{{- define "assay.fullname" -}}
{{- $name := include "assay.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 46 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 46 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 46 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "assay.serveName" -}}
{{ include "assay.fullname" . }}-serve
{{- end }}

{{/* The labels that selectors use; `component` tells scans and `assay serve` apart. */}}
{{- define "assay.selectorLabels" -}}
app.kubernetes.io/name: {{ include "assay.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "assay.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "assay.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "assay.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "assay.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "assay.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "assay.hasVolume" -}}
{{- if and .Values.persistence.enabled (not .Values.database.existingSecret) }}true{{ end }}
{{- end }}

{{- define "assay.claimName" -}}
{{- default (include "assay.fullname" .) .Values.persistence.existingClaim }}
{{- end }}

{{/* A duration such as 1h30m, 90s or 90, in seconds. */}}
{{- define "assay.seconds" -}}
{{- $total := 0 }}
{{- if regexMatch "^[0-9]+$" . }}
{{- $total = int . }}
{{- end }}
{{- range regexFindAll "[0-9]+[hms]" . -1 }}
{{- $total = add $total (mul (int (regexFind "[0-9]+" .)) (get (dict "h" 3600 "m" 60 "s" 1) (regexFind "[hms]" .))) }}
{{- end }}
{{- $total }}
{{- end }}

{{/* The address that browsers use, if an Ingress or an HTTPRoute names it. */}}
{{- define "assay.publicUrl" -}}
{{- if .Values.serve.ingress.enabled }}
{{- printf "https://%s" (first .Values.serve.ingress.hosts).host }}
{{- else if and .Values.serve.httpRoute.enabled .Values.serve.httpRoute.hostnames }}
{{- printf "https://%s" (first .Values.serve.httpRoute.hostnames) }}
{{- end }}
{{- end }}

{{/* The content of assay.yaml. */}}
{{- define "assay.config" -}}
{{- $config := dict "kindTimeout" .Values.kindTimeout "schedule" (dict "cron" .Values.schedule "timeZone" .Values.timeZone) }}
{{- with .Values.clusterName }}{{ $_ := set $config "clusterName" . }}{{ end }}
{{- with .Values.database.timeout }}{{ $_ := set $config "databaseTimeout" . }}{{ end }}
{{- with .Values.database.limit }}{{ $_ := set $config "databaseLimit" . }}{{ end }}
{{- if .Values.waivers.enabled }}{{ $_ := set $config "waiversNamespace" .Release.Namespace }}{{ end }}
{{- if .Values.serve.enabled }}
{{- with include "assay.publicUrl" . }}{{ $_ := set $config "publicUrl" . }}{{ end }}
{{- end }}
{{- toYaml (merge (deepCopy .Values.config) $config) }}
{{- end }}

{{/* The content of fleet.yaml. The path of a kubeconfig has the name of its cluster and not the index, which another fleet gives to another cluster. */}}
{{- define "assay.fleet" -}}
{{- $clusters := list }}
{{- range .Values.fleet.clusters }}
{{- $cluster := dict "name" .name "kubeconfig" (printf "/kubeconfigs/%s" .name) }}
{{- with .context }}{{ $_ := set $cluster "context" . }}{{ end }}
{{- if .schedule }}
{{- $_ := set $cluster "schedule" .schedule }}
{{- $_ := set $cluster "timeZone" (default $.Values.timeZone .timeZone) }}
{{- end }}
{{- $clusters = append $clusters $cluster }}
{{- end }}
{{- toYaml (dict "clusters" $clusters) }}
{{- end }}

{{/* Fail on values that exclude each other. */}}
{{- define "assay.validate" -}}
{{- $config := include "assay.config" . | fromYaml }}
{{- $silence := add (int (include "assay.seconds" (toString $config.kindTimeout))) 900 }}
{{- if lt (int .Values.activeDeadlineSeconds) (int $silence) }}
{{- fail (printf "activeDeadlineSeconds (%d) must be at least kindTimeout and 15 minutes (%d): Kubernetes would end a scan that still lists objects." (int .Values.activeDeadlineSeconds) (int $silence)) }}
{{- end }}
{{- include "assay.validateFleet" (dict "root" . "config" $config "silence" $silence) }}
{{- include "assay.validateMonitoring" (dict "root" . "config" $config) }}
{{- if .Values.serve.enabled }}
{{- if not .Values.database.existingSecret }}
{{- fail "serve.enabled needs a PostgreSQL database: name its Secret with database.existingSecret. Pods on different nodes cannot share a SQLite file." }}
{{- end }}
{{- if not (or $config.oidcIssuer $config.tokens $config.assertionHeader $config.insecureNoAuth) }}
{{- fail "serve.enabled needs a way to authenticate readers in config: oidcIssuer, tokens or assertionHeader; see docs/serve.md." }}
{{- end }}
{{- if and (gt (int .Values.serve.replicas) 1) (not .Values.serve.sessionKey.existingSecret) }}
{{- fail "serve.replicas above 1 needs serve.sessionKey.existingSecret: every pod must accept the sessions of the others." }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fail on values that exclude a fleet. */}}
{{- define "assay.validateFleet" -}}
{{- $values := .root.Values }}
{{- $names := dict }}
{{- range $values.fleet.clusters }}
{{- if hasKey $names .name }}
{{- fail (printf "fleet.clusters has the name %s twice: the name of a cluster is that of its history." .name) }}
{{- end }}
{{- $_ := set $names .name true }}
{{- if and .timeZone (not .schedule) }}
{{- fail (printf "fleet.clusters: the timeZone of %s belongs to a schedule." .name) }}
{{- end }}
{{- end }}
{{- with $values.fleet.clusters }}
{{- if not $values.database.existingSecret }}
{{- fail "fleet.clusters needs a PostgreSQL database: name its Secret with database.existingSecret. Scans that run at once cannot share a SQLite file on a volume." }}
{{- end }}
{{- if or $.config.clusterName $.config.kubeconfig $.config.context }}
{{- fail "fleet.clusters names the clusters: leave out clusterName, config.clusterName, config.kubeconfig and config.context." }}
{{- end }}
{{- if or $values.rbac.rules $values.rbac.extraRules $values.rbac.roles }}
{{- fail "fleet.clusters: the users of the kubeconfigs have their roles in their own clusters. Leave out rbac.rules, rbac.extraRules and rbac.roles." }}
{{- end }}
{{- if $values.waivers.enabled }}
{{- fail "waivers.enabled reads ConfigMaps of the release's namespace, which scans of other clusters do not read: set config.waiversNamespace to a namespace of these clusters." }}
{{- end }}
{{- $rounds := div (add (len .) (sub $values.fleet.parallelism 1)) $values.fleet.parallelism }}
{{- if lt (int $values.activeDeadlineSeconds) (int (mul $rounds $.silence)) }}
{{- fail (printf "activeDeadlineSeconds (%d) must be at least %d times kindTimeout and 15 minutes (%d): %d clusters are scanned %d at a time." (int $values.activeDeadlineSeconds) (int $rounds) (int (mul $rounds $.silence)) (len .) (int $values.fleet.parallelism)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fail on values with which Prometheus would get no metrics. */}}
{{- define "assay.validateMonitoring" -}}
{{- $values := .root.Values }}
{{- if $values.serviceMonitor.enabled }}
{{- if not $values.serve.enabled }}
{{- fail "serviceMonitor.enabled needs serve.enabled: scans have no metrics of their own to scrape." }}
{{- end }}
{{- if not (or $values.serve.metrics.enabled $values.serviceMonitor.token.existingSecret) }}
{{- fail "serviceMonitor.enabled needs serve.metrics.enabled, or a token in serviceMonitor.token.existingSecret: /metrics at the port of the pages needs authentication." }}
{{- end }}
{{- if and $values.serviceMonitor.token.existingSecret (not .config.tokens) }}
{{- fail "serviceMonitor.token.existingSecret needs config.tokens: without an entry for this token, assay serve refuses it. See docs/serve.md." }}
{{- end }}
{{- end }}
{{- end }}

{{/* The variables of a container: where the configuration and the database are, and the form of the log. */}}
{{- define "assay.env" -}}
- name: ASSAY_CONFIG
  value: /etc/assay/assay.yaml
- name: ASSAY_LOG_FORMAT
  value: {{ .root.Values.logFormat }}
{{- with .database.existingSecret }}
- name: ASSAY_DB
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.database.key }}
{{- end }}
{{- end }}

{{- define "assay.scanVolumes" -}}
- name: config
  configMap:
    name: {{ include "assay.fullname" . }}
- name: tmp
  emptyDir:
    sizeLimit: 256Mi
{{- if .Values.fleet.clusters }}
- name: kubeconfigs
  projected:
    sources:
      {{- range $index, $cluster := .Values.fleet.clusters }}
      # Without its Secret, the run of this cluster fails, and the others are not kept from beginning.
      - secret:
          name: {{ $cluster.kubeconfigSecret.name | quote }}
          optional: true
          items:
            - key: {{ $cluster.kubeconfigSecret.key | quote }}
              path: {{ $index }}/{{ $cluster.name }}
      {{- end }}
{{- end }}
- name: data
{{- if include "assay.hasVolume" . }}
  persistentVolumeClaim:
    claimName: {{ include "assay.claimName" . }}
{{- else }}
  emptyDir: {}
{{- end }}
{{- end }}

{{- define "assay.scanMounts" -}}
- name: config
  mountPath: /etc/assay
  readOnly: true
- name: tmp
  mountPath: /tmp
- name: data
  mountPath: /data
{{- end }}

{{- define "assay.prunes" -}}
{{- if and .Values.upgrade.enabled .Values.retention.keepDays }}true{{ end }}
{{- end }}

{{/* A container that prepares the database before the others start; pods that start at once wait for each other. */}}
{{- define "assay.databaseContainer" -}}
- name: {{ .name }}
  image: {{ include "assay.image" .root | quote }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: {{ .args }}
  env:
    {{- include "assay.env" (dict "root" .root "database" .root.Values.database) | nindent 4 }}
    {{- with .extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .extraEnvFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  terminationMessagePolicy: FallbackToLogsOnError
  securityContext:
    {{- toYaml .root.Values.securityContext | nindent 4 }}
  resources:
    {{- toYaml .resources | nindent 4 }}
  volumeMounts:
    {{- .mounts | nindent 4 }}
{{- end }}

{{/* The rules of egress that all pods share. */}}
{{- define "assay.egress" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
    {{- range .Values.networkPolicy.egressPorts }}
    - port: {{ . }}
      protocol: TCP
    {{- end }}
{{- with .Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end }}
