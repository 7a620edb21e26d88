/** Finds out which cloud a workload runs in and asks it. All are tried at the same time, and none for long. */
import { readFile } from "node:fs/promises";
import type { Logger } from "#lib/log/log.ts";
import { aws, isAws } from "./aws.ts";
import { azure } from "./azure.ts";
import { answersAsGcp, fixedMetadata, gcp } from "./gcp.ts";
import { NO_PLATFORM, type PlatformConfig, type PlatformFacts } from "./platform.ts";

export interface DiscoverInput {
  readonly config: PlatformConfig;
  /** The instance has an IPv6 address. */
  readonly ipv6: boolean;
  readonly log: Logger;
  /** Root of `/sys` and `/etc`; for tests. */
  readonly root?: string;
}

type Cloud = "gcp" | "aws" | "azure";

/** What the platform says; nothing on a machine that is in no cloud. */
export async function discoverPlatform(input: DiscoverInput): Promise<PlatformFacts> {
  const { config, log } = input;
  if (config.cloud === "none") return NO_PLATFORM;
  const cloud = config.cloud === "" ? await detect(input) : config.cloud;
  if (cloud === undefined) return NO_PLATFORM;
  if (config.cloud === "") log.info(`platform detected is ${cloud === "azure" ? "Azure" : cloud.toUpperCase()}`);
  return facts(cloud, input);
}

async function facts(cloud: Cloud, input: DiscoverInput): Promise<PlatformFacts> {
  const { config, ipv6 } = input;
  if (cloud === "aws") return aws({ url: config.awsUrl, ipv6 });
  if (cloud === "azure") return azure(config.azureUrl);
  return gcp({ ...config, resolvConf: await fileText(input, "/etc/resolv.conf") });
}

async function detect(input: DiscoverInput): Promise<Cloud | undefined> {
  const { config, ipv6 } = input;
  if (Object.keys(fixedMetadata(config)).length > 0 || config.gcpHost !== "") return "gcp";
  const [product, vendor] = await Promise.all([
    fileText(input, "/sys/class/dmi/id/product_name"),
    fileText(input, "/sys/class/dmi/id/sys_vendor"),
  ]);
  if (vendor.includes("Microsoft Corporation")) return "azure";
  if (product.startsWith("Google")) return "gcp";
  const [isGcp, onAws] = await Promise.all([answersAsGcp(config.gcpHost), isAws({ url: config.awsUrl, ipv6 })]);
  return isGcp ? "gcp" : onAws ? "aws" : undefined;
}

async function fileText({ root = "" }: DiscoverInput, path: string): Promise<string> {
  try {
    return await readFile(`${root}${path}`, "utf8");
  } catch {
    return ""; // many machines do not have it
  }
}
