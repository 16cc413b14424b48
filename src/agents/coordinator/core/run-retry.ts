/**
 * The end of a run before its tokens have ended, and the retry of a run that has failed. Pure.
 *
 * RUNRETRY-1  The tokens that failed, and those that a failure cancelled, begin again. The same holds for tokens of a branch that failed
 *             before its fan-in fired. Completed nodes keep their outputs. A fan-in that has fired stays closed.
 * RUNRETRY-2  A token continues with a new attempt and with its earlier input. The number of the attempt is one higher. Results of earlier
 *             attempts are ignored. A `once` task and a gate begin as another operation. The attempts of a task's policy start from zero.
 * RUNRETRY-3  If a node may have had an effect that must not happen twice, the caller must set `repeatOnce`. These nodes are agents, `once`
 *             tasks that began (reported failures included), and sub-workflows with such tasks or agents.
 * RUNRETRY-4  A retry is rejected, without a change, in these cases. The run has not failed. The run has advanced since the caller saw it.
 *             Another run or a conversation started the run. The failure stopped no token, or it stopped a spread fan-out. The run failed
 *             with `RUN_TOO_LONG`. A gate or a `once` task was retried `MAX_RETRIES` times.
 * RUNRETRY-5  The time limits of the run and of its fan-ins restart with a retry.
 */
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict, DramatisError } from "../../../shared/errors.ts";
import type { Draft } from "./draft.ts";
import { consider } from "./fan-in.ts";
import type { RunRecord } from "./record.ts";
import { MAX_RETRIES } from "./run-limits.ts";
import type { RunRetried } from "./signals.ts";
import type { Again, RunState, Token } from "./state.ts";
import { workOf } from "./work.ts";

/** Reports whether a failed run keeps the state that a retry needs. `stopped` has the tokens and fan-outs stopped by failures. */
export function mayBeRetried({
  before,
  error,
  stopped,
}: Pick<Draft, "before" | "error" | "stopped">): boolean {
  const isSpread = [...stopped.fanOuts.values()].some(({ spread }) => spread !== undefined);
  return (
    stopped.tokens.size > 0 &&
    !isSpread &&
    awaitedBy(before.record) === undefined &&
    error?.code !== "RUN_TOO_LONG"
  );
}

/** Ends a run early and cancels its tokens. `by` is the subject that requested it. A failed run keeps the tokens for a retry. */
export function endRun(draft: Draft, status: "failed" | "cancelled" | "timed_out", by?: string): void {
  for (const token of [...draft.tokens.values()]) {
    draft.stop(token);
    draft.noteOf(token, "token.cancelled");
  }
  for (const id of [...draft.fanOuts.keys()]) draft.stopFanOut(id);
  if (status !== "failed" || !mayBeRetried(draft)) draft.dropStopped();
  draft.root = { ...draft.root, active: 0 };
  draft.status = status;
  const { error } = draft;
  draft.note({
    type: `workflow.${status}`,
    ...(error && { data: { error: { ...error }, ...defined({ by }) } }),
  });
}

/** Retries a failed run. Throws `CONFLICT` (RUNRETRY-4), and `OUTCOME_UNKNOWN` (RUNRETRY-3). */
export function retryRun(draft: Draft, { by, seq, repeatOnce = false }: RunRetried): void {
  const { before, stopped } = draft;
  checkRetry(draft, seq);
  const repeats = repeatedEffects(before);
  if (repeats.length > 0 && !repeatOnce)
    throw new DramatisError(
      "OUTCOME_UNKNOWN",
      `A retry may repeat effects that must happen only once, at ${shown(repeats)}. Check these effects, then retry with "repeatOnce": true.`,
    );
  const tokens = [...stopped.tokens.values()]
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
  // If a merge failed, all branches may have completed. Their fan-in has no token that would trigger its check.
  for (const id of fanOuts) consider(draft, id);
}

/** Returns the nodes of a failed run with effects that a retry may repeat, without duplicates (RUNRETRY-3). */
export function repeatedEffects({ record, stopped }: Pick<RunState, "record" | "stopped">): string[] {
  const tokens = [...(stopped?.tokens.values() ?? [])];
  return [...new Set(tokens.filter((token) => mayHaveTakenEffect(record, token)).map(({ node }) => node))];
}

function checkRetry({ before, status, stopped }: Draft, seq: number | undefined): void {
  const problem =
    status !== "failed"
      ? `This run is ${status}. Only a run that failed can be retried.`
      : seq !== undefined && seq !== before.seq
        ? "This run has advanced since you saw it. Read it again."
        : (awaitedBy(before.record) ??
          (stopped.tokens.size === 0
            ? `This run has no work to repeat: ${before.error?.message ?? ""} Start another run.`
            : undefined));
  if (problem !== undefined) throw conflict(problem);
}

/** Returns why the failure of a run is final; `undefined` if no caller waited for the run. */
function awaitedBy({ parent, path = [] }: RunRecord): string | undefined {
  if (parent !== undefined)
    return `The parent run already has this failure. Retry the parent run: "${parent.runId}".`;
  return path.length > 0
    ? "The conversation that ran this workflow as a tool already has this failure. Ask the agent again."
    : undefined;
}

function mayHaveTakenEffect(record: RunRecord, token: Token): boolean {
  // A token that waits for its next attempt has begun before.
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

/** Returns a token that is ready for its next attempt. Throws `CONFLICT` if the token has used all its operations. */
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
    throw conflict(
      `"${token.node}" was retried ${operations - 1} times, which is the maximum. Start another run.`,
    );
  const next: Again = { attempts: phase.attempt, operations };
  // A gate renders its question again, from the input of its node.
  const input = work?.kind === "gate" ? {} : { input: phase.input };
  return { ...base, phase: { kind: "ready", ...input }, again: next };
}

function shown(nodes: readonly string[]): string {
  const names = nodes.slice(0, 10).map((node) => `"${node}"`);
  return nodes.length > names.length ? `${names.join(", ")} and others` : names.join(", ");
}
