/**
 * The envelopes of a commit, derived from the states before and after it. So each decision is sent. Pure.
 *
 * SUBRUN-1  A node with a sub-workflow starts one run for each of its attempts. The end of that run returns once, as the result of the
 *           node.
 * SUBRUN-2  A sub-workflow is cancelled if its token was cancelled, the parent run has ended, or the delivery of its start is unknown.
 *           The call of an agent is cancelled for the same reasons.
 * AGENTNODE-1  A node with an agent asks it for one turn, in a conversation of its own. The answer is the node's result, `{text}`.
 * AGENTNODE-4  In the mode `loop_in` the agent is asked for one turn in the conversation that has started the run. The end of this turn is
 *              the end of the node. If the token of the node was cancelled, the request is withdrawn.
 * RUNUSE-3  The end of a sub-workflow reports its use, including all runs and agents below it, to the parent run.
 * PARTRUN-1  The run of a part reports its end to the parent run. Earlier reports have only the facts that the fan-in needs: counts for
 *            `mOfN` and `maxFailures`, the first arrival for a timeout.
 * SUBRUN-3  A run reports its end once to its caller: the parent run, or the conversation of the call. An output that does not fit into an
 *           envelope is a failure in the parent run. A conversation gets an excerpt and reads the whole output.
 */
import { excerptOf } from "../../../attachments/large-result.ts";
import { callMessage } from "../../../library/tools/agent-tool.ts";
import {
  AGENT_CALL,
  AGENT_CANCEL,
  type AgentCallBody,
  type AgentCancelBody,
  MAX_CALL_BYTES,
  MAX_CALL_LENGTH,
} from "../../../protocol/agent-call.ts";
import type { CallAddress } from "../../../protocol/call-address.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { calledConversationId } from "../../../protocol/ids.ts";
import {
  MAX_CHILD_OUTPUT_BYTES,
  PART_CLOSE,
  PART_ENDED,
  PART_PROGRESS,
  type PartEndedBody,
  type PartProgressBody,
  RUN_CANCEL,
  RUN_ENDED,
  RUN_START,
  RUN_WAITS,
  type RunCancelBody,
  type RunEndedBody,
  type RunWaitsBody,
  type Wait,
} from "../../../protocol/run-call.ts";
import {
  AGENT_INVITE,
  AGENT_UNINVITE,
  type AgentInviteBody,
  type AgentUninviteBody,
} from "../../../protocol/run-invitation.ts";
import type { RunOrigin } from "../../../protocol/run-origin.ts";
import { workspaceOf } from "../../../protocol/workspace.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { cut, shortenToJson } from "../../../shared/text.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import type { RunChange } from "./draft.ts";
import { graphOf } from "./graph.ts";
import { waitsForPerson } from "./holds.ts";
import { childRunId, operationOf } from "./operations.ts";
import { progressOf } from "./part-run.ts";
import { type RunCaller, type RunRecord, runCaller, runWorkspace } from "./record.ts";
import { ADDRESSING_BYTES, AGENT_NODE_MS } from "./run-limits.ts";
import { isOver, type RunState, type Token, type Working } from "./state.ts";
import { nodeTrail } from "./trace.ts";
import { isAtRest } from "./tree-share.ts";
import { workOf } from "./work.ts";

/** An envelope without the id of its own. */
export type RunEnvelope = Omit<NewEnvelope, "operationId">;

interface Started {
  token: Token;
  work: Working;
  kind: "workflow" | "agent" | "part";
}

export function runEnvelopes(
  before: RunState,
  { state, tokens, fanOuts, entries }: RunChange,
): RunEnvelope[] {
  const { record } = state;
  const ended = new Set(
    entries.flatMap(({ type, token, data }) =>
      type === "task.completed" || (type === "task.failed" && !isUnknown(data)) ? [token] : [],
    ),
  );
  const envelopes = closings(before, state, fanOuts);
  for (const id of tokens) {
    const [known, now] = [startedBy(record, before.tokens.get(id)), startedBy(record, state.tokens.get(id))];
    const isSame = known?.work.attempt === now?.work.attempt;
    if (known !== undefined && !(now !== undefined && isSame) && !ended.has(id))
      envelopes.push(cancellation(record, known, reasonOf(state)));
    if (now !== undefined && !(known !== undefined && isSame)) envelopes.push(start(record, now));
  }
  const caller = runCaller(record);
  if (caller === undefined || isOver(before)) return envelopes;
  if (isOver(state)) return [...envelopes, endOf(state, caller)];
  if (record.part !== undefined) envelopes.push(...progress(before, state, caller));
  const [known, wait] = [waitOf(before), waitOf(state)];
  if (wait.isHeld !== known.isHeld || wait.isAtRest !== known.isAtRest)
    envelopes.push(toCaller<RunWaitsBody>(record, caller, RUN_WAITS, { ...wait, seq: state.seq }));
  return envelopes;
}

/** Returns the requests to close parts, for fan-outs that begin to close or close again. */
function closings(before: RunState, state: RunState, fanOuts: ReadonlySet<number>): RunEnvelope[] {
  const closing = new Set(
    [...fanOuts].filter((id) => {
      const now = state.fanOuts.get(id)?.spread?.closing;
      return now !== undefined && now !== before.fanOuts.get(id)?.spread?.closing;
    }),
  );
  if (closing.size === 0) return [];
  return [...state.tokens.values()].flatMap((token) => {
    const started = startedBy(state.record, token);
    return started?.kind === "part" && closing.has(token.scope?.fanOut ?? -1)
      ? [toChild<CallAddress>(state.record, started, PART_CLOSE, {})]
      : [];
  });
}

/** The fan-out with the branches of this part. */
const OWN = 0;

function progress(before: RunState, { record, fanOuts }: RunState, caller: RunCaller): RunEnvelope[] {
  const now = fanOuts.get(OWN);
  const meeting = now ? graphOf(record.workflow.definition).meeting(now.origin, now.group) : null;
  const news = progressOf(before.fanOuts.get(OWN), now, meeting);
  return news === undefined ? [] : [toCaller<PartProgressBody>(record, caller, PART_PROGRESS, news)];
}

/** Returns the wait of a run for its caller. `isAtRest` is left out for a conversation, because conversations have no share. */
function waitOf(state: RunState): Omit<Wait, "seq"> {
  const rests = state.record.parent !== undefined && isAtRest(state);
  return { isHeld: waitsForPerson(state), ...(rests && { isAtRest: true }) };
}

function toCaller<Body extends CallAddress>(
  { tenant }: RunRecord,
  { kind, id, operationId, attempt }: RunCaller,
  type: string,
  body: Omit<Body, keyof CallAddress>,
): RunEnvelope {
  // SAFETY: the bodies are plain data.
  return {
    to: { kind, tenant, id },
    type,
    body: { operationId, attempt, ...body } as unknown as Json,
  };
}

/** Reports whether the work of a failed node may still run in another actor. */
function isUnknown(data: Json | undefined): boolean {
  const error = isJsonObject(data) ? data.error : undefined;
  return isJsonObject(error) && error.code === "OUTCOME_UNKNOWN";
}

export function calledBy(record: RunRecord, { id: token, node }: Token, attempt: number): string {
  const { id, stem } = record;
  const inviting = invitingOrigin(record, node);
  if (inviting !== undefined) return inviting.conversationId;
  return calledConversationId(operationOf({ stem }, token), attempt, jurisdictionOf(id));
}

/** Returns the call with the conversation that a node invites its agent into; `undefined` for other nodes. */
function invitingOrigin({ workflow, origin }: RunRecord, ref: string): RunOrigin | undefined {
  return graphOf(workflow.definition).node(ref).mode === "loop_in" ? origin : undefined;
}

/** Types of envelopes that begin work in another actor. */
const STARTS: ReadonlySet<string> = new Set([RUN_START, AGENT_CALL, AGENT_INVITE]);

export function beginsWork({ type }: Pick<RunEnvelope, "type">): boolean {
  return STARTS.has(type);
}

/** Returns the JSON length in bytes of the envelope that starts the work of a token; 0 if it needs no envelope. */
export function startBytes(record: RunRecord, token: Token): number {
  const started = startedBy(record, token);
  return started === undefined ? 0 : utf8Length(JSON.stringify(start(record, started))) + ADDRESSING_BYTES;
}

function startedBy(record: RunRecord, token: Token | undefined): Started | undefined {
  if (token?.phase.kind !== "working") return undefined;
  const { kind } = workOf(record, token) ?? {};
  return kind === "workflow" || kind === "agent" || kind === "part"
    ? { token, work: token.phase, kind }
    : undefined;
}

function start(record: RunRecord, started: Started): RunEnvelope {
  if (started.kind !== "agent") return toChild<CallAddress>(record, started, RUN_START, {});
  const { token, work } = started;
  const { agent: agentId = "", timeoutMs = AGENT_NODE_MS } = graphOf(record.workflow.definition).node(
    token.node,
  );
  const content = cut(shortenToJson(callMessage(work.input), MAX_CALL_BYTES), MAX_CALL_LENGTH);
  const path = [...(record.path ?? [])];
  const inviting = invitingOrigin(record, token.node);
  if (inviting !== undefined) {
    const { operationId, attempt } = inviting;
    return toChild<AgentInviteBody>(record, started, AGENT_INVITE, {
      ...{ agentId, node: token.node, content, path },
      rootRunId: record.parent?.rootRunId ?? record.id,
      origin: { operationId, attempt },
      ...nodeTrail(record, token),
    });
  }
  return toChild<AgentCallBody>(record, started, AGENT_CALL, {
    ...{ agentId, content, path },
    caller: { runId: record.id, node: token.node },
    projectIds: [record.projectId],
    readers: [record.startedBy],
    requester: record.startedBy,
    deadline: token.createdAt + timeoutMs,
    workspace: workspaceOf({ runId: record.id, workspace: runWorkspace(record) }),
    ...nodeTrail(record, token),
  });
}

function cancellation(record: RunRecord, started: Started, reason: string): RunEnvelope {
  if (started.kind !== "agent") return toChild<RunCancelBody>(record, started, RUN_CANCEL, { reason });
  const short = { reason: cut(reason, 500) };
  return invitingOrigin(record, started.token.node) === undefined
    ? toChild<AgentCancelBody>(record, started, AGENT_CANCEL, short)
    : toChild<AgentUninviteBody>(record, started, AGENT_UNINVITE, short);
}

function toChild<Body extends object>(
  record: RunRecord,
  { token, work: { attempt }, kind }: Started,
  type: string,
  body: Omit<Body, "operationId" | "attempt">,
): RunEnvelope {
  const to =
    kind === "agent"
      ? { kind: "conversation", tenant: record.tenant, id: calledBy(record, token, attempt) }
      : { kind: "coordinator", tenant: record.tenant, id: childRunId(record, token.id, attempt) };
  const operationId = operationOf(record, token.id);
  // SAFETY: the bodies are plain data.
  return { to, type, body: { operationId, attempt, ...body } as unknown as Json };
}

function reasonOf({ error }: RunState): string {
  return cut(error?.message ?? "Its caller no longer waits for it.", 2_000);
}

function endOf(
  { record, status, output = {}, error, spent, tainted }: RunState,
  caller: RunCaller,
): RunEnvelope {
  if (record.part !== undefined && error === undefined)
    return toCaller<PartEndedBody>(record, caller, PART_ENDED, defined({ spent, tainted }));
  const text = error === undefined ? JSON.stringify(output) : "";
  const isTooLarge = utf8Length(text) > MAX_CHILD_OUTPUT_BYTES;
  const tooLarge = {
    code: "TOO_LARGE",
    message: `The output of the run "${record.id}" has more than ${MAX_CHILD_OUTPUT_BYTES} bytes as JSON. Return less, or a reference. The run itself has completed.`,
  };
  const failure = isTooLarge ? tooLarge : error;
  const outcome: RunEndedBody["outcome"] =
    failure === undefined
      ? { output }
      : { error: { code: failure.code, message: cut(failure.message, 20_000) } };
  return toCaller<RunEndedBody>(record, caller, RUN_ENDED, {
    outcome,
    ...(isTooLarge && caller.kind === "conversation" ? { large: excerptOf(text) } : {}),
    ...(status === "failed" || status === "cancelled" || status === "timed_out" ? { status } : {}),
    ...defined({ spent, tainted }),
  });
}
