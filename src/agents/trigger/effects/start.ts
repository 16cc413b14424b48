/**
 * Starts the run or the turn of a trigger.
 *
 * FIRE-6  The id of a run and the key of a turn depend only on the trigger and the key of the start. So a repeated start finds the earlier
 *         run or turn.
 * FIRE-7  A trigger acts as the subject that changed it last, without roles. It has only the rights of that subject without roles, so a
 *         lost role never survives in a trigger. Before each start it calls `triggers.mayAct` of the application.
 */
import type { ActorLookup } from "../../../protocol/actor-lookup.ts";
import type { CoordinatorApi } from "../../../protocol/coordinator-api.ts";
import { charactersOf } from "../../../protocol/ids.ts";
import type { TriggerStarted } from "../../../protocol/trigger-api.ts";
import { defined } from "../../../shared/defined.ts";
import { forbidden, invalid, unwrap } from "../../../shared/errors.ts";
import { inJurisdiction, jurisdictionOf } from "../../../shared/location.ts";
import type { Principal } from "../../../shared/principal.ts";
import { sha256Hex } from "../../../shared/sha256.ts";
import type { Firing, TriggerRecord } from "../core/record.ts";

export interface StartPorts {
  actors: Pick<ActorLookup, "conversation"> & {
    coordinator(...address: Parameters<ActorLookup["coordinator"]>): Promise<CoordinatorApi>;
  };
  mayAct(principal: Principal): boolean | Promise<boolean>;
}

export function actorOf({ actsAs, tenant }: Pick<TriggerRecord, "actsAs" | "tenant">): Principal {
  return { subject: actsAs, tenant, roles: [] };
}

/** Starts the run or the turn, or finds the earlier run or turn. Rethrows a refusal. */
export async function start(ports: StartPorts, firing: Firing): Promise<TriggerStarted> {
  const { id, tenant, starts, key, traceparent } = firing;
  const principal = actorOf(firing);
  if (!(await ports.mayAct(principal)))
    throw forbidden(
      `"${firing.actsAs}" may no longer act. Let an authorised subject change the trigger, or delete it.`,
    );
  const idempotencyKey = `${id}:${key}`;
  if ("conversationId" in starts) {
    const { conversationId, content, to, untrusted } = starts;
    if (content === undefined) throw invalid("The turn has no content.");
    const conversation = await ports.actors.conversation(tenant, conversationId);
    const turn = { content, idempotencyKey, ...defined({ to, untrusted, traceparent }) };
    const { turnId } = unwrap(await conversation.startTurn(principal, turn));
    return { conversationId, turnId };
  }
  const { workflow, input, projectId } = starts;
  const characters = charactersOf(await sha256Hex(JSON.stringify([tenant, idempotencyKey])));
  const runId = inJurisdiction(`run_${characters}`, jurisdictionOf(id));
  const coordinator = await ports.actors.coordinator(tenant, runId);
  const trail = { correlationId: idempotencyKey, ...defined({ traceparent }) };
  const request = { id: runId, workflow, idempotencyKey, ...trail, ...defined({ input, projectId }) };
  unwrap(await coordinator.start(principal, request));
  return { runId };
}
