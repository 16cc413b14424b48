/**
 * Starts what a trigger starts.
 *
 * FIRE-6  The id of a run, and the key of a turn, depend on the trigger and the key of the start alone: a start that is repeated finds
 *         the run or the turn that it made before.
 * FIRE-7  A trigger acts as the subject who changed it last, without roles. It may do what that subject may do without any, so a role
 *         that the subject loses never lives on in a trigger. `triggers.mayAct` of the application is asked before each start.
 */

import type { ActorLookup } from "../../../protocol/actor-lookup.ts";
import type { CoordinatorApi } from "../../../protocol/coordinator-api.ts";
import { charactersOf } from "../../../protocol/ids.ts";
import type { TriggerStarted } from "../../../protocol/trigger-api.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, unwrap } from "../../../shared/errors.ts";
import { inJurisdiction, jurisdictionOf } from "../../../shared/location.ts";
import type { Principal } from "../../../shared/principal.ts";
import { sha256Hex } from "../../../shared/sha256.ts";
import type { Firing, TriggerRecord } from "../core/record.ts";

export interface StartPorts {
  actors: Pick<ActorLookup, "conversation"> & {
    coordinator(...address: Parameters<ActorLookup["coordinator"]>): Promise<CoordinatorApi>;
  };
  /** Reports whether a subject may still act in its tenant. */
  mayAct(principal: Principal): boolean | Promise<boolean>;
}

/** Returns the principal as which a trigger acts. */
export function actorOf({ actsAs, tenant }: Pick<TriggerRecord, "actsAs" | "tenant">): Principal {
  return { subject: actsAs, tenant, roles: [] };
}

/** Starts the run or the turn, or finds the one that was started before. Throws what refuses it. */
export async function start(ports: StartPorts, firing: Firing): Promise<TriggerStarted> {
  const { id, tenant, starts, key, traceparent } = firing;
  const principal = actorOf(firing);
  if (!(await ports.mayAct(principal)))
    throw new DramatisError(
      "FORBIDDEN",
      `"${firing.actsAs}" may not act any more. Let somebody who may change the trigger, or delete it.`,
    );
  const idempotencyKey = `${id}:${key}`;
  if ("conversationId" in starts) {
    const { conversationId, content, to, untrusted } = starts;
    if (content === undefined) throw new DramatisError("INVALID_INPUT", "The turn has no content.");
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
