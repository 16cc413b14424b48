/** Asks an agent that is to join for its versions. */
import type { Clock } from "../../../ports/clock.ts";
import { DramatisError, toErrorData } from "../../../shared/errors.ts";
import type { JoinEffect } from "../core/effects.ts";
import type { AgentInvited, EffectSignal, Invitation } from "../core/signals.ts";
import { type ConversationIdentity, takesPart } from "../core/state.ts";

export interface JoinPorts {
  clock: Pick<Clock, "now" | "sleep">;
  /** Returns what an agent brings. Throws `NOT_FOUND` for an unknown agent, `FORBIDDEN` for one of other projects, `UNAVAILABLE`. */
  invite(agentId: string): Promise<Invitation>;
}

/** Returns the outcome; `undefined` once aborted. Never throws. */
export async function askToJoin(
  { clock, invite }: JoinPorts,
  { turn: { n: turn }, operation }: JoinEffect,
  signal: AbortSignal,
): Promise<AgentInvited | undefined> {
  const { item, attempt, agent, notBefore = 0 } = operation;
  const wait = notBefore - clock.now();
  if (wait > 0) await clock.sleep(wait, signal).catch(() => undefined);
  if (signal.aborted) return undefined;
  const address = { type: "conversation.agent.invited", turn, item, attempt } as const;
  try {
    return { ...address, outcome: await invite(agent?.id ?? "") };
  } catch (error) {
    return { ...address, outcome: { error: toErrorData(error) } };
  }
}

/** Returns what an agent brings that joins. One that takes part brings nothing. */
export async function invitation(
  { invite }: { invite?(record: ConversationIdentity, agentId: string): Promise<Invitation> },
  record: ConversationIdentity,
  agentId: string,
): Promise<Invitation> {
  if (takesPart(record, { type: "agent", id: agentId })) return {};
  if (invite === undefined) throw new DramatisError("NOT_FOUND", `There is no agent "${agentId}".`);
  return invite(record, agentId);
}

/** Reports whether an outcome brings an agent that joins, so that lists change. */
export function bringsAgent(outcome: EffectSignal): boolean {
  return outcome.type === "conversation.agent.invited" && outcome.outcome.error === undefined;
}
