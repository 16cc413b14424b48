/** The end of a run before its tokens have ended. Pure. */
import { defined } from "../../../shared/defined.ts";
import type { Draft } from "./draft.ts";
import { mayBeRetried } from "./run-retry.ts";

/** Ends a run before its tokens have: they are cancelled. `by` is the subject that asked for it. A failed run keeps them for a retry. */
export function endRun(draft: Draft, status: "failed" | "cancelled" | "timed_out", by?: string): void {
  for (const token of [...draft.tokens.values()]) {
    draft.stop(token);
    draft.note({ type: "token.cancelled", token: token.id, node: token.node });
  }
  for (const id of [...draft.fanOuts.keys()]) draft.stopFanOut(id);
  if (status !== "failed" || !mayBeRetried(draft)) draft.forget();
  draft.root = { ...draft.root, active: 0 };
  draft.status = status;
  const { error } = draft;
  draft.note({
    type: `workflow.${status}`,
    ...(error && { data: { error: { ...error }, ...defined({ by }) } }),
  });
}
