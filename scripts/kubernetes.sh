#!/bin/sh
# Builds kube-apiserver, kube-controller-manager and kubectl from the Go module k8s.io/kubernetes, once per version, for the tests
# that speak to a real API server. Takes some minutes the first time; costs nothing when the programs are there.
set -eu
cd "$(dirname "$0")/.."

KUBERNETES_VERSION=1.34.4
out=$PWD/.cache/kubernetes
programs="kube-apiserver kube-controller-manager kubectl"

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

if ! command -v etcd >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing Debian packages: etcd-server"
    # The service that comes with the package is not wanted here: each test starts an etcd of its own.
    { RUNLEVEL=1 apt-get install -y --no-install-recommends etcd-server ||
      { apt-get update && RUNLEVEL=1 apt-get install -y --no-install-recommends etcd-server; }; } >.cache/apt-etcd.log 2>&1 ||
      { tail -n 5 .cache/apt-etcd.log >&2; fail "cannot install etcd: install it by hand (Debian: etcd-server)"; }
  else
    fail "etcd is missing; install it as root (Debian: apt-get install etcd-server)"
  fi
fi

[ "$(cat "$out/stamp" 2>/dev/null)" = "$KUBERNETES_VERSION" ] && exit 0
command -v go >/dev/null || fail "go is missing: install Go 1.24 or newer"

say "building Kubernetes $KUBERNETES_VERSION for the tests (some minutes, once)"
module=$PWD/.cache/kubernetes-module
log=$PWD/.cache/kubernetes.log
rm -rf "$module" "$out"
mkdir -p "$module" "$out"
cd "$module"
export GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0

# Its go.mod points at folders of its own repository for the parts that are published as modules v0.x.
source=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES_VERSION" 2>"$log" | sed -n 's/^[[:space:]]*"GoMod": "\(.*\)",*$/\1/p')
[ -n "$source" ] || { tail -n 5 "$log" >&2; fail "the Go module k8s.io/kubernetes $KUBERNETES_VERSION cannot be had, see above"; }
{
  echo "module kubernetes"
  sed -n 's/^go \(.*\)/go \1/p' "$source"
  echo "require k8s.io/kubernetes v$KUBERNETES_VERSION"
  sed -n "s|^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging/.*|replace \1 => \1 v0.${KUBERNETES_VERSION#1.}|p" "$source"
} >go.mod
{
  echo "package programs"
  for program in $programs; do echo "import _ \"k8s.io/kubernetes/cmd/$program\""; done
} >programs.go

minor=${KUBERNETES_VERSION#1.}
minor=${minor%%.*}
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags="$flags -X $package.gitVersion=v$KUBERNETES_VERSION -X $package.gitMajor=1 -X $package.gitMinor=$minor"
done
for program in $programs; do
  go build -ldflags "$flags" -o "$out/$program" "k8s.io/kubernetes/cmd/$program" >>"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; fail "$program cannot be built, see above"; }
done
printf '%s' "$KUBERNETES_VERSION" >"$out/stamp"
