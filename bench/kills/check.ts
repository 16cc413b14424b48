/**
 * Checks a history against the runtime's promises: the sent messages against the recorded, received, displayed and
 * executed facts. Pure.
 *
 * KILL-1  Every recorded turn ends once. It completes, unless it was interrupted more often than allowed. An
 *         acknowledged message has exactly one turn, with the acknowledged id and the sent content.
 * KILL-2  A message without acknowledgement has at most one turn. Every turn answers a message.
 * KILL-3  If a message was acknowledged before another message was sent, it is first. Messages of one socket keep their order.
 * KILL-4  The journal has no gaps. A connection receives its part of the frames once and in order, equal to the frames
 *         read back. A reconnected client continues at its position.
 * KILL-5  The deltas of a message are contiguous, restart only after a reset or a new connection, and form a prefix of
 *         the message.
 * KILL-6  Every completed turn has exactly the texts of its script. The transcript contains only these texts. A displayed
 *         partial text is a prefix of one of them.
 * KILL-7  A `once` tool is hit at most once per operation, and exactly once if it succeeded. It fails only when
 *         interrupted, with an unknown outcome. Other tools succeed. Every hit has the id of its recorded operation,
 *         and no two operations share an id.
 * KILL-8  A kill repeats at most one model call of a turn, and one hit of each of its operations. A new call after a new
 *         message of the user is not a repetition.
 * KILL-9  Acknowledged turns continue without a caller. The final read of a conversation never has to resume a turn.
 * KILL-10 A turn with an acknowledged stop ends stopped, with the shown part of its texts. No other turn ends stopped.
 * KILL-11 A compaction ends once, after at most three attempts, with a summary of the model. A request has each earlier message
 *         once: in full, or in its summary.
 */
import { checkCalls } from "./check/calls.ts";
import { checkCompactions } from "./check/compactions.ts";
import { checkConnections } from "./check/connections.ts";
import { recordsOf, type Violation } from "./check/records.ts";
import { checkTexts } from "./check/texts.ts";
import { checkTurns } from "./check/turns.ts";
import type { History, SentMessage } from "./history.ts";

/** Returns the violations of a history. */
export function check(history: History): Violation[] {
  const conversations = recordsOf(history);
  const isRead = (message: SentMessage) => conversations.some(({ id }) => id === message.conversation);
  const unread = history.messages.filter((message) => !isRead(message));
  return [
    ...unread.map(({ conversation, script: { key } }) => {
      return { rule: "KILL-1", conversation, what: `the final state of ${key} was not read` };
    }),
    ...[checkTurns, checkConnections, checkTexts, checkCalls, checkCompactions].flatMap((rules) =>
      conversations.flatMap((conversation) => rules(conversation, history)),
    ),
  ];
}
