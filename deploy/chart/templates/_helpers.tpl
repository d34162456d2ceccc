{{/* Give every missing value its default. With --reuse-values, helm takes the defaults of the earlier chart, which lack the new values. */}}
{{- define "assay.defaults" -}}
{{- $root := . -}}
{{- range $path, $default := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- $map := $root.Values -}}
{{- range initial (splitList "." $path) -}}
{{- if kindIs "invalid" (index $map .) -}}{{- $_ := set $map . dict -}}{{- end -}}
{{- $map = index $map . -}}
{{- end -}}
{{- $key := last (splitList "." $path) -}}
{{- if kindIs "invalid" (index $map $key) -}}{{- $_ := set $map $key $default -}}{{- end -}}
{{- end -}}
{{- end }}

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

{{/* The name of objects outside the release's namespace. A name has no colon, so no other release has the same name. */}}
{{- define "assay.roleName" -}}
{{ .Release.Namespace }}:{{ include "assay.fullname" . }}
{{- end }}

{{- define "assay.serveName" -}}
{{ include "assay.fullname" . }}-serve
{{- end }}

{{/* At most 52 characters, as the name of a CronJob must have. */}}
{{- define "assay.backupName" -}}
{{ include "assay.fullname" . | trunc 45 | trimSuffix "-" }}-backup
{{- end }}

{{/* The labels that selectors use; `component` tells scans, backups and `assay serve` apart. */}}
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

{{- define "assay.backupClaimName" -}}
{{- default (include "assay.backupName" .) .Values.backup.existingClaim }}
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

{{/* The address that browsers use, if an Ingress or an HTTPRoute names it. The path of an Ingress that is a pattern is none of an address. */}}
{{- define "assay.publicUrl" -}}
{{- if .Values.serve.ingress.enabled }}
{{- $host := first .Values.serve.ingress.hosts }}
{{- $path := first $host.paths }}
{{- printf "https://%s%s" $host.host (ternary ($path.path | trimSuffix "/") "" (ne $path.pathType "ImplementationSpecific")) }}
{{- else if and .Values.serve.httpRoute.enabled .Values.serve.httpRoute.hostnames }}
{{- printf "https://%s%s" (first .Values.serve.httpRoute.hostnames) (.Values.serve.httpRoute.path | trimSuffix "/") }}
{{- end }}
{{- end }}

{{/* Remove the keys that are null, which helm leaves in the values if they have no default. */}}
{{- define "assay.dropNulls" -}}
{{- range $key, $value := deepCopy . -}}
{{- if kindIs "invalid" $value -}}{{- $_ := unset $ $key -}}
{{- else if kindIs "map" $value -}}{{- include "assay.dropNulls" (index $ $key) -}}{{- end -}}
{{- end -}}
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
{{- $own := deepCopy .Values.config }}
{{- include "assay.dropNulls" $own }}
{{- toYaml (merge $own $config) }}
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

{{/* Fail on a schedule that the API server, or `assay runs`, would deny. */}}
{{- define "assay.validateSchedule" -}}
{{- $schedule := .schedule }}
{{- $failure := printf "%s %q is no schedule: write five fields (minute, hour, day of the month, month, weekday) such as 17 2 * * *, or @daily." .key $schedule }}
{{- if not (has $schedule (list "@yearly" "@annually" "@monthly" "@weekly" "@daily" "@midnight" "@hourly")) }}
{{- $fields := without (regexSplit "\\s+" $schedule -1) "" }}
{{- if ne (len $fields) 5 }}{{ fail $failure }}{{ end }}
{{- $months := list "jan" "feb" "mar" "apr" "may" "jun" "jul" "aug" "sep" "oct" "nov" "dec" }}
{{- $weekdays := list "sun" "mon" "tue" "wed" "thu" "fri" "sat" }}
{{- range $index, $field := $fields }}
{{- $least := index (list 0 0 1 1 0) $index }}
{{- $most := index (list 59 23 31 12 6) $index }}
{{- $names := index (list list list list $months $weekdays) $index }}
{{- range $part := without (splitList "," $field) "" }}
{{- $range := first (splitList "/" $part) }}
{{- if not (regexMatch "^([*?]|[a-zA-Z0-9]+(-[a-zA-Z0-9]+)?)(/0*[1-9][0-9]*)?$" $part) }}{{ fail $failure }}{{ end }}
{{- $before := $least }}
{{- range $bound := without (splitList "-" $range) "*" "?" }}
{{- $number := -1 }}
{{- if regexMatch "^[0-9]{1,9}$" $bound }}{{- $number = int (default "0" (regexReplaceAll "^0+" $bound "")) }}{{ end }}
{{- range $place, $name := $names }}
{{- if eq $name (lower $bound) }}{{ $number = add $place $least }}{{ end }}
{{- end }}
{{- if or (lt (int $number) (int $before)) (gt (int $number) (int $most)) }}{{ fail $failure }}{{ end }}
{{- $before = $number }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if not (has .timeZone (.root.Files.Lines "files/time-zones.txt")) }}
{{- fail (printf "%s: the time zone %q is not known: write a name such as Europe/Berlin." .key .timeZone) }}
{{- end }}
{{- end }}

{{/* Fail on values that exclude each other. */}}
{{- define "assay.validate" -}}
{{- $config := include "assay.config" . | fromYaml }}
{{- $longest := add (int (include "assay.seconds" (toString $config.kindTimeout))) 900 }}
{{- if lt (int .Values.activeDeadlineSeconds) (int $longest) }}
{{- fail (printf "activeDeadlineSeconds (%d) must be at least kindTimeout and 15 minutes (%d): Kubernetes would end a scan that still lists objects." (int .Values.activeDeadlineSeconds) (int $longest)) }}
{{- end }}
{{- include "assay.validateSchedule" (dict "root" . "key" "schedule" "schedule" .Values.schedule "timeZone" .Values.timeZone) }}
{{- include "assay.validateSchedule" (dict "root" . "key" "config.schedule" "schedule" $config.schedule.cron "timeZone" $config.schedule.timeZone) }}
{{- include "assay.validateFleet" (dict "root" . "config" $config "longest" $longest) }}
{{- include "assay.validateMonitoring" (dict "root" . "config" $config) }}
{{- include "assay.validateDatabase" . }}
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

{{/* Fail on values that the kind of the database excludes. */}}
{{- define "assay.validateDatabase" -}}
{{- if .Values.backup.enabled }}
{{- if not (include "assay.hasVolume" .) }}
{{- fail "backup.enabled copies the SQLite file on the claim of `persistence`, and this release has none. Back up PostgreSQL with pg_dump." }}
{{- end }}
{{- if eq (include "assay.backupClaimName" .) (include "assay.claimName" .) }}
{{- fail "backup.existingClaim is the claim of the database: a copy on the same volume is lost with it." }}
{{- end }}
{{- end }}
{{- if .Values.upgrade.grantSelect }}
{{- if not .Values.database.existingSecret }}
{{- fail "upgrade.grantSelect is about roles of PostgreSQL: name the Secret of the database with database.existingSecret." }}
{{- end }}
{{- if not .Values.upgrade.enabled }}
{{- fail "upgrade.grantSelect needs upgrade.enabled: `assay db upgrade` grants the rights." }}
{{- end }}
{{- end }}
{{- end }}

{{/* The arguments of the container that upgrades the database. */}}
{{- define "assay.upgradeArgs" -}}
{{- $args := list "db" "upgrade" }}
{{- range .Values.upgrade.grantSelect }}
{{- $args = append $args (printf "--grant-select=%s" .) }}
{{- end }}
{{- toJson $args }}
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
{{- if .schedule }}
{{- include "assay.validateSchedule" (dict "root" $.root "key" (printf "fleet.clusters: the schedule of %s" .name) "schedule" .schedule "timeZone" (default $values.timeZone .timeZone)) }}
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
{{- if lt (int $values.activeDeadlineSeconds) (int (mul $rounds $.longest)) }}
{{- fail (printf "activeDeadlineSeconds (%d) must be at least %d times kindTimeout and 15 minutes (%d): %d clusters are scanned %d at a time." (int $values.activeDeadlineSeconds) (int $rounds) (int (mul $rounds $.longest)) (len .) (int $values.fleet.parallelism)) }}
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
{{- if .job }}
- name: ASSAY_JOB
  value: "1"
{{- end }}
- name: ASSAY_LOG_STDOUT
  value: "1"
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
    {{- include "assay.env" (dict "root" .root "database" .root.Values.database "job" true) | nindent 4 }}
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
