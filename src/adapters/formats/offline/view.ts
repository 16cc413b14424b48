/** What the rules see of a request: the message to answer, and what came before and after it. */
import type { JsonObject } from "../../../shared/json.ts";
import type { OfflineBody, OfflineMessage } from "./body.ts";

/** The result of one tool call of the turn that is being answered. */
export interface SeenResult {
  tool: string;
  text: string;
  failed: boolean;
}

export interface View {
  /** The last user message. */
  text: string;
  /** User messages before it, oldest first. */
  earlier: readonly string[];
  /** Results that came since, in order. */
  results: readonly SeenResult[];
  /** Replies with tool calls since. */
  rounds: number;
  /** A system message that came last: something the platform tells the agent. */
  notice: string | undefined;
  mayCallTools: boolean;
  /** The tool that must be called now, and the schema of its arguments. */
  forced: { tool: string; schema: JsonObject } | undefined;
  /** What the answer must be. */
  output: JsonObject | undefined;
  /** Whether this tool is offered and may be called. */
  offers(tool: string): boolean;
}

export function viewOf({ messages, tools, toolChoice, output }: OfflineBody): View {
  const last = messages.findLastIndex(({ role }) => role === "user");
  const since = messages.slice(last + 1);
  const names = new Set(tools.map(({ name }) => name));
  const mayCallTools = toolChoice !== "none";
  const end = last >= 0 ? since.at(-1) : undefined;
  return {
    text: messages[last]?.text ?? "",
    earlier: messages
      .slice(0, Math.max(last, 0))
      .flatMap(({ role, text }) => (role === "user" ? [text] : [])),
    results: resultsOf(since),
    rounds: since.filter(({ calls }) => calls !== undefined && calls.length > 0).length,
    notice: end?.role === "system" ? end.text : undefined,
    mayCallTools,
    forced: forcedTool(tools, toolChoice),
    output: output?.schema,
    offers: (tool) => mayCallTools && names.has(tool),
  };
}

function forcedTool(tools: OfflineBody["tools"], choice: OfflineBody["toolChoice"]): View["forced"] {
  if (choice === "auto" || choice === "none") return undefined;
  const tool = choice === "required" ? tools[0] : tools.find(({ name }) => name === choice.name);
  return tool === undefined ? undefined : { tool: tool.name, schema: tool.inputSchema };
}

function resultsOf(messages: readonly OfflineMessage[]): SeenResult[] {
  const names = new Map(
    messages.flatMap(({ calls = [] }) => calls.map(({ id, name }) => [id, name] as const)),
  );
  return messages.flatMap(({ role, text, name, callId = "", failed = false }) =>
    role === "tool" ? [{ tool: names.get(callId) ?? name ?? "the tool", text, failed }] : [],
  );
}
