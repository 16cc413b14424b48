/**
 * Whether a history is one that the runtime may have: what was promised to users against what was recorded, received,
 * shown and done outside. Pure.
 *
 * KILL-1  Every turn on record ends once; it completes, unless it was interrupted more often than allowed. Whoever was
 *         acknowledged has exactly one turn, the one that was named, with the message as sent.
 * KILL-2  A message that nobody acknowledged has at most one turn, and no turn comes from nowhere.
 * KILL-3  A message that was acknowledged before another was sent stands before it; so do the messages of one socket.
 * KILL-4  The journal has no gaps. A connection gets its part of the frames as they are read back, each once and in order,
 *         and a client that comes back continues where it was.
 * KILL-5  The deltas of a message are contiguous, begin anew only after a reset or a new connection, and form a beginning
 *         of the message.
 * KILL-6  Every completed turn says exactly what its script says, the transcript holds that and nothing else, and a text
 *         in progress was never shown but as a beginning of it.
 * KILL-7  A `once` tool is hit at most once an operation, exactly once if it succeeded, and it fails only where it was
 *         interrupted, with its outcome unknown. Other tools succeed; every hit bears the id of the operation on record,
 *         and no two operations have one id.
 * KILL-8  A kill repeats at most one model call of a turn, and one hit of each of its operations.
 * KILL-9  No acknowledged turn waits for somebody to call: none is taken up only when its conversation is read at the end.
 */
import { checkCalls } from "./check/calls.ts";
import { checkConnections } from "./check/connections.ts";
import { recordsOf, type Violation } from "./check/records.ts";
import { checkTexts } from "./check/texts.ts";
import { checkTurns } from "./check/turns.ts";
import type { History, SentMessage } from "./history.ts";

/** What is wrong with a history; nothing, if all is well. */
export function check(history: History): Violation[] {
  const conversations = recordsOf(history);
  const isRead = (message: SentMessage) => conversations.some(({ id }) => id === message.conversation);
  const unread = history.messages.filter((message) => !isRead(message));
  return [
    ...unread.map(({ conversation, script: { key } }) => {
      return { rule: "KILL-1", conversation, what: `what became of ${key} was not read` };
    }),
    ...[checkTurns, checkConnections, checkTexts, checkCalls].flatMap((rules) =>
      conversations.flatMap((conversation) => rules(conversation, history)),
    ),
  ];
}
