/** The history of the scenario `trees`, as plain data. */
import type { SpendingView } from "../../../src/client/index.ts";
import type { JournalEntryView } from "../../../src/protocol/conversation-schemas.ts";
import type { Kill } from "../history.ts";

export interface TreesHistory {
  kills: Kill[];
  trees: TreeRecord[];
  /** Runs of tools, with the id of their operation. */
  hits: { operationId: string; isOnce: boolean }[];
}

/** An acknowledged message, with the tree of its calls. */
export interface TreeRecord {
  /** The user stopped it. */
  stopped: boolean;
  /** First the conversation of the message, then the conversations of the calls below it. */
  rooms: RoomRecord[];
}

/** An idle conversation. */
export interface RoomRecord {
  id: string;
  status: string;
  /** The operation that opened it. Absent if a user opened it. */
  operationId?: string;
  /** Number of active turns. */
  active: number;
  journal: JournalEntryView[];
  /** The calls of agents in it. */
  calls: { operationId: string; conversationId: string }[];
  /** The operations of `once` tools, and all successful operations. */
  once: string[];
  succeeded: string[];
  spent: SpendingView;
  /** Counted tokens of its own model calls. */
  counted: number;
}
