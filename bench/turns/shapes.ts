/** The shapes of measured turns, and the history that each system must send to its model. */
import { SYSTEMS, type SystemName } from "./protocol.ts";
import { PLAIN_TEXT, TOOLS_TEXT } from "./workload.ts";

/** A shape of turns: the preparation of an actor, and the measured part. */
export interface Shape {
  metric: string;
  text: string;
  /** Seeded messages. With the untimed turn, they make the number in the metric's name. */
  seeded: number;
  /** Untimed turns before the measured turns. */
  untimed: number;
  /** Actors per batch, and measured turns per actor. Their product divides the time. */
  actors: number;
  turns: number;
  systems: readonly SystemName[];
}

const plain = { text: PLAIN_TEXT, seeded: 0, untimed: 1, actors: 1, systems: SYSTEMS };

export const SHAPES: readonly Shape[] = [
  { ...plain, metric: "fresh", untimed: 0, actors: 8, turns: 1 },
  { ...plain, metric: "open", untimed: 2, turns: 20 },
  { ...plain, metric: "three-tool-rounds", text: TOOLS_TEXT, turns: 8 },
  { ...plain, metric: "messages-10", seeded: 8, turns: 5 },
  { ...plain, metric: "messages-1000", seeded: 998, turns: 5 },
  { ...plain, metric: "messages-10000", seeded: 9_998, turns: 5, systems: ["dramatis"] },
];

/** Part of the messages that a system sends to the model: all, the newest, or a window. */
export const GIVEN: Readonly<Record<SystemName, number>> = {
  // A persona's default window of 20 turns, and the new message.
  dramatis: 41,
  "durable-object": 1,
  "safe-object": 1,
  agent: 1,
  "ai-chat-agent": Number.POSITIVE_INFINITY,
  think: Number.POSITIVE_INFINITY,
};
