/**
 * The copy of the requests that wait for people, in the directory.
 *
 * INBOX-1  A request is answered at its actor. The directory only lists it: while the directory is down, requests wait and are answered, and the
 *          list is complete afterwards (PUB-1).
 */
import type { Directory } from "../../../d1/directory.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { ListedApproval } from "../../../protocol/waiting-approvals.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import type { Wakeup } from "../timers/wakeups.ts";
import { Mirror } from "./mirror.ts";

/** Requests of one actor that are listed. Others follow as these are answered. */
const MAX_LISTED = 100;
/** Bytes of an input, and of all inputs of one actor, as JSON. Larger inputs are left out. */
const MAX_INPUT_BYTES = 64 * 1024;
const MAX_INPUTS_BYTES = 512 * 1024;

export interface ApprovalsMirrorPorts {
  clock: Pick<Clock, "now">;
  wakeup: Wakeup;
  /** Returns `null` if there is no directory. */
  directory(): Directory | null;
  /** Returns the actor's requests as of its newest journal entry. */
  waiting(): { tenant: string; place: string; seq: number; waiting: readonly ListedApproval[] };
}

/** Returns the mirror of an actor's requests. */
export function approvalsMirror({ clock, wakeup, directory, waiting: read }: ApprovalsMirrorPorts): Mirror {
  return new Mirror({
    clock,
    wakeup,
    put: async () => {
      const { tenant, place, seq, waiting } = read();
      await directory()?.putApprovals(tenant, place, seq, bounded(waiting));
    },
  });
}

function bounded(waiting: readonly ListedApproval[]): ListedApproval[] {
  let left = MAX_INPUTS_BYTES;
  return waiting.slice(0, MAX_LISTED).map(({ approval, approvers }) => {
    const { input, ...rest } = approval;
    const bytes = utf8Length(JSON.stringify(input ?? {}));
    if (input === undefined || bytes > Math.min(left, MAX_INPUT_BYTES)) return { approval: rest, approvers };
    left -= bytes;
    return { approval, approvers };
  });
}
