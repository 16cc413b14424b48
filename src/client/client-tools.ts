/** Runs the tools of a client, each call once: in one tab of several, and not again after a reload while another tab runs it. */
import type { Clock } from "../ports/clock.ts";
import type { ToolOutcome } from "../protocol/requests.ts";
import { exactJson } from "../shared/exact-json.ts";
import type { Json } from "../shared/json.ts";
import { runtimeClock } from "./clock.ts";
import { pendingCalls } from "./outbox.ts";
import type { LiveConversation, PendingCall } from "./state.ts";

/** Runs a call of a tool. A thrown error becomes the call's error. */
export type ClientTool = (
  input: PendingCall["input"],
  call: PendingCall,
) => Json | undefined | Promise<Json | undefined>;

/** The part of a connection that `runClientTools` uses. */
export interface ClientToolHost {
  getSnapshot(): LiveConversation;
  subscribe(listener: () => void): () => void;
  claimTool(operationId: string): Promise<boolean>;
  submitToolResult(operationId: string, outcome: ToolOutcome): void;
}

/** Milliseconds until a call that another tab has claimed is claimed again: that tab may have been closed. */
const CLAIM_AGAIN_MS = 5_000;

/**
 * Runs the calls of these tools, by name, including calls that already wait. Returns a function that stops starting calls.
 *
 * @example
 * const conversation = connectConversation({ id: "conv_…", host: "http://127.0.0.1:8787" });
 * const stop = runClientTools(conversation, { location: () => ({ city: "Berlin" }) });
 */
export function runClientTools(
  conversation: ClientToolHost,
  tools: Readonly<Record<string, ClientTool>>,
  clock: Pick<Clock, "timer"> = runtimeClock,
): () => void {
  const taken = new Set<string>();
  let isStopped = false;
  const start = async (call: PendingCall) => {
    const { operationId, name } = call;
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
    if (tool === undefined || taken.has(operationId)) return;
    taken.add(operationId);
    if (!(await conversation.claimTool(operationId))) {
      clock.timer(CLAIM_AGAIN_MS, () => {
        taken.delete(operationId);
        look();
      });
      return;
    }
    const outcome = await outcomeOf(tool, call);
    if (pendingCalls(conversation.getSnapshot()).some((pending) => pending.operationId === operationId))
      conversation.submitToolResult(operationId, outcome);
  };
  const look = () => {
    if (isStopped) return;
    for (const call of pendingCalls(conversation.getSnapshot())) void start(call);
  };
  const unsubscribe = conversation.subscribe(look);
  look();
  return () => {
    isStopped = true;
    unsubscribe();
  };
}

async function outcomeOf(tool: ClientTool, call: PendingCall): Promise<ToolOutcome> {
  try {
    return { result: JSON.parse(exactJson(await tool(call.input, call))) };
  } catch (error) {
    return {
      error: { message: error instanceof Error && error.message !== "" ? error.message : String(error) },
    };
  }
}
