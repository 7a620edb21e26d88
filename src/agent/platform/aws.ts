import { askOrNothing } from "./metadata-client.ts";
import { given, type PlatformFacts } from "./platform.ts";

const IPV4_URL = "http://169.254.169.254";
const IPV6_URL = "http://[fd00:ec2::254]";
/** The server is on the machine itself. */
const TIMEOUT_MS = 100;
const TOKEN_SECONDS = "60";

export interface AwsServer {
  /** Empty for the usual one. */
  readonly url: string;
  readonly ipv6: boolean;
}

/** True on a machine of AWS with an instance profile. */
export async function isAws(server: AwsServer): Promise<boolean> {
  const ask = await metadataServer(server);
  return (await ask("iam/info"))?.includes("arn:aws:iam") ?? false;
}

/** Of a machine of AWS. */
export async function aws(server: AwsServer): Promise<PlatformFacts> {
  const ask = await metadataServer(server);
  const [region, zone, instance] = await Promise.all([
    ask("placement/region"),
    ask("placement/availability-zone"),
    ask("instance-id"),
  ]);
  return {
    metadata: given({ aws_availability_zone: zone, aws_region: region, aws_instance_id: instance }),
    locality: given({ region, zone }),
    labels: {},
  };
}

/** With a token (IMDSv2); servers without tokens answer without one (IMDSv1). */
async function metadataServer({ url, ipv6 }: AwsServer): Promise<(path: string) => Promise<string | undefined>> {
  const base = url === "" ? (ipv6 ? IPV6_URL : IPV4_URL) : url.replace(/\/$/, "");
  const token = await askOrNothing({
    url: `${base}/latest/api/token`,
    method: "PUT",
    headers: { "X-aws-ec2-metadata-token-ttl-seconds": TOKEN_SECONDS },
    timeoutMs: TIMEOUT_MS,
  });
  const headers = (token ?? "") === "" ? {} : { "X-aws-ec2-metadata-token": token ?? "" };
  return (path) => askOrNothing({ url: `${base}/latest/meta-data/${path}`, headers, timeoutMs: TIMEOUT_MS });
}
