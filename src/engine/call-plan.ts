/** Preparation of a provider call: history, plan and adapter. Checks the answers of replaceable parts. */
import { z } from "zod";
import { defined } from "../shared/defined.ts";
import { DramatisError, invalid } from "../shared/errors.ts";
import { validate } from "../shared/validation.ts";
import type { HistoryBuilder, HistoryBuildResult } from "./history.ts";
import type { PlannedTurn, PlanTurnInput, TurnPlanner } from "./planner.ts";
import type { ChatInputMessage, ProviderAdapter } from "./provider-adapter.ts";

export interface CallPlanPorts {
  historyBuilder: HistoryBuilder;
  planner: TurnPlanner;
  providers: ReadonlyMap<string, ProviderAdapter>;
}

const plannedTurn = z.object({
  provider: z.string().min(1),
  model: z.string(),
  parameters: z.record(z.string(), z.unknown()).optional(),
});

const history = z.array(
  z.looseObject({ role: z.enum(["system", "user", "assistant", "tool", "other"]), content: z.unknown() }),
);

/** Builds the messages to send. Rejects as the builder does, or with `INVALID_INPUT` for an invalid answer. */
export async function buildHistory(
  { historyBuilder }: CallPlanPorts,
  { conversation, messages, agent }: PlanTurnInput,
  nextTurnId: string,
): Promise<{ messages: ChatInputMessage[]; truncated?: boolean }> {
  const built = await historyBuilder.buildHistory({ conversation, messages, nextTurnId, agent });
  const result: Partial<HistoryBuildResult> = Array.isArray(built) ? { messages: built } : built;
  const { messages: chosen = [], truncated } = result;
  validate(history, chosen, "", "The history builder's answer");
  return { messages: chosen, ...defined({ truncated }) };
}

/** Plans the turn. Rejects as the planner does, or with `INVALID_INPUT` for an invalid answer. */
export async function planCall({ planner }: CallPlanPorts, input: PlanTurnInput): Promise<PlannedTurn> {
  const plan = await planner.planTurn(input);
  const { provider, model, parameters } = validate(plannedTurn, plan, "", "The planner's answer");
  return { provider, model, ...defined({ parameters }) };
}

/** Finds the adapter of a plan. Throws `UNSUPPORTED` for an unknown provider, `INVALID_INPUT` for a missing model. */
export function adapterOf({ providers }: CallPlanPorts, { provider, model }: PlannedTurn): ProviderAdapter {
  const adapter = providers.get(provider);
  if (adapter === undefined) {
    const known = [...providers.keys()].map((name) => `"${name}"`).join(", ") || "none";
    throw new DramatisError(
      "UNSUPPORTED",
      `The provider "${provider}" is not configured; configured: ${known}.`,
    );
  }
  if (model === "") throw invalid(`The plan names no model for the provider "${provider}".`);
  return adapter;
}
