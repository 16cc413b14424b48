/** UI messages of the AI SDK, in the form that the two chat classes of the Agents SDK store. */
import { tool, type UIMessage } from "ai";
import { lookup, seededMessage, TOOL_DESCRIPTION, TOOL_NAME, toolInput } from "../workload.ts";

/** The tool of the workload as an AI SDK tool set. */
export const tools = {
  [TOOL_NAME]: tool({ description: TOOL_DESCRIPTION, inputSchema: toolInput, execute: lookup }),
};

export function userMessage(text: string): UIMessage {
  return { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
}

export function seededMessages(count: number): UIMessage[] {
  return Array.from({ length: count }, (_, index) => {
    const { id, role, text } = seededMessage(index);
    return { id, role, parts: [{ type: "text", text }] };
  });
}

/** Returns the text of the newest answer. Throws without an answer. */
export function answerOf(messages: readonly UIMessage[]): string {
  const last = messages.findLast(({ role }) => role === "assistant");
  if (last === undefined) throw new Error("The turn left no answer.");
  return last.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}
