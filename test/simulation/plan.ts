/**
 * The plan of a simulation, as plain data: messages, behavior of models and tools, and faults. A seed generates a plan.
 * Plans are shrunk, printed and kept as tests.
 */

import type { Budget } from "../../src/protocol/budget.ts";
import type { TurnOrder } from "../../src/protocol/conversation-schemas.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";

/** All times are in milliseconds. */
export interface Plan {
  /** Seed of the identifiers. */
  seed: number;
  conversations: ConversationPlan[];
  faults: Fault[];
}

export interface ConversationPlan {
  /** Maximum number of model replies per turn. */
  maxMoves: number;
  /** Number of fallback models; 0 by default. */
  fallbacks?: number;
  /** Number of seeded exchanges; 0 by default. */
  history?: number;
  /** Initial order of turns that overlap; `parallel` by default. */
  order?: TurnOrder;
  /** Hooks of the agent; absent by default. With a context hook, messages have no images and no output. */
  hooks?: { assembly?: HookPlan; extraction?: HookPlan };
  /** Limits of all turns together; unlimited by default. */
  budget?: Budget;
  /** A budget of the context so small that the conversation compacts itself; 60 000 tokens by default. */
  memory?: MemoryPlan;
  /** The answers to requests for a title, in order. Further requests get a title. Absent: no model writes titles. */
  titles?: SummaryPlan[];
  clients: ClientPlan[];
}

/** The context's budget, and the answers to requests for summaries, in order. Further requests get a summary. */
export interface MemoryPlan {
  contextTokens: number;
  summaries: SummaryPlan[];
}

export interface SummaryPlan {
  says: (typeof SUMMARY_ANSWERS)[number];
  failure?: ModelFailure;
  /** The actor dies when the request arrives. */
  kills?: true;
  /** Delay between two deltas. */
  pace: number;
}

/** `calls`: calls a tool, or gives a summary if tools are not allowed. `too long`: no shorter than the original. */
export const SUMMARY_ANSWERS = ["summary", "calls", "too long", "nothing", "cut off"] as const;

/** A hook of the agent. */
export interface HookPlan {
  effect: ToolEffect;
  /** Duration of a run. */
  ms: number;
  /** Number of the first runs in the conversation that fail. */
  failures: number;
}

/**
 * A client. `socket` is the live client. `http` repeats a request until it gets a response. `stream` does the same and
 * reads the stream of frames. `signals` sends messages in batches of envelopes. A batch ends with a message that the
 * client waits for.
 */
export interface ClientPlan {
  user: string;
  channel: "socket" | "http" | "stream" | "signals";
  /** Start time. */
  joins: number;
  /** One-way network latency. */
  latency: number;
  /** The time of its leave; absent if it stays. */
  leaves?: number;
  /** Interruptions of its connection. */
  absences: { at: number; ms: number }[];
  messages: MessagePlan[];
  /** Stops, resumes, ends, changes of the order and replaced turns, each independent of the others; absent by default. */
  acts?: ActPlan[];
  /** Forks of the conversation, each independent of the others; absent by default. */
  forks?: ForkPlan[];
}

/** A fork at the newest turn of the user (`own`), or at the oldest (`past`). It is a conversation of its own. */
export interface ForkPlan extends Pick<ActPlan, "upon" | "nth" | "pause" | "again"> {
  whose: "own" | "past";
  /** The message in the fork. */
  message?: MessagePlan;
  /** The entry that the user erases in the fork after this message; the number counts around the list of entries. */
  erases?: number;
}

export interface ActPlan {
  does: "stop turn" | "stop" | "resume" | "reorder" | "rename" | "end" | "regenerate" | "edit";
  /**
   * The turn to stop: an active turn of the client, a turn of another client, or a turn that may have ended. The turn to
   * replace is the newest turn of the user (`own`) or the oldest (`past`).
   */
  whose?: "own" | "other" | "past";
  /** The new order; `parallel` by default. */
  order?: TurnOrder;
  /** The edited message. */
  message?: MessagePlan;
  /** The moment that it waits for; when the client joins, by default. */
  upon?: Moment;
  /** The count of the moment, from 1. */
  nth: number;
  /** Delay after the moment. */
  pause: number;
  /** Delay until the client repeats the act; absent if it does not. */
  again?: number;
}

/**
 * Moments of a conversation's turns. `queued`: a turn is queued. `asked`: a model has a request and has not answered.
 * `streaming`: a piece of the reply has arrived. `tool`: a tool runs. `waiting`: a turn waits for its client. `over`: a
 * turn has ended.
 */
export const MOMENTS = ["queued", "asked", "streaming", "tool", "waiting", "over"] as const;
/** `summary`, `title`: a model has a request for a summary, or for a title. */
export type Moment = (typeof MOMENTS)[number] | "summary" | "title";

export interface MessagePlan {
  /** Condition for sending the next message. */
  waitsFor: "nothing" | "acknowledgement" | "answer";
  /** Delay before sending. */
  pause: number;
  /** Number of words. */
  length: number;
  /** Number of images; 0 by default. */
  images?: number;
  /** Requires structured output. The model returns these answers first, then a valid answer. Absent for plain text. */
  output?: UnfitAnswer[];
  /** Replies, one per round. A text follows the final reply. */
  replies: ReplyPlan[];
}

export const UNFIT_ANSWERS = ["prose", "wrong", "empty", "cut off", "refused"] as const;
export type UnfitAnswer = (typeof UNFIT_ANSWERS)[number];

export interface ReplyPlan {
  /** Failures of the first requests for this reply, one each. */
  failures: ModelFailure[];
  /** Number of words of text. */
  length: number;
  /** Delay between two deltas. */
  pace: number;
  calls: CallPlan[];
}

export type ModelFailure = (typeof MODEL_FAILURES)[number];

export const MODEL_FAILURES = [
  "rate limit",
  "server error",
  "refused connection",
  "bad request",
  "wrong key",
  "unknown model",
  "error in the stream",
  "stalled stream",
  "truncated stream",
] as const;

export interface CallPlan {
  /** `ask` is the client's tool. A message with replies that call it declares it. */
  tool: ToolName | "ask" | "unknown";
  arguments: "valid" | "wrong" | "broken";
  /** Duration of the tool. */
  ms: number;
  outcome: "answer" | "error" | "throw" | "never";
  /** Number of first runs of the tool that fail with a temporary error; 0 by default. */
  failures?: number;
  /** Number of progress reports. */
  progress: number;
  /** Repeated result of the client's tool. */
  again?: "same" | "different";
  /** Every client that sees the call sends a different result. */
  rivals?: boolean;
  /** The answer to the request for approval of a careful tool; absent by default. */
  approval?: ApprovalPlan;
}

export interface ApprovalPlan {
  approves: boolean;
  /** Delay after the client sees the request. */
  ms: number;
  /** Repeated answer. */
  again?: "same" | "different";
  /** Every other client that sees the request sends the opposite answer. */
  rivals?: true;
}

export const TOOL_NAMES = ["look_up", "save", "charge", "note"] as const;
export const JOB_NAMES = ["research", "deliver"] as const;
/** Tools with calls that need an approval. The second tool runs in the background. */
export const CAREFUL_NAMES = ["transfer", "remit"] as const;
export type ToolName =
  | (typeof TOOL_NAMES)[number]
  | (typeof JOB_NAMES)[number]
  | (typeof CAREFUL_NAMES)[number];

/**
 * Ports with faults. A port is crossed once per call, statement, chunk, report, request or frame. The requests of a fork go from its source
 * to its own actor. A crash at a request kills the source, a crash at an answer kills the fork.
 */
export const PORTS = [
  "sql.run",
  "sql.all",
  "sql.each",
  "sql.transaction",
  "sql.commit",
  "kv.get",
  "kv.put",
  "window.open",
  "publish",
  "model.request",
  "model.piece",
  "tool.request",
  "tool.report",
  "tool.result",
  "approval",
  "object.head",
  "object.get",
  "directory.put",
  "http.request",
  "http.answer",
  "socket.open",
  "socket.up",
  "socket.down",
  "stream.read",
  "alarm",
  "idle",
  "fork.request",
  "fork.answer",
] as const;
export type Port = (typeof PORTS)[number];

/**
 * `crash`: the actor dies, before or after the operation. `error`: the port fails, and the actor survives. `loss`: the
 * data never arrives. On a connection, later data is lost too. At `object.get`, the object is deleted. `delay`: the
 * operation takes longer. `duplicate`: the data arrives twice. `jump`: the wall clock is set. `evict`: the idle actor
 * leaves memory, and its sockets stay.
 */
export type Fault = { conversation: number; port: Port; nth: number } & (
  | { kind: "crash"; when: "before" | "after" }
  | { kind: "error"; times: number }
  | { kind: "loss" }
  | { kind: "delay"; ms: number }
  | { kind: "duplicate" }
  | { kind: "jump"; ms: number }
  | { kind: "evict" }
);
export type FaultKind = Fault["kind"];

/** Possible faults of each port. */
export const FAULTS_OF: Readonly<Record<Port, readonly FaultKind[]>> = {
  "sql.run": ["crash", "error"],
  "sql.all": ["crash", "error"],
  "sql.each": ["crash", "error"],
  "sql.transaction": ["crash", "error", "jump"],
  "sql.commit": ["crash", "error"],
  "kv.get": ["crash", "error"],
  "kv.put": ["crash", "error"],
  "window.open": ["crash", "error"],
  publish: ["crash", "jump"],
  "model.request": ["crash", "error", "loss", "delay", "jump"],
  "model.piece": ["crash", "error", "loss", "delay", "jump"],
  "tool.request": ["crash", "error", "loss", "delay", "jump"],
  "tool.report": ["crash", "error", "loss", "delay", "duplicate"],
  "tool.result": ["crash", "error", "loss", "delay", "duplicate"],
  approval: ["crash", "delay", "duplicate", "jump"],
  "object.head": ["crash", "error", "loss", "delay"],
  "object.get": ["crash", "error", "loss", "delay"],
  "directory.put": ["crash", "error", "loss", "delay"],
  "http.request": ["loss", "delay", "duplicate"],
  "http.answer": ["crash", "loss", "delay"],
  "socket.open": ["crash", "loss", "delay"],
  "socket.up": ["loss", "delay", "duplicate"],
  "socket.down": ["crash", "loss", "delay"],
  "stream.read": ["loss", "delay"],
  alarm: ["crash", "delay", "duplicate", "jump"],
  idle: ["evict", "crash"],
  "fork.request": ["crash", "error", "loss", "delay"],
  "fork.answer": ["crash", "loss", "delay"],
};

/** Returns a key for counting: kind of fault and port. */
export function faultName({ kind, port }: Pick<Fault, "kind" | "port">): string {
  return `${kind} at ${port}`;
}
