/** The model provider of a simulation: Chat Completions over a simulated network. */

import type { PromptMessage } from "./check-requests.ts";
import type { WorldClock } from "./clocks.ts";
import type { FaultPlane } from "./faults.ts";
import { InjectedError } from "./faults.ts";
import {
  type History,
  type ModelCallRecord,
  nextStep,
  type PromptRecord,
  type SideCallRecord,
} from "./history.ts";
import { type RequestBody, readRequest, readSummaryRequest, readTitleRequest } from "./model-request.ts";
import { type Answer, answerOf, dataOf, summaryOf, words } from "./model-script.ts";
import { MODELS } from "./models.ts";
import type { Moments } from "./moments.ts";
import type { CallPlan, Fault, MessagePlan, Plan, ReplyPlan, SummaryPlan } from "./plan.ts";
import { plannedMessages } from "./planned-calls.ts";

/** The part of an actor's life that the network uses. */
export interface Caller {
  readonly alive: boolean;
  readonly conversation: number;
  /** Number of the life. */
  readonly life: number;
  /** Returns the tag of the active turn with a message, as `tagOfTurn` does. */
  tagOfActive(tag: string): string;
  /** Returns the rebuilt requests of the active turn with a message. */
  promptsOf(tag: string): PromptRecord[];
  die(): void;
}

const LATENCY_MS = 20;
const FINAL_REPLY: ReplyPlan = { failures: [], length: 6, pace: 5, calls: [] };
const SUMMARY: SummaryPlan = { says: "summary", pace: 5 };
const SUMMARY_CALL: CallPlan = {
  tool: "look_up",
  arguments: "valid",
  ms: 0,
  outcome: "answer",
  progress: 0,
};
/** Maximum number of a message's requests that report usage: their counts are powers of two. */
const MAX_COUNTED = 40;

type Feed = Answer & { record: ModelCallRecord | SideCallRecord; kills?: boolean };

export class Model {
  readonly #asked = new Map<string, number>();
  readonly #messages: ReadonlyMap<string, MessagePlan>;

  constructor(
    plan: Plan,
    private readonly clock: WorldClock,
    private readonly plane: FaultPlane,
    private readonly history: History,
    private readonly moments: Moments,
    private readonly note: (conversation: number, text: string) => void,
  ) {
    this.#messages = plannedMessages(plan);
  }

  /** Returns the `fetch` of one life. A dead life receives no response. */
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
      const answer = this.#answer(caller, JSON.parse(await new Response(body).text()));
      if (crash !== undefined || answer.kills) {
        if (crash !== undefined) this.plane.fire(crash);
        caller.die();
        return hang(null);
      }
      if (answer.end === "refused") {
        this.#end(answer.record, "complete");
        throw new InjectedError("connection refused");
      }
      return new Response(this.#stream(caller, answer, signal ?? null), answer);
    };
  }

  #answer(caller: Caller, body: RequestBody): Feed {
    const summarised = readSummaryRequest(body);
    if (summarised !== undefined) return this.#beside(caller, body, summarised);
    const titled = readTitleRequest(body);
    if (titled !== undefined) return this.#beside(caller, body, [], titled);
    const { conversation, life } = caller;
    const { tool_choice, tools, response_format, model } = body;
    const {
      tag: said,
      round,
      withdrawn,
      images,
      hasImages,
      missing,
      before,
      moves,
      newer,
      newerLeft,
      cycle,
      notices,
    } = readRequest(body);
    const tag = caller.tagOfActive(said);
    const key = `${tag}.${round}`;
    const call = (this.#asked.get(key) ?? 0) + 1;
    this.#asked.set(key, call);
    const message = this.#messages.get(said);
    const reply = message?.replies[round] ?? FINAL_REPLY;
    const failure = reply.failures[call - 1];
    const mayCall = tools !== undefined && tool_choice !== "none";
    const calls = mayCall ? reply.calls : [];
    const plain = reply.length === 0 ? "" : `[${key}/${call}] ${words(reply.length, call + round)}`;
    const wantsData = response_format !== undefined;
    const unfit = wantsData && calls.length === 0 ? message?.output?.[withdrawn] : undefined;
    const text = wantsData && calls.length === 0 ? dataOf(plain, unfit) : plain;
    const asked = this.history.modelCalls.filter((other) => other.tag === tag).length;
    const record: ModelCallRecord = {
      conversation,
      body: JSON.stringify(body),
      prompts: caller.promptsOf(said),
      tag,
      round,
      call,
      at: this.clock.elapsed,
      text,
      ...(failure === undefined ? {} : { failure }),
      requestId: `${key}/${call}`,
      profile: MODELS.indexOf(model),
      tokens: asked < MAX_COUNTED ? 2 ** asked : 0,
      isCounted: false,
      before,
      moves,
      newer,
      newerLeft,
      cycle,
      notices,
      life,
      step: nextStep(this.history),
      images: images.length,
      missing,
      hasImages,
      wantsData,
      ...(unfit === undefined ? {} : { unfit }),
    };
    this.history.modelCalls.push(record);
    this.moments.note(conversation, "asked");
    this.note(
      conversation,
      `${model} asked for ${key}, call ${call}${failure === undefined ? "" : `: ${failure}`}${unfit === undefined ? "" : `, ${unfit}`}`,
    );
    const { requestId, tokens } = record;
    const cut =
      unfit === "cut off"
        ? ({ finish: "length" } as const)
        : unfit === "refused"
          ? ({ finish: "content_filter" } as const)
          : {};
    return {
      ...answerOf({ text, calls, key, pace: reply.pace, requestId, tokens, ...cut }, failure),
      record,
    };
  }

  /** Answers a request for a summary of the messages `before`, or for a title of the message `titled`. */
  #beside(
    { conversation, life }: Caller,
    { tool_choice }: RequestBody,
    before: PromptMessage[],
    titled?: string,
  ): Feed {
    const all = this.history.sideCalls.filter((call) => call.conversation === conversation);
    const asked = all.length;
    const nth = all.filter((call) => (call.titled === undefined) === (titled === undefined)).length;
    const { memory, titles } = this.history.plan.conversations[conversation] ?? {};
    const answers = titled === undefined ? memory?.summaries : titles;
    const { says, failure, kills = false, pace } = answers?.[nth] ?? SUMMARY;
    const calls = says === "calls" && tool_choice !== "none" ? [SUMMARY_CALL] : [];
    const kind = titled === undefined ? "summary" : "title";
    const requestId = `${kind} ${conversation}/${asked + 1}`;
    const record: SideCallRecord = {
      conversation,
      at: this.clock.elapsed,
      ...(failure === undefined ? {} : { failure }),
      says,
      text: summaryOf(says, `[${requestId}]`),
      requestId,
      tokens: asked < MAX_COUNTED ? 2 ** asked : 0,
      isCounted: false,
      before,
      ...(titled === undefined ? {} : { titled }),
      life,
      step: nextStep(this.history),
    };
    this.history.sideCalls.push(record);
    this.moments.note(conversation, kind);
    this.note(conversation, `${requestId} is requested: ${kills ? "the actor dies" : (failure ?? says)}`);
    const { text, tokens } = record;
    const cut = says === "cut off" ? ({ finish: "length" } as const) : {};
    return {
      ...answerOf({ text, calls, key: requestId, pace, requestId, tokens, ...cut }, failure),
      record,
      kills,
    };
  }

  #stream(caller: Caller, answer: Feed, signal: AbortSignal | null): ReadableStream<Uint8Array> {
    let isOver = false;
    const abort = () => {
      isOver = true;
      this.#end(answer.record, caller.alive ? "aborted" : "lost");
    };
    signal?.addEventListener("abort", abort, { once: true });
    return new ReadableStream({
      start: (controller) => {
        void this.#feed(caller, answer, controller, () => isOver || !caller.alive);
      },
      cancel: abort,
    });
  }

  async #feed(
    caller: Caller,
    { pieces, pace, end, usageAt, record }: Feed,
    controller: ReadableStreamDefaultController<Uint8Array>,
    isOver: () => boolean,
  ): Promise<void> {
    const encoder = new TextEncoder();
    for (const [index, piece] of pieces.entries()) {
      if (pace > 0) await this.clock.sleep(pace);
      if (isOver()) return this.#end(record, "lost");
      let dies: Extract<Fault, { kind: "crash" }> | undefined;
      for (const fault of this.plane.cross(caller.conversation, "model.piece")) {
        if (fault.kind === "crash") dies = fault;
        else if (fault.kind !== "jump") this.plane.fire(fault);
        if (fault.kind === "loss") return;
        if (fault.kind === "error") {
          // Unread data is lost with the connection.
          const unread = 1 - (controller.desiredSize ?? 1);
          if (usageAt !== undefined && usageAt >= index - unread) record.isCounted = false;
          this.#end(record, "complete");
          return controller.error(new InjectedError("connection reset"));
        }
        if (fault.kind === "delay") await this.clock.sleep(fault.ms);
      }
      if (isOver()) return;
      if (dies?.when !== "before") {
        controller.enqueue(encoder.encode(piece));
        if (index === usageAt) record.isCounted = true;
        if (index === 0 && "tag" in record) this.moments.note(caller.conversation, "streaming");
      }
      if (dies === undefined) continue;
      this.plane.fire(dies);
      caller.die();
      return;
    }
    if (end !== "complete" || isOver()) return;
    this.#end(record, "complete");
    controller.close();
  }

  #end(record: Feed["record"], how: "complete" | "aborted" | "lost"): void {
    if (record.over !== undefined) return;
    record.over = { how, step: nextStep(this.history) };
    if (how === "aborted") this.note(record.conversation, `the request ${record.requestId} is aborted`);
  }
}

/** Never resolves; rejects when aborted, as `fetch` does. */
function hang(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
