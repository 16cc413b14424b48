/** What the sender of a message is told of its turn, and whether a message is the one that was sent before. */
import type { ToolSpec } from "../../../model/context.ts";
import type { StartedTurn, StartTurn } from "../../../protocol/conversation-api.ts";
import type { Content } from "../../../shared/content.ts";
import { canonicalJson, type Json } from "../../../shared/json.ts";
import { messageId, turnId } from "../core/ids.ts";
import type { UserMessage } from "../core/signals.ts";
import type { Turn } from "../core/state.ts";

/** Whether a message asks for what this turn was started with. */
export function isSameMessage(turn: Turn, { data }: UserMessage): boolean {
  const before = bodyOf(turn.input, turn.replyTo, turn);
  return canonicalJson(before) === canonicalJson(bodyOf(data.content, data.replyToMessageId, data));
}

/** What a client asked for, to be compared. */
function bodyOf(
  content: Content,
  replyTo: string | undefined,
  { tools, toolChoice, output }: Pick<StartTurn, "toolChoice" | "output"> & { tools?: readonly ToolSpec[] },
): Json {
  // SAFETY: all of it was JSON when it came; what is absent becomes `null`.
  return [content, replyTo ?? null, tools ?? null, toolChoice ?? null, output ?? null] as Json;
}

export function startedTurn(turn: Turn, repeated: boolean): StartedTurn {
  return {
    turnId: turnId(turn.stem, turn.n),
    messageId: messageId(turn.stem, turn.n, 0),
    from: turn.firstSeq - 1,
    repeated,
  };
}
