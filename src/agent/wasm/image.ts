/** Images that hold a Wasm module, in the three forms that tools make them in. */
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { DOCKER_MANIFEST, type Manifest, type Registry } from "./registry.ts";
import { pluginOf } from "./unpack.ts";

const DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip";
const OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";
const WASM_LAYER = "application/vnd.module.wasm.content.layer.v1+wasm";

/** The module of an image. Rejects when the image has no known form. */
export async function moduleOfImage(manifest: Manifest, registry: Registry): Promise<Buffer> {
  if (manifest.mediaType === DOCKER_MANIFEST) return fromLastLayer(manifest, registry, DOCKER_LAYER);
  try {
    return await fromLastLayer(manifest, registry, OCI_LAYER);
  } catch (compat) {
    return fromArtifact(manifest, registry, compat);
  }
}

/** `plugin.wasm` in the archive that is the last layer. */
async function fromLastLayer({ layers }: Manifest, registry: Registry, mediaType: string): Promise<Buffer> {
  const last = layers.at(-1);
  if (last === undefined) throw invalid("the image has no layers");
  if (last.mediaType !== mediaType) throw invalid(`the last layer is ${last.mediaType}, not ${mediaType}`);
  return await pluginOf(await registry.blob(last.digest));
}

/** An artifact of two layers, one of which is the bare module. */
async function fromArtifact({ layers }: Manifest, registry: Registry, compat: unknown): Promise<Buffer> {
  const layer = layers.length === 2 ? layers.find(({ mediaType }) => mediaType === WASM_LAYER) : undefined;
  if (layer !== undefined) return registry.blob(layer.digest);
  throw invalid(`neither a compatible image (${errorText(compat)}) nor an artifact of two layers with ${WASM_LAYER}`);
}

function invalid(reason: string): MeshError {
  return new MeshError("WASM_IMAGE_INVALID", reason);
}
