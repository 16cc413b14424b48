/** The inputs of hooks. */
import { hookInput, type ShownMemory } from "../../../library/hooks/hook-inputs.ts";
import { joinedMarks, type Mark, markOfRequest } from "../../../model/mark.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import { turnId } from "../../../protocol/ids.ts";
import type { OfferedMemory } from "../../../protocol/memory.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { markOfTurn } from "../core/marks.ts";
import { baseContext } from "../core/planning/context.ts";
import { type ConversationIdentity, chainOf } from "../core/state.ts";
import { finalReply, operationsOf, type Turn } from "../core/turn.ts";

/** The input of a hook, and its mark. */
interface HookInput {
  input: JsonObject;
  mark: Mark;
}

/** Returns the input of a context hook. `history` is the window of the session that the cycle sees; `memories` are those that its agent recalls. */
export function assemblyInput(
  record: ConversationIdentity,
  turn: Turn,
  history: readonly ContextMessage[],
  memories?: readonly ShownMemory[],
): HookInput {
  const { modelProfile } = chainOf(record, turn.agentId);
  const { apiKeySecret: _key, fallbacks: _fallbacks, ...profile } = modelProfile.definition;
  const { systemInstructions, tools, toolChoice, output } = baseContext(record, [], turn);
  const first = history.findIndex(({ role }) => role === "user");
  const summary = history.slice(0, first === -1 ? history.length : first);
  const { mark, echoes } = markOfRequest(history);
  const { replied, besidesMark } = turn;
  const replyTo = replied && { role: replied.role, text: replied.text, ...defined({ by: replied.by }) };
  const input = hookInput("contextAssembly", {
    conversation_id: record.id,
    turn_id: turnId(turn),
    user_message: turn.input,
    recent_turns: turnsOf(first === -1 ? [] : history.slice(first)),
    summary: summary.length === 0 ? undefined : summary.map(({ content }) => content).join("\n"),
    model_profile: profile,
    tool_definitions: tools,
    system_instructions: systemInstructions,
    active_turns: turn.assembly?.others ?? [],
    reply_to: replyTo,
    output,
    tool_choice: toolChoice === "auto" ? undefined : toolChoice,
    memories,
  });
  return { input, mark: joinedMarks(mark, echoes, replied?.mark, besidesMark, markOfTurn(turn)) };
}

/** Returns the messages by turns. Each turn begins with its user's message. */
function turnsOf(history: readonly ContextMessage[]): { messages: ContextMessage[] }[] {
  const turns: { messages: ContextMessage[] }[] = [];
  for (const { metadata: _metadata, native: _native, ...message } of history) {
    if (message.role === "user") turns.push({ messages: [] });
    turns.at(-1)?.messages.push(message);
  }
  return turns;
}

/** Returns the input of an extraction. `memories` has the memories that it may change; absent for an agent without memory. */
export function extractionInput(
  record: ConversationIdentity,
  turn: Turn,
  memories?: readonly OfferedMemory[],
): HookInput {
  const moves = turn.replies.flatMap(({ text, reasoning }, index) => {
    const said = defined({ reasoning, text: text === "" ? undefined : text });
    const operations = operationsOf(turn, index);
    if (operations.length === 0) return [said];
    return operations.map(({ toolCallId: id, name, input, result }, place) => {
      const { success, result: value, error } = result ?? { success: false };
      const tool_result = { success, ...defined({ result: value, error }) };
      return { ...(place === 0 ? said : {}), tool_call: { id, name, input }, tool_result };
    });
  });
  const input = hookInput("memoryExtraction", {
    conversation_id: record.id,
    turn_id: turnId(turn),
    caller: turn.caller,
    user_message: turn.input,
    user_text: plainText(turn.input),
    agent_message: finalReply(turn)?.text ?? null,
    turn_transcript: moves.map((move, index) => ({ sequence: index + 1, ...move })),
    completed_at: new Date(turn.completedAt ?? turn.createdAt).toISOString(),
    said_at: new Date(turn.createdAt).toISOString(),
    time_zone: chainOf(record, turn.agentId).persona.definition.memory?.timeZone,
    memories,
  });
  return { input, mark: markOfTurn(turn) };
}
