/**
 * Projections of a fold, with content from the rows of turns. Pure.
 *
 * PROJ-3  A projection contains no secrets: members with names of secrets and texts that look like keys are removed, in messages too.
 * PROJ-4  The same fold and the same turns give the same bytes.
 */
import type { JournalEntryView } from "../../../protocol/conversation-schemas.ts";
import { messageId, operationId, turnId } from "../../../protocol/ids.ts";
import type {
  CanonicalEvent,
  PendingToolCall,
  Projection,
  SubAgentStatus,
} from "../../../protocol/projection-schemas.ts";
import type { Content } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { withoutSecrets } from "../../../shared/redact.ts";
import { toIso } from "../../../shared/time.ts";
import { DRAIN_STEP, MAX_QUEUED_SIGNALS } from "../core/conversation-limits.ts";
import { correlationOf } from "../core/correlation.ts";
import { framesOf, type TurnLookup } from "../core/frames.ts";
import type { JournalEntry } from "../core/journal-entry.ts";
import { canonicalEvents, subjectOf } from "../core/record/canonical.ts";
import { isMessage, isMessageOrTool } from "../core/record/context.ts";
import type { Fold, Numbered, Place } from "../core/record/fold.ts";
import type { ConversationIdentity } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import { agentMember } from "../core/view-members.ts";
import { journalEntryView, messageView, operationView } from "./views.ts";

/** The fold of a conversation, and its turns with their content. */
export interface ProjectionInput {
  readonly record: ConversationIdentity;
  readonly fold: Fold;
  readonly turnOf: TurnLookup;
}

/** The input of a projection that is no list. */
export interface WholeInput extends ProjectionInput {
  /** Returns the newest places of the journal that a context shows, ascending. */
  readonly newest: (isShown: (entry: JournalEntry) => boolean) => readonly Place[];
}

export type WholeProjection = Exclude<Projection, { name: "timeline" | "canonical_timeline" }>;

type Whole<Name extends WholeProjection["name"]> = Extract<WholeProjection, { name: Name }>;

/** The projections that are no lists. */
export const WHOLE: { readonly [Name in WholeProjection["name"]]: (input: WholeInput) => Whole<Name> } = {
  llm_context(input) {
    const { record, fold, turnOf, newest } = input;
    // The newest messages come first, because a limited look-up may lack the turns of the oldest.
    const messages = newest(isMessage)
      .toReversed()
      .flatMap((place) => contextMessages(place, turnOf));
    return {
      ...base("llm_context", input),
      projectId: record.projectId,
      status: gateOf(fold),
      eventCount: fold.seq,
      messages: messages.reverse(),
      pendingToolCalls: pendingCalls(input),
    };
  },

  diagnostics(input) {
    const { fold } = input;
    const { seq, status, counts, active, queued, pending, subAgents, lastType } = fold;
    return {
      ...base("diagnostics", input),
      status: gateOf(fold),
      conversationStatus: status,
      eventCount: seq,
      eventCounts: Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))),
      turnCount: counts["turn.started"] ?? 0,
      activeTurnCount: active.length,
      queueSize: queued,
      pendingToolCallCount: pending.length,
      pendingSubagentCount: subAgents.length,
      lastEventType: lastType,
      drainIteration: counts["conversation.queue.drained"] ?? 0,
      maxQueueSize: MAX_QUEUED_SIGNALS,
      maxDrainSteps: DRAIN_STEP,
    };
  },

  subagent_status(input) {
    const { fold } = input;
    const { subAgents, stopped, stoppedCount } = fold;
    return {
      ...base("subagent_status", input),
      active: subAgents.flatMap((place) => subAgentStatus(place, input)),
      completed: stopped.flatMap((place) => subAgentStatus(place, input)),
      count: subAgents.length + stoppedCount,
      activeCount: subAgents.length,
      completedCount: stoppedCount,
    };
  },

  canonical_llm_context(input) {
    const { record, fold, turnOf, newest } = input;
    const messages = newest(isMessageOrTool)
      .toReversed()
      .flatMap((place) => {
        const [event] = canonicalEvents({ ...place, entry: place }, { record, turnOf }).slice(-1);
        const role = event && ROLES[event.type];
        return event === undefined || role === undefined ? [] : [{ role, seq: place.seq, data: event.data }];
      });
    const subject = subjectOf(record);
    const status = gateOf(fold);
    return { ...base("canonical_llm_context", input), subject, status, messages: messages.reverse() };
  },

  pending_tool_calls: (input) => ({ ...base("pending_tool_calls", input), calls: pendingCalls(input) }),
};

const ROLES: Readonly<Partial<Record<CanonicalEvent["type"], "user" | "assistant" | "tool">>> = {
  "conv.in.message.received": "user",
  "conv.out.assistant.completed": "assistant",
  "conv.out.tool.status": "tool",
};

export function base<Name extends Projection["name"]>(name: Name, { record, fold }: ProjectionInput) {
  return { name, conversationId: record.id, seq: fold.seq };
}

/** Returns an entry of the timeline: a journal entry with the content of its frame, if it has a frame. */
export function timelineEntry(
  { entry, seq, at }: Numbered,
  { record, turnOf }: Pick<ProjectionInput, "record" | "turnOf">,
): JournalEntryView {
  const turn = entry.turn === undefined ? undefined : turnOf(entry.turn);
  const { data: own, ...view } = journalEntryView(entry, seq, at, turn);
  const [frame] = framesOf({ seq, at, entries: [entry] }, 0, record, turnOf);
  // SAFETY: frames and entries have plain data.
  const data = joined(own as Json | undefined, frame?.data as Json | undefined);
  return { ...view, ...defined({ data: data === undefined ? undefined : withoutSecrets(data) }) };
}

/** Joins the data of an entry with the data of its frame, which have the content. */
function joined(own: Json | undefined, shown: Json | undefined): Json | undefined {
  return isJsonObject(own) && isJsonObject(shown) ? { ...own, ...shown } : (shown ?? own);
}

function gateOf({ isStopped, active }: Fold): "idle" | "running" | "cancelled" {
  if (isStopped) return "cancelled";
  return active.length > 0 ? "running" : "idle";
}

function contextMessages({ turn: n, item, at }: Place, turnOf: TurnLookup) {
  const turn = turnOf(n);
  const view = turn && messageView(turn, item, at);
  if (!view || isBlank(view.content)) return [];
  const ids = { messageId: messageId(turn, item), turnId: turnId(turn) };
  // SAFETY: content is plain data, and keeps its shape without secrets.
  return [{ role: view.role, ...ids, content: withoutSecrets(view.content as Json) as Content }];
}

function isBlank(content: Content): boolean {
  return typeof content === "string" && content.trim() === "";
}

function pendingCalls({ record, fold, turnOf }: ProjectionInput): PendingToolCall[] {
  return fold.pending.flatMap((place) => {
    const found = operationAt(place, turnOf);
    if (found === undefined) return [];
    const { id, turnId, name, state, input, async } = operationView(record, found.turn, found.operation);
    const shown = withoutSecrets(input as PendingToolCall["input"] & Json);
    const requestedAt = toIso(place.at);
    return [{ operationId: id, turnId, name, state, input: shown, ...defined({ async }), requestedAt }];
  });
}

function subAgentStatus(place: Place, { record, turnOf }: ProjectionInput): SubAgentStatus[] {
  const found = operationAt(place, turnOf);
  if (found === undefined) return [];
  const { turn, operation } = found;
  const { state, error } = operationView(record, turn, operation);
  const { agent } = agentMember(turn, operation);
  const { template, id: agentId, conversationId } = agent ?? {};
  return [
    {
      ...{ operationId: operationId(turn, place.item), turnId: turnId(turn) },
      ...defined({ template, agentId, conversationId, code: error?.code }),
      ...{ correlationId: correlationOf(turn), state, time: toIso(place.at) },
    },
  ];
}

function operationAt({ turn: n, item }: Place, turnOf: TurnLookup) {
  const turn: Turn | undefined = turnOf(n);
  const operation = turn?.operations.find((candidate) => candidate.item === item);
  return turn === undefined || operation === undefined ? undefined : { turn, operation };
}
