/** The model provider of a simulation: speaks Chat Completions over a network that is not there. */
import type { WorldClock } from "./clocks.ts";
import type { FaultPlane } from "./faults.ts";
import { InjectedError } from "./faults.ts";
import type { History } from "./history.ts";
import { type Answer, answerOf, tagOf, words } from "./model-script.ts";
import type { Fault, MessagePlan, Plan, ReplyPlan } from "./plan.ts";

/** A life of an actor, as far as a network needs to know it. */
export interface Caller {
  readonly alive: boolean;
  readonly conversation: number;
  die(): void;
}

interface RequestBody {
  messages: { role: string; content: string | null }[];
  tools?: unknown[];
  tool_choice?: string;
}

const LATENCY_MS = 20;
const FINAL_REPLY: ReplyPlan = { failures: [], length: 6, pace: 5, calls: [] };

export class Model {
  readonly #asked = new Map<string, number>();
  readonly #messages = new Map<string, MessagePlan>();

  constructor(
    plan: Plan,
    private readonly clock: WorldClock,
    private readonly plane: FaultPlane,
    private readonly history: History,
    private readonly note: (conversation: number, text: string) => void,
  ) {
    plan.conversations.forEach(({ clients }, conversation) => {
      clients.forEach(({ messages }, client) => {
        messages.forEach((message, index) => {
          this.#messages.set(tagOf(conversation, client, index), message);
        });
      });
    });
  }

  /** The `fetch` of one life: a dead one hears nothing more. */
  fetchFor(caller: Caller): (url: string, init: RequestInit) => Promise<Response> {
    return async (_url, { body, signal }) => {
      const faults = this.plane.cross(caller.conversation, "model.request");
      const crash = faults.find((fault) => fault.kind === "crash");
      let wait = LATENCY_MS;
      for (const fault of faults) {
        if (fault.kind === "delay") {
          this.plane.fire(fault);
          wait += fault.ms;
        } else if (fault.kind === "error") {
          this.plane.fire(fault);
          throw new InjectedError("connection refused");
        } else if (fault.kind === "loss") {
          this.plane.fire(fault);
          return hang(signal);
        }
      }
      if (crash?.when === "before") {
        this.plane.fire(crash);
        caller.die();
        return hang(null);
      }
      await this.clock.sleep(wait);
      if (!caller.alive) return hang(null);
      if (signal?.aborted) throw signal.reason;
      const answer = this.#answer(caller.conversation, JSON.parse(String(body)));
      if (crash !== undefined) {
        this.plane.fire(crash);
        caller.die();
        return hang(null);
      }
      if (answer.end === "refused") throw new InjectedError("connection refused");
      return new Response(this.#stream(caller, answer, signal ?? null), answer);
    };
  }

  #answer(conversation: number, { messages, tool_choice, tools }: RequestBody): Answer {
    const start = messages.findLastIndex(({ role }) => role === "user");
    const tag = (messages[start]?.content ?? "").split(" ")[0] ?? "";
    const round = messages.slice(start).filter(({ role }) => role === "assistant").length;
    const key = `${tag}.${round}`;
    const call = (this.#asked.get(key) ?? 0) + 1;
    this.#asked.set(key, call);
    const reply = this.#messages.get(tag)?.replies[round] ?? FINAL_REPLY;
    const failure = reply.failures[call - 1];
    const text = reply.length === 0 ? "" : `[${key}/${call}] ${words(reply.length, call + round)}`;
    const mayCall = tools !== undefined && tool_choice !== "none";
    const calls = mayCall ? reply.calls : [];
    this.history.modelCalls.push({
      conversation,
      tag,
      round,
      call,
      text,
      ...(failure === undefined ? {} : { failure }),
    });
    this.note(
      conversation,
      `model asked for ${key}, call ${call}${failure === undefined ? "" : `: ${failure}`}`,
    );
    return answerOf({ text, calls, key, pace: reply.pace }, failure);
  }

  #stream(caller: Caller, answer: Answer, signal: AbortSignal | null): ReadableStream<Uint8Array> {
    let isOver = false;
    signal?.addEventListener("abort", () => (isOver = true), { once: true });
    return new ReadableStream({
      start: (controller) => {
        void this.#feed(caller, answer, controller, () => isOver || !caller.alive);
      },
      cancel: () => {
        isOver = true;
      },
    });
  }

  async #feed(
    caller: Caller,
    { pieces, pace, end }: Answer,
    controller: ReadableStreamDefaultController<Uint8Array>,
    isOver: () => boolean,
  ): Promise<void> {
    const encoder = new TextEncoder();
    for (const piece of pieces) {
      if (pace > 0) await this.clock.sleep(pace);
      if (isOver()) return;
      let dies: Extract<Fault, { kind: "crash" }> | undefined;
      for (const fault of this.plane.cross(caller.conversation, "model.piece")) {
        if (fault.kind === "crash") dies = fault;
        else if (fault.kind !== "jump") this.plane.fire(fault);
        if (fault.kind === "loss") return;
        if (fault.kind === "error") return controller.error(new InjectedError("connection reset"));
        if (fault.kind === "delay") await this.clock.sleep(fault.ms);
      }
      if (isOver()) return;
      if (dies?.when !== "before") controller.enqueue(encoder.encode(piece));
      if (dies === undefined) continue;
      this.plane.fire(dies);
      caller.die();
      return;
    }
    if (end === "complete" && !isOver()) controller.close();
  }
}

/** Never answers; fails when it is aborted, as a fetch does. */
function hang(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
