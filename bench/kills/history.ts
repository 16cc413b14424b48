/** The history of a run, recorded by all participants as plain data. Times are `Date.now()`. */

import type { Frame, MessageView } from "../../src/client/index.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import type { Script } from "./script.ts";

/**
 * The connection of a user: `socket` uses the client's WebSocket, `stream` a stream of each turn, `post` only a POST.
 */
export type Manner = "socket" | "stream" | "post";

export interface SentMessage {
  conversation: string;
  script: Script;
  manner: Manner;
  /** Time of the first attempt. */
  at: number;
}

/** An acknowledgement that a message is recorded. A message may have several. */
export interface Acknowledgement {
  key: string;
  turnId: string;
  at: number;
}

/** A stop of a turn. */
export interface Stop {
  key: string;
  turnId: string;
  /** After `acknowledged`, the turn ends stopped. The server refuses to stop a turn that has ended. */
  outcome: "sent" | "acknowledged" | "refused";
}

/** The frames of one connection. */
export interface ConnectionLog {
  conversation: string;
  /** Name of the client. The connections of one client continue each other. */
  client: string;
  /** All frames after a number (`null`: from a snapshot), or the frames of a message's turn. */
  scope: { of: "conversation"; from: number | null } | { of: "turn"; key: string };
  frames: { at: number; frame: Frame }[];
}

/** A partial text that the client displayed. */
export interface ShownText {
  turnId: string;
  text: string;
}

export interface Kill {
  /** Time of the signal. */
  at: number;
  /** Time of the next process's first accepted connection. */
  readyAt: number;
}

/** A request that reached the hit server. */
export type Hit = {
  /** Key of the message. */
  key: string;
  at: number;
  /** Time of the complete response, or of the broken connection. */
  endedAt: number;
  answered: boolean;
} & (
  | { kind: "model"; call: number }
  /** A request for a summary. Its key is the key of its first message. */
  | { kind: "summary" }
  | { kind: "tool"; effect: Script["rounds"][number][number]; call: string; operationId: string }
);

/** The earlier messages in a request to the model, by their keys. */
export interface ModelRequest {
  /** Key of the message to answer. A request for a summary has the key of its first message. */
  key: string;
  /** Messages that the summary covers. */
  summarised: string[];
  /** Messages in full, with the message to answer. */
  shown: string[];
}

/** The state of a conversation after all turns have ended. */
export interface FinalState {
  conversation: string;
  /** Start of the read, which wakes the actor. */
  readAt: number;
  journal: JournalEntryView[];
  /** All durable frames, from `GET …/events?from=0`. */
  frames: Frame[];
  transcript: MessageView[];
}

export interface History {
  messages: SentMessage[];
  acknowledgements: Acknowledgement[];
  stops: Stop[];
  connections: ConnectionLog[];
  shown: ShownText[];
  kills: Kill[];
  hits: Hit[];
  requests: ModelRequest[];
  finals: FinalState[];
}

export function newHistory(): History {
  return {
    messages: [],
    acknowledgements: [],
    stops: [],
    connections: [],
    shown: [],
    kills: [],
    hits: [],
    requests: [],
    finals: [],
  };
}
