{{/* The name of all objects of a release. */}}
{{- define "icm.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains "infra-controller-manager" .Release.Name }}{{ .Release.Name }}
{{- else }}{{ printf "%s-infra-controller-manager" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The labels that select the pods. A Deployment cannot change them. */}}
{{- define "icm.selector" -}}
component: {{ include "icm.fullname" . }}
{{- end }}

{{- define "icm.labels" -}}
app.kubernetes.io/name: infra-controller-manager
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The lease that all replicas share; it lies in kube-system of the cluster that is served. */}}
{{- define "icm.lease" -}}
{{ .Values.leaderElection.resourceName | default "infra-controller-manager" }}
{{- end }}

{{- define "icm.image" -}}
{{- $image := .Values.image }}
{{- if or (not $image.repository) (hasPrefix "registry.example" $image.repository) }}
{{- fail "image.repository is needed: the registry that you have pushed the image of scripts/release to (deploy/RELEASE.md)" }}
{{- end }}
{{- if not (or $image.tag $image.digest) }}
{{- fail "image.tag or image.digest is needed: each build has a version of its own" }}
{{- end }}
{{- $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag }}{{ end }}
{{- end }}

{{/* The Secret of the serving certificate; empty without one. */}}
{{- define "icm.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled }}{{ include "icm.fullname" . }}-tls{{ else }}{{ .Values.tls.existingSecret }}{{ end }}
{{- end }}

{{/* The kubeconfig of the cluster that is served, if that is another one than that of the pods. */}}
{{- define "icm.kubeconfig" -}}
{{- with .Values.kubeconfig -}}
{{- if and .existingSecret .path }}{{ fail "kubeconfig.existingSecret and kubeconfig.path exclude each other" }}{{ end -}}
{{- if .existingSecret }}/etc/infra-controller-manager/kubeconfig/{{ .key }}{{ else }}{{ .path }}{{ end }}
{{- end }}
{{- end }}

{{/* Refuses values that would be ignored, and flags under which the probes would fail. */}}
{{- define "icm.refuse" -}}
{{- $instead := dict "secure-port" "securePort" "bind-address" "hostNetwork" "leader-elect-resource-name" "leaderElection.resourceName" }}
{{- if ne .Values.mode "static-manifest" }}
{{- $_ := set $instead "kubeconfig" "kubeconfig" }}
{{- end }}
{{- if include "icm.tlsSecret" . }}
{{- $_ := set $instead "tls-cert-file" "tls" }}
{{- $_ := set $instead "tls-private-key-file" "tls" }}
{{- end }}
{{- range $name, $_ := .Values.extraArgs }}
{{- with get $instead $name }}{{ fail (printf "extraArgs.%s is refused: the chart sets that flag by %s" $name .) }}{{ end }}
{{- end }}
{{- with get .Values.extraArgs "authorization-always-allow-paths" }}
{{- $paths := splitList "," (toString .) }}
{{- if not (or (has "/*" $paths) (and (has "/livez" $paths) (has "/readyz" $paths))) }}
{{- fail "extraArgs.authorization-always-allow-paths has to name /livez and /readyz: the probes have no credentials" }}
{{- end }}
{{- end }}
{{- if eq .Values.mode "static-manifest" }}
{{- $metrics := .Values.metrics }}
{{- $ignored := dict "tls" (include "icm.tlsSecret" .) "webhook.enabled" .Values.webhook.enabled "kubeconfig" (include "icm.kubeconfig" .) "metrics.serviceMonitor.enabled" $metrics.serviceMonitor.enabled "metrics.podMonitor.enabled" $metrics.podMonitor.enabled "metrics.rules.enabled" $metrics.rules.enabled "metrics.dashboards.enabled" $metrics.dashboards.enabled "metrics.readers" $metrics.readers }}
{{- range $name, $value := $ignored }}
{{- if $value }}{{ fail (printf "%s has no effect with mode=static-manifest, which makes the pod alone; apply deploy/prometheus, config/webhook and config/rbac yourself" $name) }}{{ end }}
{{- end }}
{{- if not .Values.hostNetwork }}{{ fail "hostNetwork=false is refused with mode=static-manifest: the pod would wait for the pod network" }}{{ end }}
{{- end }}
{{- if and .Values.webhook.enabled (not .Values.hostNetwork) }}
{{- fail "webhook.enabled needs hostNetwork: each API server asks the program at 127.0.0.1 of its own host" }}
{{- end }}
{{- end }}

{{/* Flags by name. */}}
{{- define "icm.flags" -}}
{{- include "icm.refuse" . }}
{{- $flags := dict "leader-elect" "true" "use-service-account-credentials" "true" }}
{{- $_ := set $flags "bind-address" (ternary "127.0.0.1" "0.0.0.0" .Values.hostNetwork) }}
{{- $_ := set $flags "secure-port" .Values.securePort }}
{{- $controllers := .Values.controllers }}
{{- if and .Values.webhook.enabled (not (has "validation-webhook" $controllers)) }}
{{- $controllers = append ($controllers | default (list "*")) "validation-webhook" }}
{{- end }}
{{- if .Values.webhook.enabled }}{{ $_ := set $flags "webhook-failure-policy" .Values.webhook.failurePolicy }}{{ end }}
{{- with $controllers }}{{ $_ := set $flags "controllers" (join "," .) }}{{ end }}
{{- with .Values.nodeIpam.clusterCIDR }}
{{- $_ := set $flags "allocate-node-cidrs" "true" }}
{{- $_ := set $flags "cluster-cidr" . }}
{{- end }}
{{- with .Values.nodeIpam.serviceClusterIPRange }}{{ $_ := set $flags "service-cluster-ip-range" . }}{{ end }}
{{- with .Values.dialDenyCIDRs }}{{ $_ := set $flags "dial-deny-cidrs" (join "," .) }}{{ end }}
{{- with .Values.leaderElection }}
{{- with .resourceName }}{{ $_ := set $flags "leader-elect-resource-name" . }}{{ end }}
{{- with .leaseDuration }}{{ $_ := set $flags "leader-elect-lease-duration" . }}{{ end }}
{{- with .renewDeadline }}{{ $_ := set $flags "leader-elect-renew-deadline" . }}{{ end }}
{{- with .retryPeriod }}{{ $_ := set $flags "leader-elect-retry-period" . }}{{ end }}
{{- end }}
{{- if not (kindIs "invalid" .Values.qps) }}{{ $_ := set $flags "kube-api-qps" .Values.qps }}{{ end }}
{{- if not (kindIs "invalid" .Values.burst) }}{{ $_ := set $flags "kube-api-burst" .Values.burst }}{{ end }}
{{- if ne .Values.logging.format "text" }}{{ $_ := set $flags "logging-format" .Values.logging.format }}{{ end }}
{{- with .Values.logging.verbosity }}{{ $_ := set $flags "v" . }}{{ end }}
{{- if and .Values.hostNetwork .Values.metrics.atHostAddress }}{{ $_ := set $flags "additional-bind-addresses" "$(HOST_IP)" }}{{ end }}
{{- if eq .Values.mode "static-manifest" }}
{{- $kubeconfig := "/etc/kubernetes/infra-controller-manager/kubeconfig" }}
{{- range list "kubeconfig" "authentication-kubeconfig" "authorization-kubeconfig" }}
{{- $_ := set $flags . $kubeconfig }}
{{- end }}
{{- else }}
{{- with include "icm.kubeconfig" . }}{{ $_ := set $flags "kubeconfig" . }}{{ end }}
{{- if include "icm.tlsSecret" . }}
{{- $_ := set $flags "tls-cert-file" "/etc/infra-controller-manager/tls/tls.crt" }}
{{- $_ := set $flags "tls-private-key-file" "/etc/infra-controller-manager/tls/tls.key" }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.extraArgs }}{{ $_ := set $flags $name $value }}{{ end }}
{{- toYaml $flags }}
{{- end }}

{{/* A value as a flag takes it; a whole number without an exponent. */}}
{{- define "icm.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* A probe: the path, the period, the time limit and the failures that count. */}}
{{- define "icm.probe" -}}
httpGet: { {{- if .hostNetwork }}host: 127.0.0.1, {{ end }}path: {{ .path }}, port: probe-port, scheme: HTTPS}
periodSeconds: {{ .period }}
timeoutSeconds: {{ .timeout }}
failureThreshold: {{ .failures }}
{{- end }}

{{/* The container in all modes. */}}
{{- define "icm.container" -}}
{{- $net := .Values.hostNetwork -}}
name: infra-controller-manager
image: {{ include "icm.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command:
  - infra-controller-manager
  {{- range $name, $value := include "icm.flags" . | fromYaml }}
  - {{ printf "--%s=%s" $name (include "icm.text" $value) | quote }}
  {{- end }}
ports:
  - {name: probe-port, containerPort: {{ .Values.securePort }}}
startupProbe: {{- include "icm.probe" (dict "hostNetwork" $net "path" "/livez" "period" 5 "timeout" 5 "failures" 48) | nindent 2 }}
livenessProbe: {{- include "icm.probe" (dict "hostNetwork" $net "path" "/livez" "period" 10 "timeout" 15 "failures" 8) | nindent 2 }}
readinessProbe: {{- include "icm.probe" (dict "hostNetwork" $net "path" "/readyz" "period" 5 "timeout" 5 "failures" 3) | nindent 2 }}
{{- with .Values.resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}
