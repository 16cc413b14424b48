/** Asks a joining agent for its versions. */
import { toErrorData } from "../../../shared/errors.ts";
import type { RuntimeContext } from "../context.ts";
import type { JoinEffect } from "../core/effects.ts";
import type { AgentInvited, EffectSignal, Invitation } from "../core/signals.ts";
import { type ConversationIdentity, takesPart } from "../core/state.ts";

type JoinContext = Pick<RuntimeContext, "clock" | "invite">;

/** Returns the outcome; `undefined` after an abort. Never throws. */
export async function askToJoin(
  context: JoinContext,
  record: ConversationIdentity,
  { turn: { n: turn }, operation }: JoinEffect,
  signal: AbortSignal,
): Promise<AgentInvited | undefined> {
  const { item, attempt, agent, notBefore = 0 } = operation;
  const { clock } = context;
  const wait = notBefore - clock.now();
  if (wait > 0) await clock.sleep(wait, signal).catch(() => undefined);
  if (signal.aborted) return undefined;
  const address = { type: "conversation.agent.invited", turn, item, attempt } as const;
  try {
    return { ...address, outcome: await invitation(context, record, agent?.id ?? "") };
  } catch (error) {
    return { ...address, outcome: { error: toErrorData(error) } };
  }
}

/** Returns the definitions of a joining agent. An agent that already takes part has no new definitions. */
export async function invitation(
  { invite }: Pick<JoinContext, "invite">,
  record: ConversationIdentity,
  agentId: string,
): Promise<Invitation> {
  if (takesPart(record, { type: "agent", id: agentId })) return {};
  return invite(record, agentId);
}

/** Reports whether an outcome adds an agent to the conversation, so that lists change. */
export function bringsAgent(outcome: EffectSignal): boolean {
  return outcome.type === "conversation.agent.invited" && outcome.outcome.error === undefined;
}
