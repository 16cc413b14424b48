/** The entries of a turn with content that a reader may erase. Pure. */
import { type Content, type TurnState, textOf } from "../../src/client/index.ts";
import { inputPreview, titleFrom } from "./format.ts";

/** The server's replacement for erased content. */
const ERASED = "[erased]";

export interface ErasableEntry {
  /** The id of the message or of the operation. */
  id: string;
  /** The speaker of a message, or the name of a tool. */
  name: string;
  /** The beginning of its content on one line. */
  preview: string;
  isErased: boolean;
}

/** Returns the messages and the tool calls of a turn, in their order. The list is empty while the turn is active. `nameOf` returns the name of an agent. */
export function erasableOf(turn: TurnState, nameOf: (agentId: string) => string): ErasableEntry[] {
  if (turn.status === "active") return [];
  return turn.items.flatMap((item) => {
    if (item.type === "message") {
      const { id, role, content, agentId, runId } = item.message;
      const agent = runId === undefined ? nameOf(agentId ?? turn.agentId) : "A workflow";
      const name = role === "user" && runId === undefined ? "You" : agent;
      return [{ id, name, preview: previewOfContent(content), isErased: content === ERASED }];
    }
    if (item.type !== "tool") return [];
    const { id, name, input, result, agent } = item.operation;
    const isErased = result === ERASED;
    return [{ id, name, preview: titleFrom(inputPreview(input, agent !== undefined), 80), isErased }];
  });
}

function previewOfContent(content: Content): string {
  const text = titleFrom(textOf(content), 80);
  return text === "" ? "A file" : text;
}
