/** What is to be called for a turn: the history, the plan and the adapter, each checked where it comes from outside. */

import { z } from "zod";
import { defined } from "../shared/defined.ts";
import { DramatisError } from "../shared/errors.ts";
import { validate } from "../shared/validation.ts";
import type { HistoryBuilder, HistoryBuildResult } from "./history.ts";
import type { PlannedTurn, TurnPlanner } from "./planner.ts";
import type { ChatInputMessage, ProviderAdapter, ProviderChatRequest } from "./provider-adapter.ts";
import type { ConversationMessage, ConversationRecord } from "./types.ts";

export interface CallPlanPorts {
  historyBuilder: HistoryBuilder;
  planner: TurnPlanner;
  providers: ReadonlyMap<string, ProviderAdapter>;
}

export interface CallPlanInput {
  conversation: ConversationRecord;
  messages: readonly ConversationMessage[];
  turnId: string;
  agent: string;
  hints?: Record<string, unknown>;
}

const plannedTurn = z.object({
  provider: z.string().min(1),
  model: z.string(),
  parameters: z.record(z.string(), z.unknown()).optional(),
});

const history = z.array(
  z.looseObject({ role: z.enum(["system", "user", "assistant", "tool", "other"]), content: z.unknown() }),
);

/** What the model is sent. Throws what the builder throws, or `INVALID_INPUT` for an answer that is no history. */
export async function builtHistory(
  { historyBuilder }: CallPlanPorts,
  { conversation, messages, turnId, agent }: CallPlanInput,
): Promise<{ messages: ChatInputMessage[]; truncated?: boolean }> {
  const built = await historyBuilder.buildHistory({ conversation, messages, nextTurnId: turnId, agent });
  const result: Partial<HistoryBuildResult> = Array.isArray(built) ? { messages: built } : built;
  const { messages: chosen = [], truncated } = result;
  validate(history, chosen, "", "The history builder's answer");
  return { messages: chosen, ...defined({ truncated }) };
}

/** Provider, model and parameters. Throws what the planner throws, or `INVALID_INPUT` for an answer that is no plan. */
export async function plannedCall(
  { planner }: CallPlanPorts,
  { conversation, messages, agent, hints }: CallPlanInput,
): Promise<PlannedTurn> {
  const plan = await planner.planTurn({
    ...{ conversation, messages, agent },
    ...defined({ hints }),
  });
  const { provider, model, parameters } = validate(plannedTurn, plan, "", "The planner's answer");
  return { provider, model, ...defined({ parameters }) };
}

/** The adapter of a plan. Throws `UNSUPPORTED` for a provider that is not configured. */
export function adapterOf({ providers }: CallPlanPorts, { provider, model }: PlannedTurn): ProviderAdapter {
  const adapter = providers.get(provider);
  if (adapter === undefined) {
    const known = [...providers.keys()].map((name) => `"${name}"`).join(", ") || "none";
    throw new DramatisError(
      "UNSUPPORTED",
      `The provider "${provider}" is not configured; configured: ${known}.`,
    );
  }
  if (model === "") {
    throw new DramatisError("INVALID_INPUT", `The plan names no model for the provider "${provider}".`);
  }
  return adapter;
}

/** The request of a plan. */
export function requestOf(plan: PlannedTurn, messages: ChatInputMessage[]): ProviderChatRequest {
  const { model, parameters } = plan;
  return { messages, model, ...defined({ parameters }) };
}
