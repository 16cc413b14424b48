/** The tool that ends a turn without a message, and the turns that have it (TALK-4). Pure. */
import type { ToolSpec } from "../../../../model/context.ts";
import { type ConversationIdentity, chainOf } from "../state.ts";
import type { Turn } from "../turn.ts";

export const STAY_SILENT: ToolSpec = {
  name: "stay_silent",
  description:
    "Another agent gave you the word. If you have nothing to add, call this, and nothing else: your turn then ends without a message.",
  inputSchema: { type: "object", properties: {}, additionalProperties: false },
};

type Speaker = Pick<Turn, "agentId" | "caller" | "tools" | "output">;

/** Returns the additional tools of a turn: its client's tools, and the tool to stay silent. */
export function toolsBeside(
  record: Pick<ConversationIdentity, "agents" | "call">,
  turn: Speaker,
): readonly ToolSpec[] {
  const { tools = [] } = turn;
  return maySilence(record, turn) ? [...tools, STAY_SILENT] : tools;
}

/** Reports whether a turn may end without a message. */
export function maySilence(
  record: Pick<ConversationIdentity, "agents" | "call">,
  { agentId, caller, output }: Speaker,
): boolean {
  if (caller.type !== "agent" || record.call !== undefined || output !== undefined) return false;
  return !chainOf(record, agentId).tools.some(({ definition }) => definition.name === STAY_SILENT.name);
}
