/** The webhook configurations of an installation, as the chart gives them. */
import { installed } from "#install/fixture.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";

/** Those of injection and validation; `set` are settings as `--set` takes them. */
export async function webhookConfigurations(
  ...set: readonly string[]
): Promise<{ readonly injection: readonly RawObject[]; readonly validation: readonly RawObject[] }> {
  const objects = [...(await installed(...set)).values()];
  const ofKind = (wanted: string) => objects.filter(({ kind }) => kind === wanted);
  return {
    injection: ofKind("MutatingWebhookConfiguration"),
    validation: ofKind("ValidatingWebhookConfiguration"),
  };
}
