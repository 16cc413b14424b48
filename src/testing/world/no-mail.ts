/** The context of a conversation that sends no messages, runs no workflows, and finds no memories. */
import type { RuntimeContext } from "../../agents/conversation/context.ts";
import type { RuntimeContext as RunContext } from "../../agents/coordinator/context.ts";
import { UNLIMITED_ROOM } from "../../agents/coordinator/core/outbox-reservation.ts";
import { notFound } from "../../shared/errors.ts";

const unknown = async (_: unknown, id: string): Promise<never> => {
  throw notFound(`There is no agent "${id}".`);
};

export const noMail: Pick<
  RuntimeContext,
  | ("send" | "withdraw" | "discard" | "outboxRoom" | "listing" | "approvals" | "onUsage" | "onCommit")
  | ("agent" | "run" | "invite" | "waitUntil" | "resultStores" | "isErased")
> = {
  send: async () => undefined,
  withdraw: () => undefined,
  discard: () => undefined,
  outboxRoom: () => ({ envelopes: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }),
  listing: { announce: () => [], note: async () => undefined },
  approvals: { note: async () => undefined, publish: async () => undefined },
  onUsage: () => undefined,
  onCommit: () => undefined,
  agent: async () => ({
    offerMemories: async () => ({ ok: true, value: [] }),
    searchMemories: async () => ({ ok: true, value: { matches: [], semantic: "none" } }),
  }),
  run: unknown,
  invite: unknown,
  waitUntil: () => undefined,
  isErased: async () => false,
  resultStores: {
    keeper: { keep: async () => ({ lost: "this conversation stores no results." }) },
    sender: () => Promise.reject(new Error("No sender has a result.")),
  },
};

/** The context of a run that sends no messages and waits for no turns. */
export const quietRun: Pick<
  RunContext,
  "send" | "outboxRoom" | "withdraw" | "turn" | "listing" | "approvals"
> = {
  send: async () => undefined,
  outboxRoom: () => UNLIMITED_ROOM,
  withdraw: () => undefined,
  turn: async () => undefined,
  listing: { note: async () => undefined },
  approvals: { note: async () => undefined },
};
