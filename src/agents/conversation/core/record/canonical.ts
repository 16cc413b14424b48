/**
 * The canonical form of journal entries. Pure.
 *
 * CANON-1  Each entry is one event, by the first rule that fits: `message.user` is `conv.in.message.received`. A `message.completed` of the
 *          transcript is `conv.out.assistant.completed`. A type `tool.…` is `conv.out.tool.status`. Any other entry is
 *          `conv.audit.policy.decision_recorded`.
 * CANON-2  The text of a completed message precedes its event, as `conv.out.assistant.delta` in pieces of at most 280 characters.
 * CANON-3  The data have the required keys of their stream: `message_id` and `ingress`, `output_id` and `channel`, or `audit_id` and
 *          `category`. `contract_major` is 1, and the subject is `project/<id>/conversation/<id>`.
 */
import { messageId, operationId, turnId } from "../../../../protocol/ids.ts";
import type { CanonicalEvent } from "../../../../protocol/projection-schemas.ts";
import type { Content } from "../../../../shared/content.ts";
import { defined } from "../../../../shared/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../../shared/json.ts";
import { redactSecrets, withoutSecrets } from "../../../../shared/redact.ts";
import { cut } from "../../../../shared/text.ts";
import { toIso } from "../../../../shared/time.ts";
import { correlationOf } from "../correlation.ts";
import type { TurnLookup } from "../frames.ts";
import type { ConversationIdentity } from "../state.ts";
import type { Turn } from "../turn.ts";
import { idsOf, isInterim } from "../view-members.ts";
import type { Numbered } from "./fold.ts";

/** Characters of a piece of a message. */
const MAX_DELTA_LENGTH = 280;

interface Place {
  readonly record: Pick<ConversationIdentity, "id" | "projectId">;
  readonly turnOf: TurnLookup;
}

/** Returns the events of an entry: the pieces of its message, then its event. */
export function canonicalEvents(numbered: Numbered, { record, turnOf }: Place): CanonicalEvent[] {
  const { entry, seq, at } = numbered;
  const turn = entry.turn === undefined ? undefined : turnOf(entry.turn);
  const event = (id: string, type: CanonicalEvent["type"], data: JsonObject): CanonicalEvent => ({
    ...{ specversion: "1.0", id, type, subject: subjectOf(record), time: toIso(at), data },
    extensions: {
      contract_major: 1,
      ...defined({ correlation_id: turn === undefined ? correlationIn(entry.data) : correlationOf(turn) }),
    },
  });
  const item = entry.item ?? 0;
  if (turn === undefined) return [event(`${seq}`, ...audited(numbered, undefined))];
  if (entry.type !== "message.completed") return [event(`${seq}`, ...mapped(numbered, turn))];
  const output = { output_id: messageId(turn, item), channel: "assistant" };
  const reply = turn.replies.find((candidate) => candidate.item === item);
  const text = redactSecrets(reply?.text ?? "");
  const deltas = piecesOf(text).map((delta, index) =>
    event(`${seq}.${index + 1}`, "conv.out.assistant.delta", { ...output, index, delta }),
  );
  if (isInterim(entry.data)) return [...deltas, event(`${seq}`, ...audited(numbered, turn))];
  const { stopped, notice } = reply ?? {};
  const data = { ...output, content: text, agent_id: turn.agentId, ...defined({ stopped, notice }) };
  return [...deltas, event(`${seq}`, "conv.out.assistant.completed", data)];
}

export function subjectOf({ projectId, id }: Place["record"]): string {
  return `project/${encodeURIComponent(projectId)}/conversation/${encodeURIComponent(id)}`;
}

/** Returns a text in pieces of at most `MAX_DELTA_LENGTH`. They do not split surrogate pairs. */
export function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  for (let rest = text.toWellFormed(); rest !== ""; ) {
    const next = cut(rest, MAX_DELTA_LENGTH);
    pieces.push(next);
    rest = rest.slice(next.length);
  }
  return pieces;
}

type Mapped = [type: CanonicalEvent["type"], data: JsonObject];

function mapped(numbered: Numbered, turn: Turn): Mapped {
  const { type } = numbered.entry;
  if (type === "message.user") return ["conv.in.message.received", received(turn)];
  if (type.startsWith("tool.")) return ["conv.out.tool.status", toolStatus(numbered, turn)];
  return audited(numbered, turn);
}

function received(turn: Turn): JsonObject {
  const { caller, input, clientId } = turn;
  const data = { message_id: messageId(turn, 0), ingress: caller.type, turn_id: turnId(turn) };
  return { ...data, ...defined({ client_id: clientId }), content: contentOf(input) };
}

function contentOf(content: Content): Json {
  // SAFETY: content is plain data.
  return withoutSecrets(content as unknown as Json);
}

/** The state of a call by the type of its entry. Other types have their own last part. */
const STATUS: Readonly<Record<string, string>> = { "tool.call.failed": "retrying" };

function toolStatus({ entry: { type, item = 0 } }: Numbered, turn: Turn): JsonObject {
  const operation = turn.operations.find((candidate) => candidate.item === item);
  const status = STATUS[type] ?? type.slice("tool.".length);
  const { name, toolCallId, result } = operation ?? {};
  const outcome = /^(?:completed|failed|cancelled)$/.test(status) ? result : undefined;
  const { code, message } = outcome?.error ?? {};
  return {
    ...{ output_id: operationId(turn, item), channel: "tool", status, turn_id: turnId(turn) },
    ...defined({ name, tool_call_id: toolCallId }),
    ...(outcome?.success ? { result: withoutSecrets(outcome.result ?? null) } : {}),
    ...(code === undefined ? {} : { error: { code, message: redactSecrets(message ?? "") } }),
  };
}

function audited({ entry, seq }: Numbered, turn: Turn | undefined): Mapped {
  const { type, data } = entry;
  const ids: Ids = turn === undefined ? {} : idsOf(entry, turn);
  const metadata = {
    ...defined({ turn_id: ids.turnId, message_id: ids.messageId, operation_id: ids.operationId }),
    ...(data === undefined ? {} : { data: withoutSecrets(data) }),
  };
  const audit = { audit_id: `${seq}`, category: "conversation.signal", event_type: type, metadata };
  return ["conv.audit.policy.decision_recorded", audit];
}

interface Ids {
  turnId?: string;
  messageId?: string;
  operationId?: string;
}

function correlationIn(data: Json | undefined): string | undefined {
  const id = isJsonObject(data) ? data.correlationId : undefined;
  return typeof id === "string" ? id : undefined;
}
