/**
 * Runs one turn from its beginning to its end, whatever fails on the way.
 *
 * ENGINE-6  A turn whose signal aborts, or whose reader leaves, is cancelled, even if its provider does not listen.
 */
import type { ChunkEvent } from "./chat-call.ts";
import { cancelledError } from "./failures.ts";
import { type EnginePorts, type RunTurn, TurnRun } from "./turn-run.ts";
import type { ConversationTurn } from "./types.ts";

/** What a streamed turn gives: chunks, then the turn. */
export type TurnEvent = ChunkEvent | { type: "turn"; turn: ConversationTurn };

/** Runs a turn: yields chunks where it is streamed, returns the turn that succeeded, throws why one did not. */
export async function* runTurnEvents(
  ports: EnginePorts,
  options: RunTurn,
  { streaming }: { streaming: boolean },
): AsyncGenerator<ChunkEvent, ConversationTurn> {
  const run = await TurnRun.begin(ports, options);
  const left = new AbortController();
  const signal = options.signal === undefined ? left.signal : AbortSignal.any([options.signal, left.signal]);
  let isOver = false;
  try {
    signal.throwIfAborted();
    const turn = await run.succeed(yield* run.call({ streaming, signal }));
    isOver = true;
    return turn;
  } catch (error) {
    isOver = true;
    await run.fail(error, signal.aborted);
    throw signal.aborted ? signal.reason : error;
  } finally {
    if (!isOver) {
      left.abort(cancelledError());
      await run.fail(left.signal.reason, true);
    }
  }
}
