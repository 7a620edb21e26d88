/** Who opens a connection. Rules look at the owner of a socket, which is whoever the process was when it made it. */

export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/** The process itself, as far as owners go. */
export interface Account {
  readonly current: Identity;
  /** Whether the process may be somebody else for a while. */
  mayBe(identity: Identity): boolean;
  /** Runs a task as somebody it may be. Tasks of different identities must not overlap. */
  as<T>(identity: Identity, task: () => Promise<T>): Promise<T>;
}

/** The calling process. It needs root, or SETUID and SETGID, to be anybody else. */
export function processAccount(): Account {
  const current = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  return {
    current,
    mayBe: (identity) => {
      try {
        become(identity);
        return true;
      } catch {
        // Not permitted, which is the answer.
        return false;
      } finally {
        restore(current);
      }
    },
    as: async (identity, task) => {
      try {
        become(identity);
        return await task();
      } finally {
        restore(current);
      }
    },
  };
}

/** The group first: who is no longer root may not change it. */
function become({ uid, gid }: Identity): void {
  if (process.getegid?.() !== gid) process.setegid?.(gid);
  if (process.geteuid?.() !== uid) process.seteuid?.(uid);
}

function restore({ uid, gid }: Identity): void {
  if (process.geteuid?.() !== uid) process.seteuid?.(uid);
  if (process.getegid?.() !== gid) process.setegid?.(gid);
}
