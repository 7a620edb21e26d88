/** What real Istio 1.29.6 needed for the same on 2 cores: file configuration, plain text, one view. */
import type { Figures } from "./load.ts";

/** Compares with runs of 50 proxies and 500 services only. */
export const ISTIO_50_X_500: Figures = {
  connectSeconds: 1.9,
  connectCpuSeconds: 2.8,
  connectMegabytes: Number.NaN,
  endpoint: { p50Ms: Number.NaN, p99Ms: 625, cpuMs: 650, kilobytesPerProxy: Number.NaN },
  route: { p50Ms: Number.NaN, p99Ms: 1275, cpuMs: 1423, kilobytesPerProxy: 1.3 * 1024 },
  service: { p50Ms: Number.NaN, p99Ms: 833, cpuMs: 1070, kilobytesPerProxy: Number.NaN },
  privateMegabytes: 216,
};
