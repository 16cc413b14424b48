/**
 * Erasing an entry of a conversation: the message of a user or an agent, or the call of a tool with its result. Pure.
 *
 * ERASE-1  The content of an erased entry is replaced by a placeholder wherever the conversation has it. Order, numbers, ids, times, usage and
 *          costs stay.
 * ERASE-2  Quotes of an erased message in other turns are erased with it: of replies to it, and of turns that an agent began with it.
 * ERASE-9  A result that arrives after the erasure of its call leaves no note, no record of its task, and no attachment. The conversation
 *          retries the deletion of the attachment.
 */
import { messageId } from "../../../protocol/ids.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import type { Operation } from "./operation.ts";
import type { Reply, Turn } from "./turn.ts";

/** Replaces erased content. */
export const ERASED = "[erased]";

export function isErased({ erased = [] }: Pick<Turn, "erased">, item: number): boolean {
  return erased.includes(item);
}

/** Reports whether an erasure covers a late report: of an erased call, or of a hook of a turn with an erased entry (ERASE-3). */
export function coversReport({ erased = [], operations }: Turn, item: number): boolean {
  if (erased.length === 0) return false;
  return erased.includes(item) || operations.every((operation) => operation.item !== item);
}

/** Returns a turn that is over without the content of an item: 0 for the message that began it, otherwise a reply or an operation. */
export function withoutItem(turn: Turn, item: number): Turn {
  if (isErased(turn, item)) return turn;
  const erased = [...(turn.erased ?? []), item].sort((a, b) => a - b);
  const index = turn.operations.find((operation) => operation.item === item)?.reply;
  return {
    ...turn,
    erased,
    ...(item === 0 ? { input: ERASED, ...erasedError(turn) } : {}),
    replies: turn.replies.map((reply, at) =>
      reply.item === item ? erasedReply(reply) : at === index ? withoutNative(reply) : reply,
    ),
    operations: turn.operations.map((operation) =>
      operation.item === item ? erasedOperation(operation) : operation,
    ),
  };
}

/** Returns another turn without its quotes of an item; the same turn if it has no quote. */
export function withoutQuotes(turn: Turn, erased: { turn: Turn; item: number }): Turn {
  const id = messageId(erased.turn, erased.item);
  const { replied, concurrentNote, ...others } = turn;
  const unquoted: Turn = {
    ...others,
    ...(replied === undefined
      ? {}
      : { replied: turn.replyTo === id ? { ...replied, text: ERASED } : replied }),
    // The note on other turns has the beginnings of their messages.
    ...(concurrentNote === undefined ? {} : { concurrentNote: ERASED }),
  };
  return turn.exchange?.message === id ? withoutItem(unquoted, 0) : unquoted;
}

/** Members of an entry's data with texts that are not content. */
const KEPT = new Set([
  "agentId",
  "by",
  "code",
  "conversationId",
  "expiresAt",
  "name",
  "operationId",
  "outcome",
  "rule",
  "runId",
  "status",
  "target",
  "turnId",
  "type",
  "userId",
]);

/** Returns the data of an entry without its texts. Numbers, and texts that name things, stay. */
export function withoutTexts(data: Json): Json {
  if (typeof data === "string") return ERASED;
  if (Array.isArray(data)) return data.map(withoutTexts);
  if (!isJsonObject(data)) return data;
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => {
      if (name === "input" || name === "modelInput") return [name, {}];
      // The names of origins are no content.
      if (name === "taint") return [name, value];
      return [name, KEPT.has(name) && typeof value === "string" ? value : withoutTexts(value)];
    }),
  );
}

/** Members of a hook's entry that the platform wrote, with the form of their values. All other members may come from the hook. */
const KEPT_OF_HOOK: Readonly<Record<string, (value: Json) => boolean>> = {
  agentId: isText,
  attempt: isNumber,
  code: (value) => isText(value) && /^[A-Z][A-Z0-9_]{0,63}$/.test(value),
  failures: isNumber,
  final: (value) => typeof value === "boolean",
  memoryId: (value) => isText(value) && MEMORY_ID.test(value),
  op: (value) => isText(value) && /^(?:write|update|delete|archive)$/.test(value),
  runId: isText,
  status: (value) => isText(value) && /^(?:applied|unchanged|refused)$/.test(value),
  version: isNumber,
};
const MEMORY_ID = /^mem_[0-9A-Z]{26}$/;

/** Reports whether an entry type has content recorded by a task. Content of a hook's task is erased completely. */
export function isRecorded(type: string): boolean {
  return type === "task.event" || type === "task.metric";
}

/** Returns the data of a hook's entry without content of the hook. Operations keep their kinds, and outcomes keep the ids of memories. */
export function withoutGiven(data: Json): Json {
  if (!isJsonObject(data)) return {};
  return Object.fromEntries(
    Object.entries(data).flatMap(([name, value]) => {
      if (name === "message") return [[name, ERASED]];
      if ((name === "operations" || name === "outcomes") && Array.isArray(value))
        return [[name, value.map(withoutGiven)]];
      return Object.hasOwn(KEPT_OF_HOOK, name) && KEPT_OF_HOOK[name]?.(value) ? [[name, value]] : [];
    }),
  );
}

function isText(value: Json): value is string {
  return typeof value === "string";
}

function isNumber(value: Json): value is number {
  return typeof value === "number";
}

/** The message of an error may quote what it is about. */
function erasedError({ error }: Turn): Pick<Turn, "error"> {
  return error === undefined || error.code === "CANCELLED" ? {} : { error: { ...error, message: ERASED } };
}

function erasedReply({ reasoning: _reasoning, ...reply }: Reply): Reply {
  return { ...withoutNative(reply), text: ERASED };
}

/** The reply in its provider's own format has its text and its calls once more. */
function withoutNative({ native: _native, ...reply }: Reply): Reply {
  return reply;
}

function erasedOperation(operation: Operation): Operation {
  const { invalidArguments: _arguments, task: _task, policy, approval, agent, result, ...others } = operation;
  const { reason: _reason, ...answered } = approval ?? {};
  const { asks: _asks, ...called } = agent ?? {};
  // The reason may quote the input.
  const { reason: _why, ...decided } = policy ?? {};
  return {
    ...others,
    input: {},
    // SAFETY: members are left out of objects that are there.
    ...(approval === undefined ? {} : { approval: answered as NonNullable<Operation["approval"]> }),
    ...(policy === undefined ? {} : { policy: decided as NonNullable<Operation["policy"]> }),
    ...(agent === undefined ? {} : { agent: called as NonNullable<Operation["agent"]> }),
    ...(result === undefined ? {} : { result: erasedResult(result) }),
  };
}

function erasedResult(result: NonNullable<Operation["result"]>): NonNullable<Operation["result"]> {
  const { tool_call_id, success, error } = result;
  if (success) return { tool_call_id, success, result: ERASED };
  return { tool_call_id, success, ...(error === undefined ? {} : { error: { ...error, message: ERASED } }) };
}
