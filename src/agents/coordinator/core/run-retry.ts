/**
 * The retry of a run that has failed. Pure.
 *
 * RUNRETRY-1  The tokens that failed, and those that a failure cancelled, begin again. So do those of a branch that failed while its fan-in
 *             was still to fire. Nothing else does: what completed keeps its output, and a fan-in that has fired is not looked at again.
 * RUNRETRY-2  A token goes on with a new attempt, whose number is one higher, and with the input that it had. What comes of an earlier
 *             attempt changes nothing. A `once` task and a gate begin as another operation. The attempts of a task's policy count anew.
 * RUNRETRY-3  Where a node may have taken an effect that may not happen twice, the run is not retried unless the caller says `repeatOnce`. These
 *             are `once` tasks that have begun, also those that reported a failure; agents; and sub-workflows with such tasks or agents.
 * RUNRETRY-4  A retry is refused, and changes nothing, where the run has not failed, has gone on since the caller saw it, or has nothing to
 *             repeat; where a fan-out is spread over runs of its own; and where others have its failure already: the run above, or the
 *             conversation whose tool it is.
 * RUNRETRY-5  The time limits of the run and of its fan-ins count anew from a retry.
 */
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Draft } from "./draft.ts";
import { consider } from "./fan-in.ts";
import type { RunRecord } from "./record.ts";
import { MAX_RETRIES } from "./run-limits.ts";
import type { RunRetried } from "./signals.ts";
import type { Again, RunState, Token } from "./state.ts";
import { workOf } from "./work.ts";

/** Reports whether a run that fails keeps what it needs for a retry. `kept` is what failures have stopped. */
export function mayBeRetried({ before, error, kept }: Pick<Draft, "before" | "error" | "kept">): boolean {
  const isSpread = [...kept.fanOuts.values()].some(({ spread }) => spread !== undefined);
  return (
    kept.tokens.size > 0 &&
    !isSpread &&
    awaitedBy(before.record) === undefined &&
    error?.code !== "RUN_TOO_LONG"
  );
}

/** Lets a failed run go on. Throws `CONFLICT` (RUNRETRY-4), and `OUTCOME_UNKNOWN` (RUNRETRY-3). */
export function retryRun(draft: Draft, { by, seq, repeatOnce = false }: RunRetried): void {
  const { before, kept } = draft;
  checkRetry(draft, seq);
  const repeats = repeatedEffects(before);
  if (repeats.length > 0 && !repeatOnce)
    throw new DramatisError(
      "OUTCOME_UNKNOWN",
      `A retry may repeat effects that may not happen twice, at ${shown(repeats)}. See what has happened there, then retry with "repeatOnce": true.`,
    );
  const tokens = [...kept.tokens.values()]
    .sort((one, other) => one.id - other.id)
    .map((token) => renewed(before.record, token, draft.now));
  draft.status = "running";
  draft.error = undefined;
  draft.recoveries = 0;
  draft.retried = { retries: (draft.retried?.retries ?? 0) + 1, from: draft.now };
  if (before.record.workflow.definition.timeoutMs !== undefined)
    draft.time = { asked: draft.time?.asked ?? 0, since: draft.now };
  const fanOuts = draft.restore(tokens);
  draft.note({ type: "workflow.retried", data: { by, tokens: tokens.map(({ id }) => id), fanOuts } });
  // The branches of one whose merge failed may all have completed: no token would have it looked at.
  for (const id of fanOuts) consider(draft, id);
}

/** Returns the nodes of a failed run whose effects a retry may repeat, each once (RUNRETRY-3). */
export function repeatedEffects({ record, kept }: Pick<RunState, "record" | "kept">): string[] {
  const tokens = [...(kept?.tokens.values() ?? [])];
  return [...new Set(tokens.filter((token) => mayHaveTakenEffect(record, token)).map(({ node }) => node))];
}

function checkRetry({ before, status, kept }: Draft, seq: number | undefined): void {
  const problem =
    status !== "failed"
      ? `This run is ${status}. Only a run that failed can be retried.`
      : seq !== undefined && seq !== before.seq
        ? "This run has gone on since you saw it. Read it again."
        : (awaitedBy(before.record) ??
          (kept.tokens.size === 0
            ? `Nothing in this run can be repeated: ${before.error?.message ?? ""} Start another run.`
            : undefined));
  if (problem !== undefined) throw new DramatisError("CONFLICT", problem);
}

/** Returns why the failure of a run cannot be taken back; `undefined` where nobody waited for the run. */
function awaitedBy({ parent, path = [] }: RunRecord): string | undefined {
  if (parent !== undefined)
    return `The run above has this failure already. Retry that run: "${parent.runId}".`;
  return path.length > 0
    ? "The conversation that ran this workflow as a tool has its failure already. Ask the agent again."
    : undefined;
}

function mayHaveTakenEffect(record: RunRecord, token: Token): boolean {
  // One that waits to begin again has begun before.
  if (token.phase.kind === "ready" && (token.again?.attempts ?? 0) === 0) return false;
  const work = workOf(record, token);
  switch (work?.kind) {
    case "agent":
      return true;
    case "workflow":
      return hasEffects(record.workflow.workflows[token.node]);
    case "task":
      return work.task.effect === "once";
    case "gate":
    case "part":
    case undefined:
      return false;
    default:
      return work satisfies never;
  }
}

function hasEffects(workflow: PinnedWorkflow | undefined): boolean {
  if (workflow === undefined) return false;
  const { definition, tasks, workflows } = workflow;
  return (
    definition.nodes.some(({ agent }) => agent !== undefined) ||
    Object.keys(tasks).some((ref) => {
      const work = workOf({ workflow }, { node: ref });
      return work?.kind === "task" && work.task.effect === "once";
    }) ||
    Object.values(workflows).some(hasEffects)
  );
}

/** Returns a token that is ready for its next attempt. Throws `CONFLICT` for one with as many operations as a token may have. */
function renewed(record: RunRecord, { phase, again, ...token }: Token, now: number): Token {
  const work = workOf(record, token);
  const base = { ...token, createdAt: now };
  if (phase.kind === "ready") {
    // It was stopped before its next attempt began.
    return { ...base, phase, ...(again && { again }) };
  }
  const isOther = work?.kind === "gate" || (work?.kind === "task" && work.task.effect === "once");
  const operations = (again?.operations ?? 0) + Number(isOther);
  if (operations > MAX_RETRIES)
    throw new DramatisError(
      "CONFLICT",
      `"${token.node}" was retried ${operations - 1} times already. Start another run.`,
    );
  const next: Again = { attempts: phase.attempt, operations };
  // A gate makes its question anew, from the input of its node.
  const input = work?.kind === "gate" ? {} : { input: phase.input };
  return { ...base, phase: { kind: "ready", ...input }, again: next };
}

function shown(nodes: readonly string[]): string {
  const names = nodes.slice(0, 10).map((node) => `"${node}"`);
  return nodes.length > names.length ? `${names.join(", ")} and others` : names.join(", ");
}
