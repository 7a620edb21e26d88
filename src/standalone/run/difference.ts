/** What has to be done to make one plan out of another. Whatever is equal by value is left alone. */
import { isDeepStrictEqual } from "node:util";
import type { MemberPlan, MeshPlan } from "../plan/plan.ts";

export interface Difference {
  readonly removed: readonly MemberPlan[];
  readonly added: readonly MemberPlan[];
  /** Made anew, with the same name and address: identity, proxy, labels or ports differ. */
  readonly replaced: readonly MemberPlan[];
  /** Only what runs beside the proxy differs: command, variables, probes, what it waits for. */
  readonly appChanged: readonly MemberPlan[];
  readonly controlPlane: {
    /** Files it watches. */
    readonly files: boolean;
    /** Must be started again: proxies go on with what they have meanwhile. */
    readonly process: boolean;
  };
  /** It comes, goes, or must be started again. */
  readonly sharedAgent: boolean;
  /** Which files and folders hold the user's objects, and how they are read. */
  readonly config: boolean;
}

export function difference(current: MeshPlan, desired: MeshPlan): Difference {
  const before = new Map(current.members.map((plan) => [plan.key, plan]));
  const after = new Map(desired.members.map((plan) => [plan.key, plan]));
  const kept = desired.members.flatMap((plan) => {
    const old = before.get(plan.key);
    return old === undefined ? [] : [{ plan, same: isDeepStrictEqual(frame(old), frame(plan)), old }];
  });
  return {
    removed: current.members.filter(({ key }) => !after.has(key)),
    added: desired.members.filter(({ key }) => !before.has(key)),
    replaced: kept.filter(({ same }) => !same).map(({ plan }) => plan),
    appChanged: kept
      .filter(({ plan, same, old }) => same && !isDeepStrictEqual(content(old), content(plan)))
      .map(({ plan }) => plan),
    controlPlane: {
      files: !isDeepStrictEqual(current.controlPlane.files, desired.controlPlane.files),
      process:
        !isDeepStrictEqual(current.controlPlane.process, desired.controlPlane.process) ||
        trustDomain(current) !== trustDomain(desired),
    },
    sharedAgent: !isDeepStrictEqual(current.sharedAgent, desired.sharedAgent),
    config:
      !isDeepStrictEqual(current.config, desired.config) || current.onUnreadablePolicy !== desired.onUnreadablePolicy,
  };
}

/** The authority takes it over when it starts, and only then. */
function trustDomain({ controlPlane, paths }: MeshPlan): unknown {
  const file = controlPlane.files.find(({ path }) => path === paths.meshConfig);
  return file && JSON.parse(file.text).trustDomain;
}

/** Everything but what a member runs beside its proxy, and but its published ports, which are the machine's. */
function frame({ app: _app, shell: _shell, member, ...pod }: MemberPlan): object {
  const { app, readiness: _readiness, after: _after, publish: _publish, ...identity } = member;
  return { ...pod, identity, hasApp: app !== undefined };
}

function content({ app, member }: MemberPlan): object {
  return { app, readiness: member.readiness, after: member.after };
}
