/** The context of a conversation that sends nothing, runs no workflows, and finds no memories. */
import type { RuntimeContext } from "../../src/agents/conversation/context.ts";
import type { RuntimeContext as RunContext } from "../../src/agents/coordinator/context.ts";
import { AMPLE } from "../../src/agents/coordinator/core/start-room.ts";
import { DramatisError } from "../../src/shared/errors.ts";

const unknown = async (_: unknown, id: string): Promise<never> => {
  throw new DramatisError("NOT_FOUND", `There is no agent "${id}".`);
};

export const noMail: Pick<
  RuntimeContext,
  | ("send" | "withdraw" | "discard" | "room" | "listing" | "approvals" | "onUsage")
  | ("agent" | "run" | "invite" | "waitUntil" | "resultStores")
> = {
  send: async () => undefined,
  withdraw: () => undefined,
  discard: () => undefined,
  room: () => ({ envelopes: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }),
  listing: { announce: () => [], note: async () => undefined },
  approvals: { note: async () => undefined, publish: async () => undefined },
  onUsage: () => undefined,
  agent: async () => ({
    offerMemories: async () => ({ ok: true, value: [] }),
    searchMemories: async () => ({ ok: true, value: { matches: [], semantic: "none" } }),
  }),
  run: unknown,
  invite: unknown,
  waitUntil: () => undefined,
  resultStores: {
    keeper: { keep: async () => ({ lost: "this conversation stores no results." }) },
    sender: () => Promise.reject(new Error("No sender has a result.")),
  },
};

/** The context of a run that sends nothing, and waits for no turn. */
export const quietRun: Pick<RunContext, "send" | "room" | "withdraw" | "turn" | "listing" | "approvals"> = {
  send: async () => undefined,
  room: () => AMPLE,
  withdraw: () => undefined,
  turn: async () => undefined,
  listing: { note: async () => undefined },
  approvals: { note: async () => undefined },
};
