/** The end of a run before its tokens have ended. Pure. */
import { defined } from "../../../shared/defined.ts";
import type { Draft } from "./draft.ts";
import { mayBeRetried } from "./run-retry.ts";

/** Ends a run early and cancels its tokens. `by` is the subject that requested it. A failed run keeps the tokens for a retry. */
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
