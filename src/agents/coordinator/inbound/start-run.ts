/** Checks the requests of a run's callers: their form, and the origin, which only a conversation may set (INVITE-1). */
import { type StartRun, startRun } from "../../../protocol/coordinator-api.ts";
import { calledRunId } from "../../../protocol/ids.ts";
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict, DramatisError, forbidden, invalid } from "../../../shared/errors.ts";
import { canonicalJson, type Json } from "../../../shared/json.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { mayReadAll, type Principal } from "../../../shared/principal.ts";
import { sha256Hex } from "../../../shared/sha256.ts";
import { validateRequest } from "../../../shared/validation.ts";
import { type RunRecord, unknownRun } from "../core/record.ts";

/** Returns the request, checked. Throws `INVALID_INPUT`. */
export function parseStart(input: StartRun): StartRun {
  const request = validateRequest(startRun, input);
  const { id, origin } = request;
  if (origin === undefined) return request;
  const { operationId, attempt, conversationId } = origin;
  if (calledRunId(operationId, attempt, jurisdictionOf(conversationId)) === id) return request;
  throw invalid("Only the run of an operation has this operation as its origin.");
}

/** Returns a hash that identifies repeated requests. */
export function requestHash({ workflow, input = {}, projectId, name }: StartRun): Promise<string> {
  // SAFETY: the request has passed its schema, which admits only JSON values.
  return sha256Hex(canonicalJson({ workflow, input, ...defined({ projectId, name }) } as unknown as Json));
}

/**
 * Checks a request for a run that exists. Throws `NOT_FOUND`, `CONFLICT` without a key, and `IDEMPOTENCY_CONFLICT` for a request with other
 * content.
 */
export function checkRepeated(
  record: RunRecord,
  principal: Principal,
  { request, key }: { request: string; key: string | undefined },
): void {
  checkReader(record, principal);
  if (key === undefined) throw conflict("This run already exists. Use another id to start another run.");
  if (record.request !== request)
    throw new DramatisError(
      "IDEMPOTENCY_CONFLICT",
      "This idempotency key was used with another request. Use a new key for a new request.",
    );
}

/**
 * Throws `FORBIDDEN` for a workflow with an agent that waits for the run (RUNACCESS-3). Nodes of sub-workflows and unreachable nodes count
 * too.
 */
export function refuseWaiting(workflow: PinnedWorkflow, path: readonly string[]): void {
  for (const { ref, agent } of workflow.definition.nodes) {
    if (agent !== undefined && path.includes(agent))
      throw forbidden(
        `The workflow "${workflow.library}/${workflow.id}" asks "${agent}" in its node "${ref}", and this agent waits for the run. Let another agent run the workflow.`,
      );
  }
  for (const inner of Object.values(workflow.workflows)) refuseWaiting(inner, path);
}

/** Throws `NOT_FOUND` unless the principal may see the run. */
export function checkReader(record: RunRecord, principal: Principal): void {
  if (!mayRead(record, principal)) throw unknownRun();
}

/** Reports whether the principal may see the run: its starter may, and each operator of its tenant. */
export function mayRead({ tenant, startedBy }: RunRecord, principal: Principal): boolean {
  return principal.tenant === tenant && (principal.subject === startedBy || mayReadAll(principal));
}

/** Throws `UNSUPPORTED` for a task that defers its result. */
export function cannotDefer(): never {
  throw new DramatisError(
    "UNSUPPORTED",
    "A task of a run cannot defer its result. Let a node wait for a person, or return the result.",
  );
}
