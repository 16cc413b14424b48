/** The tool that simulated clients run. */

import type { PendingCall } from "../../src/client/state.ts";
import type { ToolSpec } from "../../src/model/context.ts";
import type { ToolOutcome } from "../../src/protocol/requests.ts";
import type { ClientSurroundings } from "./client.ts";
import type { Submission } from "./history.ts";
import type { CallPlan, MessagePlan } from "./plan.ts";
import { plannedCalls } from "./planned-calls.ts";

/** Timeout of a client tool, in milliseconds. */
export const CLIENT_TOOL_TIMEOUT_MS = 60_000;
/** Delay before a client repeats a result, in milliseconds. */
const AGAIN_MS = 400;

export const ASK: ToolSpec = {
  name: "ask",
  description: "A tool that the client runs.",
  inputSchema: { type: "object", properties: { call: { type: "string" } }, required: ["call"] },
};

export function toolsOf({ replies }: MessagePlan): { tools?: ToolSpec[] } {
  return replies.some(({ calls }) => calls.some(({ tool }) => tool === "ask")) ? { tools: [ASK] } : {};
}

/** Runs each pending call of one client once, and sends the planned results. */
export class ClientToolRunner {
  readonly #begun = new Set<string>();
  readonly #calls: ReturnType<typeof plannedCalls>;

  constructor(
    private readonly world: ClientSurroundings,
    private readonly isGone: () => boolean,
    private readonly give: (submission: Submission) => void,
  ) {
    this.#calls = plannedCalls(world.history.plan);
  }

  run({ operationId: id, input }: Pick<PendingCall, "operationId" | "input">): void {
    const call = callOf(input);
    const plan = this.#calls.get(call);
    const isOwn = call.startsWith(`#${this.world.conversation}.${this.world.client}.`);
    if (plan === undefined || plan.outcome === "never" || this.#begun.has(id)) return;
    if (!isOwn && plan.rivals !== true) return;
    this.#begun.add(id);
    this.world.clock.timer(plan.ms, () => this.#give(id, call, plan, 0));
    if (plan.again === undefined) return;
    const version = plan.again === "same" ? 0 : 1;
    this.world.clock.timer(plan.ms + AGAIN_MS, () => this.#give(id, call, plan, version));
  }

  #give(operationId: string, call: string, { outcome }: CallPlan, version: number): void {
    if (this.isGone()) return;
    const { clock, history, conversation, client } = this.world;
    const given: ToolOutcome =
      outcome === "answer"
        ? { result: { call, client, version } }
        : { error: { message: `Planned: client ${client} could not, ${version}.` } };
    const submission = { conversation, client, operationId, outcome: given, at: clock.now() };
    history.submissions.push(submission);
    this.give(submission);
  }
}

export function callOf(input: unknown): string {
  return typeof input === "object" && input !== null && "call" in input ? String(input.call) : "";
}
