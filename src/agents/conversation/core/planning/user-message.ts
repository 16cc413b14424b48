/** Starts a turn with a user's message. */
import { checkPrices } from "../../../../library/registry/prices.ts";
import type { ModelContext, ToolSpec } from "../../../../model/context.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import { MAX_TURN_NUMBER } from "../../../../protocol/ids.ts";
import { defined } from "../../../../shared/defined.ts";
import { DramatisError } from "../../../../shared/errors.ts";
import { invalidAt } from "../../../../shared/validation.ts";
import { activeLength, lengthOf } from "../content-size.ts";
import { MAX_ACTIVE_CONTENT, MAX_ACTIVE_TURNS } from "../conversation-limits.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { checkOpen } from "../life.ts";
import type { UserMessage } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import { planTitle } from "../titles.ts";
import { addressee } from "./address.ts";
import { NOT_RUN } from "./cancel.ts";
import { planStart, type Start } from "./order.ts";

/**
 * Throws `TOO_MANY_TURNS` if the conversation takes no more content, `INVALID_INPUT` for tools that cannot be used,
 * `CONVERSATION_CLOSED` if it has ended.
 */
export function planUserMessage(
  state: ConversationState,
  signal: UserMessage,
  input: PlanInput,
): AgentDecision[] {
  checkOpen(state);
  const { id: clientId, correlationId, caller, data, replied } = signal;
  const {
    content,
    replyToMessageId: replyTo,
    to,
    output,
    tools,
    toolChoice,
    maxOutputTokens,
    singleCalls,
    foreground,
    budget,
    untrusted,
    traceparent,
  } = data;
  if (state.active.size >= MAX_ACTIVE_TURNS)
    throw tooMany(`This conversation has ${MAX_ACTIVE_TURNS} active turns; wait for one to complete.`);
  if (activeLength(state) + lengthOf(content) + lengthOf(tools) > MAX_ACTIVE_CONTENT)
    throw tooMany("The active turns of this conversation hold too much content; wait for one to complete.");
  const turn = state.turns + 1;
  if (turn > MAX_TURN_NUMBER) throw tooMany("This conversation is full; start a new one.", false);
  const { id: agentId, chain } = addressee(state, signal, input);
  checkClientTools(chain, tools, toolChoice);
  if (budget !== undefined) checkPrices(chain, budget);
  const { before, after } = begin(state, turn, signal, agentId, input);
  const { replacement } = signal;
  return [
    ...before,
    {
      type: "START_TURN",
      turn,
      stem: input.stem,
      agentId,
      caller,
      ...defined({ clientId, correlationId, traceparent }),
      ...(replacement && { [replacement.kind]: replacement.id, moves: replacement.taken }),
      input: content,
      ...(untrusted === true && { inputTaint: ["import"] as const }),
      ...defined({
        replyTo,
        to,
        replied,
        output,
        tools,
        toolChoice,
        maxOutputTokens,
        singleCalls,
        foreground,
        budget,
      }),
    },
    ...(replacement ? [{ type: "SUPERSEDE" as const, turn, stem: input.stem, agentId, replacement }] : []),
    ...after,
    ...planTitle(state, signal, input),
  ];
}

function begin(
  state: ConversationState,
  turn: number,
  signal: UserMessage,
  agentId: string,
  input: PlanInput,
): Start {
  if (state.gate === "cancelled") return refuse(turn);
  // Later turns see the message. Its turn calls no model, so it does not wait or interrupt other turns.
  if (state.orchestration === false) return { before: [], after: [{ type: "COMPLETE_TURN", turn }] };
  return planStart(state, turn, signal, agentId, input);
}

/** Plans the turn of a message to a conversation that is stopped. */
function refuse(turn: number): Start {
  return { before: [], after: [{ type: "FAIL_TURN", turn, error: NOT_RUN }] };
}

/** Throws `INVALID_INPUT` for a tool with the name of one of the agent's, and for the choice of an unknown tool. */
function checkClientTools(
  chain: VersionChain,
  tools: readonly ToolSpec[] = [],
  choice: ModelContext["toolChoice"] = "auto",
): void {
  const own = new Set(chain.tools.map(({ definition }) => definition.name));
  const taken = tools.findIndex(({ name }) => own.has(name));
  if (taken >= 0)
    throw invalidMember(`/tools/${taken}/name`, "The agent has a tool of this name; choose another name.");
  if (choice === "required" && own.size + tools.length === 0) {
    throw invalidMember(
      "/toolChoice",
      "This turn has no tools, so the model cannot be required to call one.",
    );
  }
  if (typeof choice !== "object" || own.has(choice.name)) return;
  if (tools.some(({ name }) => name === choice.name)) return;
  throw invalidMember(
    "/toolChoice/name",
    "The agent and the message have no tool with this name. Choose a tool of the agent or of the message.",
  );
}

function tooMany(message: string, retriable = true): DramatisError {
  return new DramatisError("TOO_MANY_TURNS", message, { retriable });
}

function invalidMember(path: string, message: string): DramatisError {
  return invalidAt(path, message, `${path}: ${message}`);
}
