/** The inputs of hooks. */
import { hookInput, type ShownMemory } from "../../../library/hooks/hook-inputs.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import { joinTaints, type Taint, taintOfRequest } from "../../../model/taint.ts";
import { turnId } from "../../../protocol/ids.ts";
import type { OfferedMemory } from "../../../protocol/memory.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { baseContext } from "../core/planning/context.ts";
import { type ConversationIdentity, chainOf } from "../core/state.ts";
import { taintOfTurn } from "../core/taints.ts";
import type { Turn } from "../core/turn.ts";
import { finalReply, operationsOf } from "../core/turn-operations.ts";

interface HookInput {
  input: JsonObject;
  taint: Taint;
}

/** Returns the input of a context hook. `history` is the window of the session for this cycle. `memories` are the recalled memories. */
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
  const { taint, echoes } = taintOfRequest(history);
  const { replied, concurrentTaint } = turn;
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
  return { input, taint: joinTaints(taint, echoes, replied?.taint, concurrentTaint, taintOfTurn(turn)) };
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

/** Returns the input of an extraction. `memories` are the memories that it may change. They are absent for an agent without memory. */
export function extractionInput(
  record: ConversationIdentity,
  turn: Turn,
  memories?: readonly OfferedMemory[],
): HookInput {
  const moves = turn.replies.flatMap(({ text, reasoning }, index) => {
    const words = defined({ reasoning, text: text === "" ? undefined : text });
    const operations = operationsOf(turn, index);
    if (operations.length === 0) return [words];
    return operations.map(({ toolCallId: id, name, input, result }, place) => {
      const { success, result: value, error } = result ?? { success: false };
      const tool_result = { success, ...defined({ result: value, error }) };
      return { ...(place === 0 ? words : {}), tool_call: { id, name, input }, tool_result };
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
    sent_at: new Date(turn.createdAt).toISOString(),
    time_zone: chainOf(record, turn.agentId).persona.definition.memory?.timeZone,
    memories,
  });
  return { input, taint: taintOfTurn(turn) };
}
