/**
 * The commits of a run: which tokens take their steps, and when the run has completed. Pure.
 *
 * STEPS-1  A commit takes a bounded number of steps. The other tokens then wait for the next commit.
 * STEPS-2  A run has at most `MAX_TOKENS` tokens. Beyond that it fails with `RUN_TOO_LONG`. Its written values stay readable.
 */
import type { JsonObject } from "../../../shared/json.ts";
import { Meter } from "../../../shared/json-schema/meter.ts";
import { type Draft, TooLong } from "./draft.ts";
import { areas, evaluatedMapping, failureOf } from "./evaluation.ts";
import { startParts } from "./fan-out.ts";
import { MAX_COMMIT_STEPS, MAX_TOKEN_STEPS, MAX_TOKENS, STEPS_OF_TOKEN } from "./run-limits.ts";
import { endRun } from "./run-retry.ts";
import type { Token } from "./state.ts";
import { step } from "./token.ts";
import { multiplies, startsRun, treeShareOf } from "./tree-share.ts";

/** Advances all tokens that can take a step. Ends the run if no token or fan-out is left. */
export function advance(draft: Draft): void {
  try {
    const postponed: Token[] = [];
    while (draft.steps < MAX_COMMIT_STEPS && draft.error === undefined) {
      const next = draft.nextPending();
      const token = next ?? nextPostponed(draft, postponed);
      if (token === undefined) break;
      if (draft.outbox.isFull && isCall(draft, token)) continue;
      if (draft.work.freeRuns < 1 && startsRun(draft.graph, token)) continue;
      if (next !== undefined && isCrowded(draft) && multiplies(draft.graph, token)) {
        postponed.push(token);
        continue;
      }
      const meter = new Meter(MAX_TOKEN_STEPS);
      step(draft, token, meter);
      draft.steps += STEPS_OF_TOKEN + meter.spent;
    }
    if (draft.error === undefined) startParts(draft);
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
    draft.error = {
      code: "RUN_TOO_LONG",
      message: `The run has more than ${MAX_TOKENS} tokens. Let its loops end earlier, fan out over fewer items, or split it into sub-workflows.`,
    };
  }
  if (draft.error !== undefined) endRun(draft, "failed");
  else if (draft.root.active === 0) completeRun(draft);
}

function isCrowded({ work: { active }, before }: Draft): boolean {
  return active > treeShareOf(before.record).tokens;
}

/** Returns the next postponed token, after all others. Returns `undefined` while a running task is about to release tokens (TREESHARE-5). */
function nextPostponed(draft: Draft, postponed: Token[]): Token | undefined {
  return draft.work.tasks > 0 && isCrowded(draft) ? undefined : postponed.shift();
}

/** Reports whether a token starts a sub-workflow or an agent next. */
function isCall({ graph }: Draft, { phase, node }: Token): boolean {
  return phase.kind === "ready" && graph.calls.has(node);
}

function completeRun(draft: Draft): void {
  const { outputMapping = {} } = draft.graph.definition;
  if (draft.before.record.part !== undefined) {
    draft.status = "completed";
    draft.note({ type: "workflow.completed" });
    return;
  }
  let output: JsonObject;
  try {
    const meter = new Meter(MAX_TOKEN_STEPS);
    output = evaluatedMapping(outputMapping, areas(draft, null, meter), meter, "The output of the workflow");
  } catch (error) {
    draft.error = failureOf(error);
    endRun(draft, "failed");
    return;
  }
  draft.output = output;
  draft.status = "completed";
  draft.note({ type: "workflow.completed", data: { output } });
}
