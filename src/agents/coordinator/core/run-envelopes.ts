/**
 * The envelopes that a commit of a run owes, derived from the states around it: none can be decided without being sent. Pure.
 *
 * SUBRUN-1  A node with a sub-workflow starts one run for each of its attempts. What became of it comes back once, as the result of the node.
 * SUBRUN-2  A run that nobody waits for any more is cancelled: its token was cancelled, the run above it has ended, or nobody knows whether
 *           its start has arrived. So is the call of an agent.
 * AGENTNODE-1  A node with an agent asks it for one turn, in a conversation of its own. The answer is the node's result, `{text}`.
 * AGENTNODE-4  In the mode `loop_in` the agent is asked for one turn in the conversation that has started the run. The end of this turn is the
 *              end of the node, and the token of a node that nobody waits for takes it back.
 * RUNUSE-3  The end of a sub-workflow brings what it has used, with all below it, to the run above.
 * SUBRUN-3  A run that another one started tells it its end, once. An output that fits into no envelope is a failure there.
 */
import { callMessage } from "../../../library/agent-tool.ts";
import {
  AGENT_CALL,
  AGENT_CANCEL,
  type AgentCallBody,
  type AgentCancelBody,
  MAX_CALL_BYTES,
  MAX_CALL_LENGTH,
} from "../../../protocol/agent-call.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { calledConversationId, calledRunId } from "../../../protocol/ids.ts";
import {
  MAX_CHILD_OUTPUT_BYTES,
  RUN_CANCEL,
  RUN_ENDED,
  RUN_START,
  type RunCancelBody,
  type RunEndedBody,
  type RunStartBody,
} from "../../../protocol/run-call.ts";
import {
  AGENT_INVITE,
  AGENT_UNINVITE,
  type AgentInviteBody,
  type AgentUninviteBody,
} from "../../../protocol/run-invitation.ts";
import type { RunOrigin } from "../../../protocol/run-origin.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { shortenToJson } from "../../../shared/text.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import type { RunChange } from "./draft.ts";
import { graphOf } from "./graph.ts";
import { AGENT_NODE_MS } from "./limits.ts";
import { operationOf } from "./operations.ts";
import type { RunRecord } from "./record.ts";
import { isOver, type RunState, type Token, type Working } from "./state.ts";
import { workOf } from "./work.ts";

/** An envelope without the id of its own. */
export type RunEnvelope = Omit<NewEnvelope, "operationId">;

/** A token whose node works in another actor. */
interface Started {
  token: Token;
  work: Working;
  kind: "workflow" | "agent";
}

/** Returns the envelopes that a change owes. */
export function runEnvelopes(before: RunState, { state, tokens, entries }: RunChange): RunEnvelope[] {
  const { record } = state;
  const ended = new Set(
    entries.flatMap(({ type, token, data }) =>
      type === "task.completed" || (type === "task.failed" && !isUnknown(data)) ? [token] : [],
    ),
  );
  const envelopes: RunEnvelope[] = [];
  for (const id of tokens) {
    const [known, now] = [startedBy(record, before.tokens.get(id)), startedBy(record, state.tokens.get(id))];
    const isSame = known?.work.attempt === now?.work.attempt;
    if (known !== undefined && !(now !== undefined && isSame) && !ended.has(id))
      envelopes.push(cancellation(record, known, reasonOf(state)));
    if (now !== undefined && !(known !== undefined && isSame)) envelopes.push(start(record, now));
  }
  if (record.parent !== undefined && isOver(state) && !isOver(before))
    envelopes.push(endOf(state, record.parent));
  return envelopes;
}

/** Reports whether what a node has started may go on, although the node has failed. */
function isUnknown(data: Json | undefined): boolean {
  const error = isJsonObject(data) ? data.error : undefined;
  return isJsonObject(error) && error.code === "OUTCOME_UNKNOWN";
}

/** Returns the id of the run that an attempt of a token starts. */
export function childRunId({ id, stem }: RunRecord, token: number, attempt: number): string {
  return calledRunId(operationOf({ stem }, token), attempt, jurisdictionOf(id));
}

/** Returns the id of the conversation in which the agent of a token works. */
export function calledBy(record: RunRecord, { id: token, node }: Token, attempt: number): string {
  const { id, stem } = record;
  const inviting = invitingOrigin(record, node);
  if (inviting !== undefined) return inviting.conversationId;
  return calledConversationId(operationOf({ stem }, token), attempt, jurisdictionOf(id));
}

/** Returns the call to whose conversation a node invites its agent; `undefined` for other nodes. */
function invitingOrigin({ workflow, origin }: RunRecord, ref: string): RunOrigin | undefined {
  return graphOf(workflow.definition).node(ref).mode === "loop_in" ? origin : undefined;
}

function startedBy(record: RunRecord, token: Token | undefined): Started | undefined {
  if (token?.phase.kind !== "working") return undefined;
  const { kind } = workOf(record, token.node) ?? {};
  return kind === "workflow" || kind === "agent" ? { token, work: token.phase, kind } : undefined;
}

function start(record: RunRecord, started: Started): RunEnvelope {
  if (started.kind === "workflow") return toChild<RunStartBody>(record, started, RUN_START, {});
  const { token, work } = started;
  const { agent: agentId = "" } = graphOf(record.workflow.definition).node(token.node);
  const content = shortenToJson(callMessage(work.input), MAX_CALL_BYTES).slice(0, MAX_CALL_LENGTH);
  const path = [...(record.path ?? [])];
  const inviting = invitingOrigin(record, token.node);
  if (inviting !== undefined) {
    const { operationId, attempt } = inviting;
    return toChild<AgentInviteBody>(record, started, AGENT_INVITE, {
      ...{ agentId, node: token.node, content, path },
      rootRunId: record.parent?.rootRunId ?? record.id,
      origin: { operationId, attempt },
    });
  }
  return toChild<AgentCallBody>(record, started, AGENT_CALL, {
    ...{ agentId, content, path },
    caller: { runId: record.id, node: token.node },
    projectIds: [record.projectId],
    readers: [record.startedBy],
    deadline: token.createdAt + AGENT_NODE_MS,
    correlationId: record.id,
  });
}

function cancellation(record: RunRecord, started: Started, reason: string): RunEnvelope {
  if (started.kind === "workflow") return toChild<RunCancelBody>(record, started, RUN_CANCEL, { reason });
  const short = { reason: reason.slice(0, 500) };
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
    kind === "workflow"
      ? { kind: "coordinator", tenant: record.tenant, id: childRunId(record, token.id, attempt) }
      : { kind: "conversation", tenant: record.tenant, id: calledBy(record, token, attempt) };
  const operationId = operationOf(record, token.id);
  // SAFETY: the bodies are plain data.
  return { to, type, body: { operationId, attempt, ...body } as unknown as Json };
}

function reasonOf({ error }: RunState): string {
  return (error?.message ?? "Nobody waits for it any more.").slice(0, 2_000);
}

function endOf(
  { record, output = {}, error, spent }: RunState,
  parent: NonNullable<RunRecord["parent"]>,
): RunEnvelope {
  const { runId, operationId, attempt } = parent;
  const isTooLarge = error === undefined && utf8Length(JSON.stringify(output)) > MAX_CHILD_OUTPUT_BYTES;
  const tooLarge = {
    code: "TOO_LARGE",
    message: `The output of the sub-workflow has more than ${MAX_CHILD_OUTPUT_BYTES} bytes as JSON. Return less, or a reference.`,
  };
  const failure = isTooLarge ? tooLarge : error;
  const outcome: RunEndedBody["outcome"] =
    failure === undefined
      ? { output }
      : { error: { code: failure.code, message: failure.message.slice(0, 20_000) } };
  const body: RunEndedBody = { operationId, attempt, outcome, ...defined({ spent }) };
  // SAFETY: the body is plain data.
  return {
    to: { kind: "coordinator", tenant: record.tenant, id: runId },
    type: RUN_ENDED,
    body: body as unknown as Json,
  };
}
