/** What is recorded of a run, by everyone who took part; plain data, so that it can be checked later. Times are `Date.now()`. */

import type { Frame, MessageView } from "../../src/client/index.ts";
import type { JournalEntryView } from "../../src/protocol/views.ts";
import type { Script } from "./script.ts";

/** How a user talks: the real client over a WebSocket, a stream of each turn, or a POST and nothing more. */
export type Manner = "socket" | "stream" | "post";

export interface SentMessage {
  conversation: string;
  script: Script;
  manner: Manner;
  /** When it was sent for the first time. */
  at: number;
}

/** Somebody was told that a message is recorded; one message may be acknowledged several times. */
export interface Acknowledgement {
  key: string;
  turnId: string;
  at: number;
}

/** What one connection received. */
export interface ConnectionLog {
  conversation: string;
  /** Who had it: the connections of one client continue each other. */
  client: string;
  /** All frames after a number (`null`: from a snapshot on), or those of the turn that a message started. */
  scope: { of: "conversation"; from: number | null } | { of: "turn"; key: string };
  frames: { at: number; frame: Frame }[];
}

/** A text in progress, as the real client showed it. */
export interface ShownText {
  turnId: string;
  text: string;
}

export interface Kill {
  /** When the signal was sent. */
  at: number;
  /** When the next process accepted connections. */
  readyAt: number;
}

/** A request that reached the hit server. */
export type Hit = {
  /** The key of the message it belongs to. */
  key: string;
  at: number;
  /** When it was answered in full, or its connection broke. */
  endedAt: number;
  answered: boolean;
} & (
  | { kind: "model"; call: number }
  | { kind: "tool"; effect: Script["rounds"][number][number]; call: string; operationId: string }
);

/** A conversation after everything has ended. */
export interface FinalState {
  conversation: string;
  /** When the reading began, which calls the actor. */
  readAt: number;
  journal: JournalEntryView[];
  /** All durable frames, as `GET …/events?from=0` gives them. */
  frames: Frame[];
  transcript: MessageView[];
}

export interface History {
  messages: SentMessage[];
  acknowledgements: Acknowledgement[];
  connections: ConnectionLog[];
  shown: ShownText[];
  kills: Kill[];
  hits: Hit[];
  finals: FinalState[];
}

export function newHistory(): History {
  return { messages: [], acknowledgements: [], connections: [], shown: [], kills: [], hits: [], finals: [] };
}
