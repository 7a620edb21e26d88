/** No agent at all: an init container writes the bootstrap file with which gRPC libraries find the control plane. */

/** Rendered for the template name `grpc-simple`. */
export const GRPC_SIMPLE_TEMPLATE = `
metadata:
  annotations: {sidecar.istio.io/rewriteAppHTTPProbers: "false"}
spec:
  initContainers:
  - name: grpc-bootstrap-init
    image: busybox:1.28@sha256:141c253bc4c3fd0a201d32dc1f493bcf3fff003b6df416dea4f41046e0f37d47
    volumeMounts:
    - {name: grpc-io-proxyless-bootstrap, mountPath: /var/lib/grpc/data/}
    env:
    - {name: INSTANCE_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: ISTIO_NAMESPACE, value: {{ printf "%s\\n" .Values.global.istioNamespace | quote }}}
    command:
    - sh
    - -c
    - |-
      NODE_ID="sidecar~\${INSTANCE_IP}~\${POD_NAME}.\${POD_NAMESPACE}~cluster.local"
      SERVER_URI="dns:///istiod.\${ISTIO_NAMESPACE}.svc:15010"
      echo '
      {
        "xds_servers": [
          {
            "server_uri": "'\${SERVER_URI}'",
            "channel_creds": [{"type": "insecure"}],
            "server_features" : ["xds_v3"]
          }
        ],
        "node": {
          "id": "'\${NODE_ID}'",
          "metadata": {
            "GENERATOR": "grpc"
          }
        }
      }' > /var/lib/grpc/data/bootstrap.json
  containers:
  {{- range .Spec.Containers }}
  - name: {{ .Name | quote }}
    env:
    - {name: GRPC_XDS_BOOTSTRAP, value: /var/lib/grpc/data/bootstrap.json}
    - {name: GRPC_GO_LOG_VERBOSITY_LEVEL, value: "99"}
    - {name: GRPC_GO_LOG_SEVERITY_LEVEL, value: info}
    volumeMounts:
    - {name: grpc-io-proxyless-bootstrap, mountPath: /var/lib/grpc/data/}
  {{- end }}
  volumes:
  - {name: grpc-io-proxyless-bootstrap, emptyDir: {}}
`;
