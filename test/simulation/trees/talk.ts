/** The messages of simulated agents: the tools of a plan, the purpose of a request, and the replies of a model. */
import type { defineTool } from "../../../src/library/define/define.ts";
import type { ModelDelta } from "../../../src/model/reply.ts";
import type { CallPlan, WorkPlan } from "./plan.ts";

export interface ModelRequest {
  conversation: string;
  messages: { role: string; content: string | null; tool_calls?: unknown[] }[];
  /** Tokens that the provider counts. */
  tokens: number;
  /** It was answered in full. */
  answered: boolean;
}

/** Returns the name of the tool that makes a call. */
export function toolOf({ background, repeats, approval, joins, work }: CallPlan): string {
  const ways = [repeats && "_again", approval !== undefined && "_careful", joins && "_join"];
  return `${background ? "later" : "ask"}${ways.filter(Boolean).join("")}_${work.agent}`;
}

export function toolOptions(
  name: string,
  { background, repeats, approval, joins, work }: CallPlan,
  timeoutMs: number,
): Parameters<typeof defineTool>[0] {
  return {
    name,
    description: "Asks.",
    target: { agent: work.agent, ...(joins ? { mode: "loop_in" } : {}) },
    async: background,
    timeoutMs,
    ...(repeats ? { effect: "idempotent", retry: { maxAttempts: 2 } } : {}),
    ...(approval === undefined ? {} : { approval: "always" }),
  };
}

/** Reports whether calls of a tool need an approval. */
export function isCareful(name: string): boolean {
  return name.includes("_careful_");
}

/** Returns the index of the message that a request answers: the last user message that contains work. */
export function workIndex(messages: ModelRequest["messages"]): number {
  return messages.findLastIndex(({ role, content }) => role === "user" && WORK.test(content ?? ""));
}

/** Returns the id of the work that a request is for. */
export function workIn(messages: ModelRequest["messages"]): number {
  return Number(WORK.exec(messages[workIndex(messages)]?.content ?? "")?.[1]);
}

/** The message of a user, or of an agent to an agent that joins. */
const WORK = /^(?:(?:The user|user "[^"]+"|agent "[^"]+")(?: to [^:]+)?: )?\{"id":(\d+)/;

/** Returns the reply of an agent's model: its calls at first, then its answer. */
export function replyOf(
  work: WorkPlan,
  messages: ModelRequest["messages"],
  tokens: { inputTokens: number; outputTokens: number },
): ModelDelta[] {
  const usage: ModelDelta = { type: "usage", usage: tokens };
  const since = messages.slice(workIndex(messages));
  const hasCalled = since.some(({ tool_calls: calls }) => calls !== undefined);
  if (work.end === "decline")
    return [
      { type: "tool-call", index: 0, id: "c0", name: "decline", arguments: '{"reason": "No."}' },
      usage,
      { type: "finish", reason: "tool_calls" },
    ];
  if (work.end === "silent") return [usage, { type: "finish", reason: "stop" }];
  if (work.calls.length > 0 && !hasCalled)
    return [
      ...work.calls.map(
        (call, index): ModelDelta => ({
          type: "tool-call",
          index,
          id: `c${index}`,
          name: toolOf(call),
          arguments: JSON.stringify({ message: JSON.stringify(hidden(call.work)) }),
        }),
      ),
      usage,
      { type: "finish", reason: "tool_calls" },
    ];
  return [
    { type: "text", text: `Done ${work.id}: ${work.secret}` },
    usage,
    { type: "finish", reason: "stop" },
  ];
}

/** Returns a work as its agent sees it: without secrets, which only answers contain. */
export function hidden(work: WorkPlan): object {
  const { padding = 0 } = work;
  return { ...bare(work), ...(padding > 0 ? { pad: "€".repeat(padding) } : {}) };
}

function bare({ id, calls }: WorkPlan): object {
  return { id, calls: calls.map((call) => bare(call.work)) };
}
