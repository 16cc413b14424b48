/** The kinds of turns that are timed, and what each system must have given its model in them. */
import { SYSTEMS, type SystemName } from "./protocol.ts";
import { PLAIN_TEXT, TOOLS_TEXT } from "./workload.ts";

/** One kind of turn: how an actor is prepared, and what is timed. */
export interface Shape {
  metric: string;
  text: string;
  /** Messages seeded before; the untimed turn brings them to the number in the metric's name. */
  seeded: number;
  /** Untimed turns before the timed ones. */
  untimed: number;
  /** Actors of a batch, and timed turns of each: their product divides the time. */
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

/** How many of its messages a system gives the model: all, the newest only, or a window of the newest. */
export const GIVEN: Readonly<Record<SystemName, number>> = {
  // The window of 20 turns that a persona has by default, and the new message.
  dramatis: 41,
  "durable-object": 1,
  agent: 1,
  "ai-chat-agent": Number.POSITIVE_INFINITY,
  think: Number.POSITIVE_INFINITY,
};
