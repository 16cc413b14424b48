/** What happened in the scenario `trees`. */
import type { SpendingView } from "../../../src/client/index.ts";
import type { JournalEntryView } from "../../../src/protocol/views.ts";
import type { Kill } from "../history.ts";

export interface TreesHistory {
  kills: Kill[];
  trees: TreeRecord[];
  /** Runs of tools: those of one operation have its id. */
  hits: { operationId: string; isOnce: boolean }[];
}

/** A message that was acknowledged, with all that followed from it. */
export interface TreeRecord {
  /** The user stopped it. */
  stopped: boolean;
  /** The conversation of the message first, then those of the calls below it. */
  rooms: RoomRecord[];
}

/** A conversation once nothing in it is active. */
export interface RoomRecord {
  id: string;
  status: string;
  /** The operation that opened it; absent for the user's own. */
  operationId?: string;
  /** Its turns that are active. */
  active: number;
  journal: JournalEntryView[];
  /** The calls of agents in it. */
  calls: { operationId: string; conversationId: string }[];
  /** The operations of `once` tools, and those whose result is a success. */
  once: string[];
  succeeded: string[];
  spent: SpendingView;
  /** Tokens that its own model calls have used up, as far as they were counted. */
  counted: number;
}
