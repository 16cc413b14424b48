/**
 * The steps of tokens: begin a node, write its result, follow its transitions. Pure.
 *
 * STEPS-1  A commit takes a bounded number of steps. The other tokens then wait for the next commit.
 * STEPS-2  A run has at most `MAX_TOKENS` tokens. Beyond that it fails with `RUN_TOO_LONG`. Its written values stay readable.
 * OPENCALLS-1  A run waits for at most `MAX_OPEN_CALLS` sub-workflows and agents at once. A further node fails. So a run can always end.
 * AGENTNODE-3  If no conversation started the run, a node in the mode `loop_in` fails with `INVALID_INPUT`. No agent is asked.
 * STEPS-3  A node without an `outputMapping` makes its result the output of its branch. Outside branches its result is dropped.
 */
import type { WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import type { RunError } from "../../../protocol/workflow-run.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { Meter } from "../../../shared/json-schema/meter.ts";
import { type Draft, TooLong } from "./draft.ts";
import { endRun } from "./end.ts";
import { areas, evaluatedMapping, failureOf, nodeVariables, TokenFailure } from "./evaluation.ts";
import { consider, fail, fanOut, release, write } from "./fan-in.ts";
import { startParts } from "./fan-out-parts.ts";
import { opened } from "./gates.ts";
import { countedWith, type Firing, firingBehind } from "./routing.ts";
import { calledBy, startBytes } from "./run-envelopes.ts";
import {
  MAX_COMMIT_STEPS,
  MAX_INPUT_LENGTH,
  MAX_OPEN_CALLS,
  MAX_START_BYTES,
  MAX_TOKEN_STEPS,
  MAX_TOKENS,
  STEPS_OF_TOKEN,
} from "./run-limits.ts";
import type { Token } from "./state.ts";
import { multiplies, roomOf, shareOf, startsRun } from "./tree-room.ts";
import { workOf } from "./work.ts";

/** Advances all tokens that can take a step. Ends the run if no token or fan-out is left. */
export function advance(draft: Draft): void {
  try {
    const held: Token[] = [];
    while (draft.steps < MAX_COMMIT_STEPS && draft.error === undefined) {
      const next = draft.nextPending();
      const token = next ?? takeHeld(draft, held);
      if (token === undefined) break;
      if (draft.room.isFull && isCall(draft, token)) continue;
      if (draft.work.freeRoom < 1 && startsRun(draft.graph, token)) continue;
      if (next !== undefined && isCrowded(draft) && multiplies(draft.graph, token)) {
        held.push(token);
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
  return active > roomOf(before.record).tokens;
}

/** Returns the next postponed token, after all others. Returns `undefined` while a running task is about to release tokens (TREEROOM-5). */
function takeHeld(draft: Draft, held: Token[]): Token | undefined {
  return draft.work.tasks > 0 && isCrowded(draft) ? undefined : held.shift();
}

function step(draft: Draft, token: Token, meter: Meter): void {
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
  draft.note({ type: "token.completed", token: token.id, node: token.node });
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
  draft.note({ type: "token.failed", token: token.id, node: token.node, data: { error: { ...error } } });
  draft.end(token);
  draft.keep(token);
  fail(draft, token.scope, error);
}

/** Lengths of inputs as JSON. Many tokens may share the input of the run. */
const lengths = new WeakMap<JsonObject, number>();

function lengthOf(input: JsonObject): number {
  const length = lengths.get(input) ?? JSON.stringify(input).length;
  lengths.set(input, length);
  return length;
}

/** Reports whether a token starts a sub-workflow or an agent next. */
function isCall({ graph }: Draft, { phase, node }: Token): boolean {
  return phase.kind === "ready" && graph.calls.has(node);
}

/** Begins the work of a node, if there is room for its start. Returns whether it has any work. Throws `TokenFailure`. */
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
      message: `A run waits for at most ${MAX_OPEN_CALLS} sub-workflows and agents at once. Fan out over fewer.`,
    });
  const attempt = 1 + (token.again?.attempts ?? 0);
  const room =
    workflow === undefined
      ? undefined
      : shareOf(draft.work.freeRoom, draft.tokens.size - draft.work.openRuns - 1);
  const phase = { kind: "working", attempt, ...(gate ?? { input }), ...defined({ room }) } as const;
  if (!hasRoom(draft, { ...token, phase })) return true;
  // The time of an agent counts from here: its token may have waited for room.
  draft.change(token.id, { phase, ...(agent !== undefined && { createdAt: draft.now }) });
  const data = defined({
    input: input === own ? undefined : input,
    attempt: attempt === 1 ? undefined : attempt,
    conversationId: agent === undefined ? undefined : calledBy(draft.before.record, token, attempt),
  });
  draft.note({
    ...{ type: "task.dispatched", token: token.id, node: token.node },
    ...(Object.keys(data).length > 0 && { data }),
  });
  if (gate !== undefined) {
    const { prompt = "", deadline = null } = gate;
    draft.note({ type: "gate.opened", token: token.id, node: token.node, data: { prompt, deadline } });
  }
  return true;
}

/** Reserves outbox room for the start of a token. Returns true if it succeeds, or if the start needs no room. Throws `TokenFailure`. */
function hasRoom(draft: Draft, token: Token): boolean {
  if (!draft.graph.calls.has(token.node)) return true;
  const bytes = startBytes(draft.before.record, token);
  if (bytes > MAX_START_BYTES)
    throw new TokenFailure({
      code: "TOO_LARGE",
      message: `The start of "${token.node}" has ${bytes} bytes as JSON. The maximum is ${MAX_START_BYTES}.`,
    });
  return draft.room.take(bytes);
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
  if (Object.keys(values).length > 0)
    draft.note({ type: "context.updated", token: token.id, node, data: { paths: Object.keys(values) } });
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
    draft.note({
      type: "transition.fired",
      token: token.id,
      node: token.node,
      data: { transition: transition.ref, tokens: items.length },
    });
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
      draft.note({
        type: "token.waiting",
        token: id,
        node: transition.to,
        data: { transition: transition.ref, fanOut: arrivesAt.fanOut, branch: arrivesAt.branch },
      });
    }
  }
  return arrivesAt === null ? [] : [arrivesAt.fanOut];
}

/** Reports whether a transition joins the branches of a fan-out. */
function isArrival(draft: Draft, fanOut: number, { synchronization }: WorkflowTransition): boolean {
  return synchronization !== undefined && synchronization.siblingGroup === draft.fanOut(fanOut).group;
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
