/** The history of a run, recorded by all participants as plain data. Times are `Date.now()`. */

import type { Frame, MessageView } from "../../src/client/index.ts";
import type { JournalEntryView } from "../../src/protocol/views.ts";
import type { Script } from "./script.ts";

/**
 * The connection of a user: `socket` by the client's WebSocket, `stream` by a stream of each turn, `post` by a POST alone.
 */
export type Manner = "socket" | "stream" | "post";

export interface SentMessage {
  conversation: string;
  script: Script;
  manner: Manner;
  /** Time of the first sending. */
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
  /** The server acknowledged it: the turn ends stopped. It refuses to stop a turn that has ended. */
  outcome: "sent" | "acknowledged" | "refused";
}

/** The frames of one connection. */
export interface ConnectionLog {
  conversation: string;
  /** Name of the client. The connections of one client continue each other. */
  client: string;
  /** All frames after a number (`null`: from a snapshot), or those of the turn of a message. */
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
  /** Time at which the next process accepted connections. */
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
  /** A request for a summary. Its key is that of the first message in it. */
  | { kind: "summary" }
  | { kind: "tool"; effect: Script["rounds"][number][number]; call: string; operationId: string }
);

/** The earlier messages in a request to the model, by their keys. */
export interface ModelRequest {
  /** Key of the message to answer; of a request for a summary, of the first one in it. */
  key: string;
  /** Those that the summary covers. */
  summarised: string[];
  /** Those that it has in full, the message to answer included. */
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
