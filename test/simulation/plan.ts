/**
 * What a simulation does, as plain data: who says what, how models and tools behave, and which faults happen where. A
 * seed gives a plan; a plan is what is shrunk, printed, and kept as a test.
 */

/** Milliseconds everywhere. */
export interface Plan {
  /** Of the identifiers. */
  seed: number;
  conversations: ConversationPlan[];
  faults: Fault[];
}

export interface ConversationPlan {
  /** Model replies per turn before the agent must answer. */
  maxMoves: number;
  /** Models that stand in for the first, in order; none when absent. */
  fallbacks?: number;
  /** Exchanges that were said elsewhere before; none when absent. */
  history?: number;
  clients: ClientPlan[];
}

/**
 * A program that a user runs. `socket` is the live client; `http` asks again until it is answered; `stream` does so too, and
 * reads the stream of frames.
 */
export interface ClientPlan {
  user: string;
  channel: "socket" | "http" | "stream";
  /** When it begins. */
  joins: number;
  /** One way through the network. */
  latency: number;
  /** When it goes for good; absent = it stays. */
  leaves?: number;
  /** Times at which its connection is lost, for so long. */
  absences: { at: number; ms: number }[];
  messages: MessagePlan[];
}

export interface MessagePlan {
  /** What the client waits for before it sends the next message. */
  waitsFor: "nothing" | "acknowledgement" | "answer";
  /** Before it is sent. */
  pause: number;
  /** Words. */
  length: number;
  /** Images that it names; none when absent. */
  images?: number;
  /** Its answer must be data; the model answers like this first, and then with what fits. Absent = any text will do. */
  output?: UnfitAnswer[];
  /** What the model answers, one reply a round; after the last it answers with text. */
  replies: ReplyPlan[];
}

export const UNFIT_ANSWERS = ["prose", "wrong", "empty", "cut off", "refused"] as const;
export type UnfitAnswer = (typeof UNFIT_ANSWERS)[number];

export interface ReplyPlan {
  /** What goes wrong with the first requests for this reply, one each. */
  failures: ModelFailure[];
  /** Words of text. */
  length: number;
  /** Between two pieces of the stream. */
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
  /** `ask` is the client's own: a message whose replies call it brings it along. */
  tool: ToolName | "ask" | "unknown";
  arguments: "valid" | "wrong" | "broken";
  /** How long the tool runs. */
  ms: number;
  outcome: "answer" | "error" | "throw" | "never";
  /** Progress reports while it runs. */
  progress: number;
  /** What the client gives once more, of its own tool. */
  again?: "same" | "different";
  /** Everybody who sees the call of a client's tool answers it, and each differently. */
  rivals?: boolean;
}

export const TOOL_NAMES = ["look_up", "save", "charge", "note"] as const;
export type ToolName = (typeof TOOL_NAMES)[number];

/** Where faults are injected. A port is crossed once per call, statement, piece, line, request or frame. */
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
  "tool.line",
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
] as const;
export type Port = (typeof PORTS)[number];

/**
 * `crash`: the actor dies, before the operation or after it took effect. `error`: the port fails, and the actor lives.
 * `loss`: it is never heard of; on a connection nothing after it either; at `object.get`
 * the object is gone for good. `delay`: it takes longer. `duplicate`: it
 * comes twice. `swap`: it changes places with the next. `jump`: the clock on the wall is set. `evict`: the idle actor
 * leaves memory, and its sockets stay.
 */
export type Fault = { conversation: number; port: Port; nth: number } & (
  | { kind: "crash"; when: "before" | "after" }
  | { kind: "error"; times: number }
  | { kind: "loss" }
  | { kind: "delay"; ms: number }
  | { kind: "duplicate" }
  | { kind: "swap" }
  | { kind: "jump"; ms: number }
  | { kind: "evict" }
);
export type FaultKind = Fault["kind"];

/** Which faults each port can have. */
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
  "tool.line": ["crash", "error", "loss", "delay", "duplicate", "swap"],
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
};

/** A key per kind of fault and port, for counting. */
export function faultName({ kind, port }: Pick<Fault, "kind" | "port">): string {
  return `${kind} at ${port}`;
}
