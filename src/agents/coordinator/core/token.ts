/**
 * The life of a token: its node begins, its work ends, the result is written, and the transitions behind it fire. Pure.
 *
 * OPENCALLS-1  A run waits for at most `MAX_OPEN_CALLS` sub-workflows and agents at once. A further node fails. So a run can always end.
 * AGENTNODE-3  If no conversation started the run, a node in the mode `loop_in` fails with `INVALID_INPUT`. No agent is asked.
 * STEPS-3  A node without an `outputMapping` makes its result the output of its branch. Outside branches its result is dropped.
 * RUNDENIED-1  If a rule denies a task while it runs, the journal has `policy.denied` with the rule, before the failure of the attempt.
 * RUNSIGNAL-2  After a transient failure, another attempt follows, as the policy of the task says. A `once` task has no further attempt.
 */
import { nextAttemptAt } from "../../../library/tools/retry.ts";
import type { WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import type { RunError } from "../../../protocol/workflow-run.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";
import { type Draft, TooLong } from "./draft.ts";
import { evaluatedMapping, failureOf, nodeVariables, TokenFailure } from "./evaluation.ts";
import { consider, fail, release, write } from "./fan-in.ts";
import { fanOut } from "./fan-out.ts";
import { opened } from "./gates.ts";
import { countedWith, type Firing, firingBehind } from "./routing.ts";
import { calledBy, startBytes } from "./run-envelopes.ts";
import { MAX_INPUT_LENGTH, MAX_OPEN_CALLS, MAX_START_BYTES } from "./run-limits.ts";
import type { NodeEnded } from "./signals.ts";
import { resolved, type Token } from "./state.ts";
import { nextShare } from "./tree-share.ts";
import { workOf } from "./work.ts";

/** Lengths of inputs as JSON. Many tokens may share the input of the run. */
const lengths = new WeakMap<JsonObject, number>();

function lengthOf(input: JsonObject): number {
  const length = lengths.get(input) ?? JSON.stringify(input).length;
  lengths.set(input, length);
  return length;
}

/** Begins the work of a node, if the outbox has room for its start. Returns whether it has any work. Throws `TokenFailure`. */
function begin(draft: Draft, token: Token, meter: Meter): boolean {
  const { task, workflow, agent, mode, inputMapping } = draft.graph.node(token.node);
  if ((task ?? workflow ?? agent) === undefined) return false;
  const { input: own } = draft.before.record;
  const before = token.phase.kind === "ready" ? token.phase.input : undefined;
  const given =
    inputMapping === undefined
      ? own
      : (before ??
        evaluatedMapping(
          inputMapping,
          nodeVariables(draft, token, meter),
          meter,
          `The input of "${token.node}"`,
        ));
  if (mode === "loop_in" && draft.before.record.origin === undefined)
    throw new TokenFailure({
      code: "INVALID_INPUT",
      message: `"${token.node}" invites its agent into the conversation that started the run, but a request or a trigger started this run. Let an agent start it, with a tool over the workflow, or use the mode "delegate".`,
    });
  const work = workOf(draft.before.record, token);
  const gate = work?.kind === "gate" ? opened(draft, token.node, work.question, given, meter) : undefined;
  const { input } = gate ?? { input: given };
  const length = lengthOf(input);
  if (length > MAX_INPUT_LENGTH)
    throw new TokenFailure({
      code: "TOO_LARGE",
      message: `The input of "${token.node}" has ${length} characters as JSON. The maximum is ${MAX_INPUT_LENGTH}.`,
    });
  if ((workflow ?? agent) !== undefined && draft.work.openCalls >= MAX_OPEN_CALLS)
    throw new TokenFailure({
      code: "BUDGET_EXCEEDED",
      message: `A run waits for at most ${MAX_OPEN_CALLS} sub-workflows and agents at once. Fan out over fewer items.`,
    });
  const attempt = 1 + (token.again?.attempts ?? 0);
  const share =
    workflow === undefined
      ? undefined
      : nextShare(draft.work.freeRuns, draft.tokens.size - draft.work.openRuns - 1);
  const phase = { kind: "working", attempt, ...(gate ?? { input }), ...defined({ share }) } as const;
  if (!fitsOutbox(draft, { ...token, phase })) return true;
  // The time of an agent counts from here: its token may have waited for outbox room or a share.
  draft.change(token.id, { phase, ...(agent !== undefined && { createdAt: draft.now }) });
  const data = defined({
    input: input === own ? undefined : input,
    attempt: attempt === 1 ? undefined : attempt,
    conversationId: agent === undefined ? undefined : calledBy(draft.before.record, token, attempt),
  });
  draft.noteOf(token, "task.dispatched", Object.keys(data).length > 0 ? data : undefined);
  if (gate !== undefined) {
    const { prompt = "", deadline = null } = gate;
    draft.noteOf(token, "gate.opened", { prompt, deadline });
  }
  return true;
}

/** Reserves outbox room for the start of a token. Returns true if it succeeds, or if the start needs no room. Throws `TokenFailure`. */
function fitsOutbox(draft: Draft, token: Token): boolean {
  if (!draft.graph.calls.has(token.node)) return true;
  const bytes = startBytes(draft.before.record, token);
  if (bytes > MAX_START_BYTES)
    throw new TokenFailure({
      code: "TOO_LARGE",
      message: `The start of "${token.node}" has ${bytes} bytes as JSON. The maximum is ${MAX_START_BYTES}.`,
    });
  return draft.outbox.take(bytes);
}

/** Takes the end of an attempt. A transient failure may have another attempt (RUNSIGNAL-2). */
export function endNode(
  draft: Draft,
  { token: id, attempt, outcome, transient, rule, task, tainted }: NodeEnded,
): void {
  const token = draft.working(id, attempt);
  if (token === undefined) return;
  const { phase } = token;
  draft.tainted ??= tainted;
  // The end of a part has its own signal, with its result.
  if (token.part === true && "output" in outcome) return;
  draft.recoveries = 0;
  if (rule !== undefined) draft.noteOf(token, "policy.denied", { attempt, rule });
  if ("error" in outcome && transient === true) {
    const work = workOf(draft.before.record, token);
    const own = attempt - (token.again?.attempts ?? 0);
    const notBefore =
      work?.kind === "task"
        ? nextAttemptAt(work.task.retry, { effect: work.task.effect, attempt: own }, draft.now)
        : undefined;
    if (notBefore !== undefined) {
      draft.change(id, { phase: { ...phase, attempt: attempt + 1, notBefore } });
      draft.noteOf(token, "task.retried", { attempt, error: { ...outcome.error } });
      return;
    }
  }
  draft.change(id, { phase: resolved(phase, outcome) });
  const summary = task === undefined ? {} : { task: structuredClone(task) as never };
  if ("error" in outcome)
    draft.noteOf(token, "task.failed", { attempt, error: { ...outcome.error }, ...summary });
  else draft.noteOf(token, "task.completed", { attempt, output: outcome.output, ...summary });
}

/** Takes the next step of a token. A token with work begins it; the other tokens end. */
export function step(draft: Draft, token: Token, meter: Meter): void {
  let touched: readonly number[] = [];
  try {
    if (token.phase.kind === "ready" && begin(draft, token, meter)) return;
    const result = resultOf(token);
    if (token.part === undefined) {
      writeResult(draft, token, result, meter);
      touched = follow(draft, token, meter);
    }
  } catch (error) {
    if (error instanceof TooLong) throw error;
    failToken(draft, token, failureOf(error));
    return;
  }
  draft.noteOf(token, "token.completed");
  draft.end(token);
  for (const id of touched) consider(draft, id);
  release(draft, token.scope);
}

/** Returns the result of a token's node; `undefined` for a node without work. Throws `TokenFailure`. */
function resultOf({ phase }: Token): Json | undefined {
  if (phase.kind !== "resolved") return undefined;
  if ("error" in phase.outcome) throw new TokenFailure(phase.outcome.error);
  return phase.outcome.output;
}

function failToken(draft: Draft, token: Token, error: RunError): void {
  draft.noteOf(token, "token.failed", { error: { ...error } });
  draft.end(token);
  draft.addStopped(token);
  fail(draft, token.scope, error);
}

function writeResult(draft: Draft, token: Token, result: Json | undefined, meter: Meter): void {
  const { outputMapping } = draft.graph.node(token.node);
  const { scope, node } = token;
  if (outputMapping === undefined) {
    if (scope !== null && result !== undefined) draft.setOutput(scope, result);
    return;
  }
  const hasOwner = ownerOf(draft, token) !== undefined;
  const variables = {
    ...nodeVariables(draft, token, meter),
    ...(hasOwner ? { result: result ?? null } : {}),
  };
  const values = evaluatedMapping(outputMapping, variables, meter, `The output of "${node}"`);
  for (const [path, value] of Object.entries(values)) {
    // A mapping into `output` replaces a result that is not an object.
    if (path.startsWith("output.") && !isJsonObject(draft.scope(scope).output)) draft.setOutput(scope, {});
    write(draft, { scope, path, value }, meter);
  }
  if (Object.keys(values).length > 0) draft.noteOf(token, "context.updated", { paths: Object.keys(values) });
}

function ownerOf(draft: Draft, { node }: Token): string | undefined {
  const { task, workflow, agent } = draft.graph.node(node);
  return task ?? workflow ?? agent;
}

/** Follows the transitions that fire. Returns the fan-outs to check for a decided fan-in. */
function follow(draft: Draft, token: Token, meter: Meter): number[] {
  const firing = firingBehind(draft, token, meter);
  draft.steps += firing.reduce((sum, { items }) => sum + items.length, 0);
  for (const { transition, items } of firing)
    draft.noteOf(token, "transition.fired", { transition: transition.ref, tokens: items.length });
  const groups = Map.groupBy(firing, ({ transition }) => transition.siblingGroup ?? null);
  return [...groups].flatMap(([group, own]) =>
    group === null ? own.flatMap((one) => followOne(draft, token, one)) : [fanOut(draft, token, group, own)],
  );
}

function followOne(draft: Draft, token: Token, { transition, items }: Firing): number[] {
  const { scope } = token;
  const arrivesAt = scope !== null && isArrival(draft, scope.fanOut, transition) ? scope : null;
  for (const own of items) {
    if (arrivesAt === null)
      draft.create({
        node: transition.to,
        scope,
        counts: countedWith(token.counts, [transition]),
        items: own,
        fanIn: null,
      });
    else {
      const id = draft.arrive(arrivesAt);
      const data = { transition: transition.ref, fanOut: arrivesAt.fanOut, branch: arrivesAt.branch };
      draft.noteOf({ id, node: transition.to }, "token.waiting", data);
    }
  }
  return arrivesAt === null ? [] : [arrivesAt.fanOut];
}

function isArrival(draft: Draft, fanOut: number, { synchronization }: WorkflowTransition): boolean {
  return synchronization !== undefined && synchronization.siblingGroup === draft.fanOut(fanOut).group;
}
