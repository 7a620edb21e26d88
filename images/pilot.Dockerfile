# The control plane.
#
#   make build && docker build -f images/pilot.Dockerfile -t docker.io/mizzen/pilot:0.1.0 .
#
# BASE_DISTRIBUTION is what the files are laid on: nothing (`distroless`, the default: no shell), or `debug`, a distribution with a shell.
ARG BASE_DISTRIBUTION=distroless

FROM debian:bookworm-slim@sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241 AS files
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates
COPY images /src/images
COPY dist /src/dist
COPY node_modules/node-linux-*/bin/node /src/node_modules/.bin/node
RUN /src/images/assemble.sh pilot /image

FROM debian:bookworm-slim@sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241 AS debug

FROM scratch AS distroless

FROM ${BASE_DISTRIBUTION:-distroless}
# Buffers go back to the system when they are freed: half the private memory.
ENV MALLOC_MMAP_THRESHOLD_=32768 MALLOC_ARENA_MAX=2
# With the first line of the program these are the flags of bin/pilot-discovery, which says why.
ENV NODE_OPTIONS="--max-semi-space-size=4"
COPY --from=files /image /
WORKDIR /
USER 1337:1337
ENTRYPOINT ["/usr/local/bin/pilot-discovery"]
