/** The history of the part `versions`, as plain data. */
import type { JournalEntryView, MessageView, TurnView } from "../../../src/protocol/conversation-schemas.ts";
import type { History } from "../history.ts";
import type { Script } from "../script.ts";

export const ACTS = ["send", "regenerate", "edit", "fork"] as const;

/** A request of a user, repeated under its key until it has an answer. */
export interface Act {
  kind: (typeof ACTS)[number];
  conversation: string;
  /** The idempotency key. */
  key: string;
  /** The script of the message. A fork has the script of its last turn. */
  script: Script;
  /** The turn that is regenerated, edited or forked. */
  of?: string;
  /** Requests without an answer before the first answer. */
  lost: number;
  /** The ids in the answers: of the turn, or of the fork. The user asks again after the first answer. */
  answers: string[];
  /** The error that ended the act. */
  refused?: string;
}

/** A conversation after all work has ended. */
export interface VersionsFinal {
  conversation: string;
  journal: JournalEntryView[];
  turns: TurnView[];
  messages: MessageView[];
}

export interface VersionsHistory extends Pick<History, "kills" | "hits"> {
  acts: Act[];
  finals: VersionsFinal[];
}
