/** The end of a run before its tokens have ended. Pure. */
import { defined } from "../../../shared/defined.ts";
import type { Draft } from "./draft.ts";

/** Ends a run before its tokens have: they are cancelled. `by` is whoever asked for it. */
export function endRun(draft: Draft, status: "failed" | "cancelled" | "timed_out", by?: string): void {
  for (const { id, node } of [...draft.tokens.values()]) {
    draft.remove(id);
    draft.note({ type: "token.cancelled", token: id, node });
  }
  for (const id of [...draft.fanOuts.keys()]) draft.drop(id);
  draft.root = { ...draft.root, active: 0 };
  draft.status = status;
  const { error } = draft;
  draft.note({
    type: `workflow.${status}`,
    ...(error && { data: { error: { ...error }, ...defined({ by }) } }),
  });
}
