/** The exchange between a run and the runs that it starts. Pure. */
import type { CallAddress } from "../../../protocol/call-address.ts";
import type { ChildRun, PartResult } from "../../../protocol/run-call.ts";
import type { RunOrigin } from "../../../protocol/run-origin.ts";
import { defined } from "../../../shared/defined.ts";
import { type DramatisError, notFound, unwrap } from "../../../shared/errors.ts";
import { Draft } from "./draft.ts";
import { failureOf } from "./evaluation.ts";
import { partStart } from "./fan-out.ts";
import { runCaller } from "./record.ts";
import type { RunState, Token } from "./state.ts";
import { nodeTrail } from "./trace.ts";
import { treeShareBelow, treeShareOf } from "./tree-share.ts";

/**
 * Returns the start of the run of an attempt: its sub-workflow, or its part of a fan-out. Throws `NOT_FOUND` if the attempt no longer waits
 * for a run, and `TOO_LARGE` or `INVALID_INPUT` for a part that cannot begin.
 */
export function childRunOf(state: RunState, id: number, attempt: number): ChildRun {
  const { record } = state;
  const token = state.tokens.get(id);
  if (token?.phase.kind !== "working" || token.phase.attempt !== attempt) throw notWanted();
  const { projectId, startedBy, parent, path = [], width } = record;
  const shared = {
    ...{ projectId, startedBy, rootRunId: parent?.rootRunId ?? record.id },
    ...nodeTrail(record, token),
    share: treeShareBelow(treeShareOf(record), token.phase.share ?? 1),
    ...defined({ origin: originOf(state), width, path: path.length === 0 ? undefined : [...path] }),
  };
  if (token.part === true) return { ...shared, workflow: record.workflow, ...startOf(state, token) };
  const { workflows } = record.workflow;
  const workflow = Object.hasOwn(workflows, token.node) ? workflows[token.node] : undefined;
  if (workflow === undefined) throw notWanted();
  return { ...shared, workflow, input: token.phase.input };
}

/** Returns the call that the tasks of a run work for. If the run is tainted, its writes to memory are tainted too (MEMTOOL-6). */
export function originOf({
  record: { origin },
  tainted,
}: Pick<RunState, "record" | "tainted">): RunOrigin | undefined {
  return origin?.memory === undefined || tainted !== true
    ? origin
    : { ...origin, memory: { ...origin.memory, tainted } };
}

function startOf(state: RunState, token: Token): Pick<ChildRun, "part" | "input"> {
  try {
    return partStart(new Draft(state, 0), token);
  } catch (error) {
    return unwrap<never>({ ok: false, error: { ...failureOf(error), retriable: false } });
  }
}

function notWanted(): DramatisError {
  return notFound("The parent run no longer waits for a run of this attempt.");
}

/** Returns the JSON of the output of a run for an operation of its caller, as UTF-8. Throws `NOT_FOUND`. */
export function wholeOutput({ record, output }: RunState, { operationId, attempt }: CallAddress): Uint8Array {
  const caller = runCaller(record);
  if (output === undefined || caller?.operationId !== operationId || caller.attempt !== attempt)
    throw notFound("The run has no output for this operation.");
  return new TextEncoder().encode(JSON.stringify(output));
}

/** Returns the result of the part that a run has for an operation of the parent run. Throws `NOT_FOUND`. */
export function partResultOf(
  { record: { part, parent }, output }: RunState,
  { operationId, attempt }: CallAddress,
): PartResult {
  if (
    part === undefined ||
    output === undefined ||
    parent?.operationId !== operationId ||
    parent.attempt !== attempt
  )
    throw notFound("The run has completed no part of this operation.");
  // SAFETY: the output of a run with a part is its result.
  return output as unknown as PartResult;
}
