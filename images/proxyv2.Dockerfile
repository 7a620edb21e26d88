# The agent and its Envoy, for sidecars, gateways and the rules of capture.
#
#   make build && docker build -f images/proxyv2.Dockerfile -t docker.io/mizzen/proxyv2:0.1.0 .
#
# BASE_DISTRIBUTION is what the files are laid on: nothing (`distroless`, the default: no shell), or `debug`, a distribution with a shell.
ARG BASE_DISTRIBUTION=distroless

FROM debian:bookworm-slim@sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241 AS files
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates iproute2 iptables nftables
COPY images /src/images
COPY dist /src/dist
COPY node_modules/node-linux-*/bin/node /src/node_modules/.bin/node
COPY .cache/envoy-venv/lib/python3*/site-packages/envoy/_bin/envoy /src/.cache/envoy
# What Envoy is called.
ARG SIDECAR=envoy
RUN /src/images/assemble.sh proxyv2 /image

FROM debian:bookworm-slim@sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241 AS debug

FROM scratch AS distroless

FROM ${BASE_DISTRIBUTION:-distroless}
# The release of Istio that is spoken, and the version of Envoy; they are in the metadata of each proxy.
ARG istio_version=1.29.6
ARG proxy_version=istio-proxy:1.40.0
ENV ISTIO_META_ISTIO_VERSION=$istio_version \
    ISTIO_META_ISTIO_PROXY_SHA=$proxy_version
# With the first line of the program these are the flags of bin/pilot-agent, which says why.
ENV NODE_OPTIONS="--max-semi-space-size=1 --v8-pool-size=1"
COPY --from=files /image /
WORKDIR /
USER 1337:1337
ENTRYPOINT ["/usr/local/bin/pilot-agent"]
