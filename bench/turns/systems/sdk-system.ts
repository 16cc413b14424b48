/** Drives a system with an `Agent` of the SDK as its actor. As in the SDK's guide, it finds the actor by name and calls it by RPC. */
import type { Counts, System } from "../protocol.ts";

/** Methods that each measured class adds. */
export interface BenchActor {
  benchTurn(text: string): Promise<string>;
  benchSeed(messages: number): Promise<number>;
  benchCounts(): Promise<Counts>;
}

export function sdkSystem(find: (actor: string) => Promise<BenchActor>): System {
  return {
    turn: async (actor, text) => (await find(actor)).benchTurn(text),
    seed: async (actor, messages) => (await find(actor)).benchSeed(messages),
    counts: async (actor) => (await find(actor)).benchCounts(),
  };
}
