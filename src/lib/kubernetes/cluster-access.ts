/** How the API server is reached, and who we are there. */
import { MeshError } from "../mesh-error.ts";
import { environmentProxy } from "../net/environment-proxy.ts";

/** What a caller shows: a header, a certificate, or both. */
export interface Credentials {
  readonly authorization?: string | undefined;
  /** PEM. */
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

export interface ClusterAccess {
  /** `https://10.96.0.1:443`, perhaps with a path. */
  readonly server: string;
  /** PEM of what signs the server's certificate; undefined trusts what the machine trusts. */
  readonly ca?: string | undefined;
  /** The name in the server's certificate, where it is not that of the address. */
  readonly serverName?: string | undefined;
  /** The server's certificate is not looked at. Only when the user has said so. */
  readonly insecure?: boolean | undefined;
  /** `http://` or `https://` URL of what connects us to the server. */
  readonly proxy?: string | undefined;
  /** Headers that say in whose name we ask. */
  readonly impersonation?: Readonly<Record<string, string | readonly string[]>> | undefined;
  /** The namespace that is meant when none is named. */
  readonly namespace: string;
  /** Asked before each request: tokens in files are rotated, and those of programs end. */
  credentials(): Promise<Credentials>;
}

/** The API server of the pod that this program runs in. */
export interface InCluster {
  readonly host: string;
  readonly port: string;
  /** Where the token and the root are mounted. */
  readonly folder: string;
  readText(file: string): Promise<string>;
  /** Where proxies are named; there is none when not given. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** What pods find mounted in them. */
export const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Access from inside a pod. The token is read anew for each request. */
export async function inClusterAccess(pod: InCluster): Promise<ClusterAccess> {
  const { host, port, folder, readText, environment = {} } = pod;
  const read = async (name: string) => {
    try {
      return await readText(`${folder}/${name}`);
    } catch (cause) {
      throw new MeshError(
        "KUBE_CONFIG_INVALID",
        `the service account of this pod cannot be read from ${folder}/${name}`,
        {
          cause,
        },
      );
    }
  };
  const ca = await read("ca.crt");
  const namespace = (await read("namespace")).trim();
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return {
    server,
    proxy: environmentProxy(server, environment),
    ca,
    namespace,
    credentials: async () => ({ authorization: `Bearer ${(await read("token")).trim()}` }),
  };
}
