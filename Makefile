# Everything a person runs. Each target sets up what it needs; a repeated run costs nothing when nothing changed.
SHELL := /bin/sh
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
export NODE_COMPILE_CACHE := $(CURDIR)/.cache/node-compile
.DEFAULT_GOAL := help

## help: list the targets
.PHONY: help
help:
	@echo "Mizzen: a service mesh in TypeScript that speaks Istio"
	@echo
	@sed -n 's/^## \([a-z]*\): \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

## setup: install everything that is missing and generate code
.PHONY: setup
setup:
	@sh scripts/setup.sh

## build: bundle the commands into dist/ (bin/* run them)
.PHONY: build
build: setup
	@node scripts/build.ts

## demo: run Bookinfo as a real mesh on this machine; Ctrl-C leaves nothing behind
.PHONY: demo
demo: build
	@bin/mizzen up samples/bookinfo

## test: set up and run all checks and tests
.PHONY: test
test: check kubernetes
	@node scripts/test.ts

## kubernetes: build the API server that tests speak to, once per version
.PHONY: kubernetes
kubernetes: setup
	@sh scripts/kubernetes.sh

## check: format, lint, types, unused code, layers, docs, image digests, entry points
.PHONY: check
check: build
	@biome check --error-on-warnings .
	@tsc
	@knip
	@publint
	@node scripts/check-layers.ts
	@node scripts/check-docs.ts
	@node scripts/check-images.ts
	@node scripts/check-entry-points.ts

## fuzz: look for new bugs in all readers; DURATION=seconds for each, TARGET=name for one
.PHONY: fuzz
fuzz: build
	@node test/hardening/fuzz/run.ts --target "$(TARGET)" --duration "$(DURATION)"
	@if [ -z "$(TARGET)" ] && [ -f test/hardening/policy-differential.ts ]; then \
	  node test/hardening/policy-differential.ts --requests 1000000; fi

## conformance: run real Istio's cases and print how many of each group pass
.PHONY: conformance
conformance: setup
	@node test/conformance/run.ts

## bench: print the performance table
.PHONY: bench
bench: build
	@node bench/run.ts

## sbom: write a CycloneDX bill of materials to dist/sbom.cdx.json
.PHONY: sbom
sbom: build
	@node scripts/sbom.ts

## release: tag VERSION and write its archive, packages, SBOM, notes and checksums to dist/release
.PHONY: release
release: test
	@node scripts/release.ts "$(VERSION)"

## clean: remove everything that was installed, generated or built
.PHONY: clean
clean:
	rm -rf dist src/gen .cache node_modules
