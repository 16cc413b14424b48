/**
 * The course of a run, collected from the entries of its journal: the tokens at each node, and the end of the run. It grows with each entry
 * and is read in place, because a run may have thousands of tokens. Pure.
 */
import type { OperationState, RunEntryView, RunError } from "../../../src/client/index.ts";

export type TokenState =
  | "ready"
  | "working"
  /** A person must answer. */
  | "asking"
  | "retrying"
  | "lost"
  | "waiting"
  /** Its fan-in fired: another token continues. */
  | "joined"
  | "completed"
  | "failed"
  | "cancelled";

/** An attempt that failed. */
export interface FailedAttempt {
  attempt: number;
  time: string;
  error: RunError;
}

/** A token: one visit of a node. */
export interface RunToken {
  id: number;
  /** The `ref` of its node. */
  node: string;
  state: TokenState;
  /** The branches around it, such as `root.start.0`; absent outside branches. */
  path?: string;
  createdAt: string;
  /** The start of the work of the node; absent if the node runs no work. */
  startedAt?: string;
  endedAt?: string;
  /** Attempts that have begun. */
  attempts: number;
  failures: FailedAttempt[];
  /** Absent if it is the input of the run, or if the node runs no work. */
  input?: unknown;
  /** The conversation of its agent. */
  conversationId?: string;
  /** The run that has its part of a fan-out. */
  runId?: string;
  /** The question to a person. */
  prompt?: string;
  answer?: GateAnswer;
  output?: unknown;
  /** The steps of a task of steps, once it has ended. */
  task?: NonNullable<OperationState["task"]>;
  error?: RunError;
}

/** The answer of a person to a question. */
export interface GateAnswer {
  /** The subject that answered. */
  by: string;
  time: string;
  value: unknown;
  /** Absent if the question was no request for approval. */
  approved?: boolean;
}

export type TokenCounts = Partial<Record<TokenState, number>>;

/** The visits of one node. */
export interface NodeVisits {
  tokens: RunToken[];
  counts: TokenCounts;
}

/** The end of a run. */
export interface RunEnd {
  status: "completed" | "failed" | "cancelled" | "timed_out";
  time: string;
  error?: RunError;
}

const NO_VISITS: NodeVisits = { tokens: [], counts: {} };

export class RunLog {
  /** The number of the newest entry. */
  seq = 0;
  end: RunEnd | undefined;
  /** The answers to the run's own questions for more time. */
  readonly answers: GateAnswer[] = [];
  readonly #tokens = new Map<number, RunToken>();
  readonly #nodes = new Map<string, NodeVisits>();
  /** Tokens that wait at a fan-in, by the number of their fan-out. */
  readonly #waiting = new Map<number, RunToken[]>();
  /** Tokens that waited when their fan-in failed or their run ended. They wait again after a retry of the run. */
  readonly #stopped = new Map<number, RunToken[]>();
  readonly #fired = new Map<string, number>();

  visits(node: string): NodeVisits {
    return this.#nodes.get(node) ?? NO_VISITS;
  }

  /** Returns all tokens in the order of their numbers. */
  tokens(): Iterable<RunToken> {
    return this.#tokens.values();
  }

  /** Returns the number of times that a transition has fired. */
  fired(transition: string): number {
    return this.#fired.get(transition) ?? 0;
  }

  /** Adds an entry. A repeated entry is a no-op. */
  add(entry: RunEntryView): void {
    if (entry.seq <= this.seq) return;
    this.seq = entry.seq;
    const { type, token: id, time } = entry;
    const data = membersOf(entry.data);
    if (type === "token.created" || type === "token.waiting") {
      this.#begin(entry, data);
      return;
    }
    const token = id === undefined ? undefined : this.#tokens.get(id);
    if (type === "gate.answered" && token === undefined) this.answers.push(answerIn(data, time));
    if (token !== undefined) this.#change(token, entry, data);
    switch (type) {
      case "transition.fired": {
        const transition = String(data.transition);
        this.#fired.set(transition, this.fired(transition) + 1);
        break;
      }
      case "fan_in.completed":
        this.#release(Number(data.fanOut), "joined", time);
        break;
      case "sync.failed":
        this.#stop(Number(data.fanOut), time);
        break;
      case "workflow.retried":
        this.#retry(data);
        break;
      case "workflow.completed":
      case "workflow.failed":
      case "workflow.cancelled":
      case "workflow.timed_out":
        this.#finish(type, time, errorIn(data));
        break;
    }
  }

  #begin({ token: id = -1, node = "", type, time }: RunEntryView, { path, fanOut }: Members): void {
    const state = type === "token.waiting" ? "waiting" : "ready";
    const place = typeof path === "string" ? { path } : {};
    const token: RunToken = { id, node, state, ...place, createdAt: time, attempts: 0, failures: [] };
    this.#tokens.set(id, token);
    const visits = this.#nodes.get(node) ?? { tokens: [], counts: {} };
    visits.tokens.push(token);
    visits.counts[state] = (visits.counts[state] ?? 0) + 1;
    this.#nodes.set(node, visits);
    if (state !== "waiting") return;
    const group = Number(fanOut);
    const waiting = this.#waiting.get(group) ?? [];
    waiting.push(token);
    this.#waiting.set(group, waiting);
  }

  #change(token: RunToken, { type, time }: RunEntryView, data: Members): void {
    const attempt = typeof data.attempt === "number" ? data.attempt : token.attempts;
    const error = errorIn(data);
    // SAFETY: the same definitions type the server's entries.
    if ("task" in data) token.task = data.task as NonNullable<RunToken["task"]>;
    switch (type) {
      case "task.dispatched":
        token.startedAt = time;
        token.attempts = Math.max(1, attempt);
        if ("input" in data) token.input = data.input;
        if (typeof data.conversationId === "string") token.conversationId = data.conversationId;
        if (typeof data.runId === "string") token.runId = data.runId;
        this.#move(token, "working");
        break;
      case "gate.opened":
        if (typeof data.prompt === "string") token.prompt = data.prompt;
        this.#move(token, "asking");
        break;
      case "gate.answered":
        token.answer = answerIn(data, time);
        this.#move(token, "working");
        break;
      case "task.retried":
        if (error !== undefined) token.failures.push({ attempt, time, error });
        token.attempts = attempt + 1;
        this.#move(token, "retrying");
        break;
      case "task.lost":
        this.#move(token, "lost");
        break;
      case "task.completed":
        token.attempts = attempt;
        token.output = data.output;
        break;
      case "task.failed":
        token.attempts = attempt;
        if (error !== undefined) token.failures.push({ attempt, time, error });
        break;
      case "token.completed":
        this.#close(token, "completed", time);
        break;
      case "token.failed":
        if (error !== undefined) token.error = error;
        this.#close(token, "failed", time);
        break;
      case "token.cancelled":
        this.#close(token, "cancelled", time);
        break;
    }
  }

  #close(token: RunToken, state: TokenState, time: string): void {
    token.endedAt = time;
    this.#move(token, state);
  }

  #move(token: RunToken, state: TokenState): void {
    const { counts } = this.visits(token.node);
    counts[token.state] = (counts[token.state] ?? 0) - 1;
    counts[state] = (counts[state] ?? 0) + 1;
    token.state = state;
  }

  #release(fanOut: number, state: TokenState, time: string): void {
    for (const token of this.#waiting.get(fanOut) ?? []) this.#close(token, state, time);
    this.#waiting.delete(fanOut);
  }

  #stop(fanOut: number, time: string): void {
    this.#stopped.set(fanOut, this.#waiting.get(fanOut) ?? []);
    this.#release(fanOut, "cancelled", time);
  }

  /** Resets the failed tokens and fan-ins of a run that continues. */
  #retry({ tokens, fanOuts }: Members): void {
    this.end = undefined;
    for (const id of numbersIn(tokens)) this.#reopen(this.#tokens.get(id), "ready");
    for (const id of numbersIn(fanOuts)) {
      const waiting = this.#stopped.get(id) ?? [];
      for (const token of waiting) this.#reopen(token, "waiting");
      this.#waiting.set(id, waiting);
    }
    this.#stopped.clear();
  }

  #reopen(token: RunToken | undefined, state: TokenState): void {
    if (token === undefined) return;
    delete token.endedAt;
    delete token.error;
    this.#move(token, state);
  }

  #finish(type: string, time: string, error: RunError | undefined): void {
    for (const fanOut of [...this.#waiting.keys()]) this.#stop(fanOut, time);
    // SAFETY: the caller passes the types of these four entries.
    const status = type.slice("workflow.".length) as RunEnd["status"];
    this.end = { status, time, ...(error === undefined ? {} : { error }) };
  }
}

type Members = Readonly<Record<string, unknown>>;

function membersOf(data: unknown): Members {
  // SAFETY: an object that is not null has members with unknown values.
  return typeof data === "object" && data !== null ? (data as Members) : {};
}

function answerIn({ by, answer }: Members, time: string): GateAnswer {
  const { approved } = membersOf(answer);
  return { by: String(by), time, value: answer, ...(typeof approved === "boolean" ? { approved } : {}) };
}

function numbersIn(value: unknown): number[] {
  return Array.isArray(value) ? value.map(Number) : [];
}

function errorIn({ error }: Members): RunError | undefined {
  const { code, message } = membersOf(error);
  return typeof code === "string" && typeof message === "string" ? { code, message } : undefined;
}
