{{/* The labels that the pods are selected by. */}}
{{- define "icm.selector" -}}
component: infra-controller-manager
{{- end }}

{{- define "icm.labels" -}}
app.kubernetes.io/name: infra-controller-manager
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "icm.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The Secret of the serving certificate; empty without one. */}}
{{- define "icm.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled }}infra-controller-manager-tls{{ else }}{{ .Values.tls.existingSecret }}{{ end }}
{{- end }}

{{/* Flags by name. */}}
{{- define "icm.flags" -}}
{{- $flags := dict "leader-elect" "true" "use-service-account-credentials" "true" "bind-address" "127.0.0.1" }}
{{- $_ := set $flags "secure-port" .Values.securePort }}
{{- with .Values.controllers }}{{ $_ := set $flags "controllers" (join "," .) }}{{ end }}
{{- with .Values.nodeIpam.clusterCIDR }}
{{- $_ := set $flags "allocate-node-cidrs" "true" }}
{{- $_ := set $flags "cluster-cidr" . }}
{{- end }}
{{- with .Values.nodeIpam.serviceClusterIPRange }}{{ $_ := set $flags "service-cluster-ip-range" . }}{{ end }}
{{- with .Values.dialDenyCIDRs }}{{ $_ := set $flags "dial-deny-cidrs" (join "," .) }}{{ end }}
{{- with .Values.leaderElection }}
{{- with .leaseDuration }}{{ $_ := set $flags "leader-elect-lease-duration" . }}{{ end }}
{{- with .renewDeadline }}{{ $_ := set $flags "leader-elect-renew-deadline" . }}{{ end }}
{{- with .retryPeriod }}{{ $_ := set $flags "leader-elect-retry-period" . }}{{ end }}
{{- end }}
{{- if not (kindIs "invalid" .Values.qps) }}{{ $_ := set $flags "kube-api-qps" .Values.qps }}{{ end }}
{{- if not (kindIs "invalid" .Values.burst) }}{{ $_ := set $flags "kube-api-burst" .Values.burst }}{{ end }}
{{- if ne .Values.logging.format "text" }}{{ $_ := set $flags "logging-format" .Values.logging.format }}{{ end }}
{{- with .Values.logging.verbosity }}{{ $_ := set $flags "v" . }}{{ end }}
{{- if eq .Values.mode "static-manifest" }}
{{- $kubeconfig := "/etc/kubernetes/infra-controller-manager/kubeconfig" }}
{{- range list "kubeconfig" "authentication-kubeconfig" "authorization-kubeconfig" }}
{{- $_ := set $flags . $kubeconfig }}
{{- end }}
{{- else }}
{{- if .Values.metrics.atHostAddress }}{{ $_ := set $flags "additional-bind-addresses" "$(HOST_IP)" }}{{ end }}
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

{{/* What the container is in both modes. */}}
{{- define "icm.container" -}}
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
startupProbe:
  httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTPS}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 48
livenessProbe:
  httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTPS}
  periodSeconds: 10
  timeoutSeconds: 15
  failureThreshold: 8
readinessProbe:
  httpGet: {host: 127.0.0.1, path: /readyz, port: probe-port, scheme: HTTPS}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
{{- with .Values.resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}
