/** Checks of messages and tool results against the turns of their conversation, and the answer to an accepted message. */
import { taintMember } from "../../../model/taint.ts";
import { messageId, resolveId, turnId } from "../../../protocol/ids.ts";
import type { StartedTurn } from "../../../protocol/signals.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, invalid, notFound } from "../../../shared/errors.ts";
import { canonicalJson, type Json } from "../../../shared/json.ts";
import { cut } from "../../../shared/text.ts";
import { MAX_QUOTED_LENGTH } from "../core/conversation-limits.ts";
import type { Operation } from "../core/operation.ts";
import type { Replaced } from "../core/replacement.ts";
import type { UserMessage } from "../core/signals.ts";
import type { ConversationIdentity } from "../core/state.ts";
import { taintOfText } from "../core/taints.ts";
import type { RepliedMessage, Turn } from "../core/turn.ts";
import { agentReplies } from "../core/turn-operations.ts";

type TurnOf = (n: number) => Turn | null;

/** Returns the operation with this id. Throws `NOT_FOUND` for any other id. */
export function operationAt(id: string, turnOf: TurnOf): { turn: Turn; operation: Operation } {
  const found = resolveId(id, "op", turnOf);
  const operation = found?.turn.operations.find(({ item }) => item === found.item);
  if (found !== null && operation !== undefined) return { turn: found.turn, operation };
  throw notFound(`This conversation has no operation "${id}".`);
}

/** Returns the message that a message replies to, if any. Throws `INVALID_INPUT` unless the id names a message of the transcript. */
export function repliedMessage(
  id: string | undefined,
  turnOf: TurnOf,
  { agents }: Pick<ConversationIdentity, "agents">,
): RepliedMessage | undefined {
  if (id === undefined) return undefined;
  const found = resolveId(id, "msg", turnOf);
  const quoted = (text: string) => cut(text, MAX_QUOTED_LENGTH);
  if (found?.item === 0) {
    const { caller: by, input } = found.turn;
    const role = by.type === "agent" ? "agent" : "user";
    return { role, by, text: quoted(plainText(input)), ...taintMember(taintOfText(found.turn)) };
  }
  const reply = found && agentReplies(found.turn).find(({ item }) => item === found.item);
  if (reply) {
    const by = { type: "agent", agentId: found.turn.agentId, turnId: turnId(found.turn) } as const;
    const { taint } = reply;
    return {
      role: "agent",
      ...(agents.length === 1 ? {} : { by }),
      text: quoted(reply.text),
      ...defined({ taint }),
    };
  }
  throw invalid(`This conversation has no message "${id}" to reply to.`, {
    errors: [{ path: "/replyToMessageId", message: "Must be the id of a message of this conversation." }],
  });
}

/** Returns the turn that an identical message started. Throws `IDEMPOTENCY_CONFLICT` for a different message. */
export function checkRepeated(turn: Turn | null, { data, replaces }: UserMessage): Turn {
  if (
    turn !== null &&
    turn.regenerates === idOf(replaces, "regenerates") &&
    turn.edits === idOf(replaces, "edits")
  ) {
    // The earlier message was erased, so it cannot be compared.
    if (turn.erased?.includes(0)) return turn;
    const { input: content, replyTo: replyToMessageId, inputTaint } = turn;
    const sent = { ...turn, content, replyToMessageId, untrusted: inputTaint && true };
    if (bodyText(sent) === bodyText(data)) return turn;
  }
  throw keyConflict();
}

function idOf(replaces: Replaced | undefined, kind: Replaced["kind"]): string | undefined {
  return replaces?.kind === kind ? replaces.id : undefined;
}

/** Reports whether a waiting message and another message with its key have the same body. */
export function isSameMessage(waiting: UserMessage, { data }: UserMessage): boolean {
  return bodyText(waiting.data) === bodyText(data);
}

export function keyConflict(): DramatisError {
  return new DramatisError(
    "IDEMPOTENCY_CONFLICT",
    "This idempotency key was used with another body. Use a new key for a new message.",
  );
}

/** The members of a message that its key identifies. */
const BODY = [
  ...["content", "replyToMessageId", "to", "tools", "toolChoice"],
  ...["output", "budget", "maxOutputTokens", "singleCalls", "untrusted"],
] as const;

function bodyText(body: object): string {
  // SAFETY: the members were JSON when they arrived; absent ones become `null`.
  return canonicalJson(BODY.map((member) => Reflect.get(body, member) ?? null) as Json[]);
}

/** Reports whether a turn ended in the commit that started it. */
function neverRan({ status, createdAt, completedAt, calls = [] }: Turn): boolean {
  return status === "failed" && completedAt === createdAt && calls.length === 0;
}

/** Returns the answer to a message that started `turn`, now or before. */
export function startedTurn(turn: Turn, repeated: boolean): StartedTurn {
  return {
    turnId: turnId(turn),
    messageId: messageId(turn, 0),
    from: turn.firstSeq - 1,
    repeated,
    ...(neverRan(turn) ? { status: "failed" } : {}),
  };
}
