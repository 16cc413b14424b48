/** The answers of simulated people to calls that need an approval. */
import type { PendingCall } from "../../src/client/state.ts";
import type { ClientSurroundings } from "./client.ts";
import { callOf } from "./client-tool.ts";
import type { ApprovalRecord } from "./history.ts";
import { CAREFUL_NAMES, type MessagePlan } from "./plan.ts";
import { plannedCalls } from "./planned-calls.ts";

/** Time limit for the approval of a call, in milliseconds. */
export const APPROVAL_TIMEOUT_MS = 60_000;
/** Delay before a client repeats an answer, in milliseconds. */
const AGAIN_MS = 400;

const CAREFUL: ReadonlySet<string> = new Set(CAREFUL_NAMES);

/** Reports whether calls of a tool need an approval. */
export function isCareful(name: string): boolean {
  return CAREFUL.has(name);
}

/** Reports whether a reply to a message makes a call that needs an approval. */
export function needsApproval({ replies }: MessagePlan): boolean {
  return replies.some(({ calls }) => calls.some(({ tool }) => isCareful(tool)));
}

/** Answers each request for approval that a client sees, as planned. */
export class Approver {
  readonly #begun = new Set<string>();
  readonly #calls: ReturnType<typeof plannedCalls>;

  constructor(
    private readonly world: ClientSurroundings,
    private readonly isGone: () => boolean,
    private readonly give: (answer: ApprovalRecord) => void,
  ) {
    this.#calls = plannedCalls(world.history.plan);
  }

  see({ operationId: id, input }: Pick<PendingCall, "operationId" | "input">): void {
    const call = callOf(input);
    const plan = this.#calls.get(call)?.approval;
    const isOwn = call.startsWith(`#${this.world.conversation}.${this.world.client}.`);
    if (plan === undefined || this.#begun.has(id) || (!isOwn && plan.rivals !== true)) return;
    this.#begun.add(id);
    const approves = plan.approves === isOwn;
    this.world.clock.timer(plan.ms, () => this.#answer(id, approves));
    if (plan.again === undefined) return;
    const again = plan.again === "same" ? approves : !approves;
    this.world.clock.timer(plan.ms + AGAIN_MS, () => this.#answer(id, again));
  }

  #answer(operationId: string, approved: boolean): void {
    if (this.isGone()) return;
    const { clock, history, conversation, client, plan } = this.world;
    const record = { conversation, client, user: plan.user, operationId, approved, at: clock.now() };
    history.approvals.push(record);
    this.give(record);
  }
}
