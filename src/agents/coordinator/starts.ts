/** The starts of a run: by a principal, and by a tool call. */
import { knownTraceparent } from "../../model/span.ts";
import type { StartRun } from "../../protocol/coordinator-api.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import { stemOf } from "../../protocol/ids.ts";
import { checkNew } from "../../protocol/location-policy.ts";
import type { PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import type { RunView } from "../../protocol/run-schemas.ts";
import type { CalledRun } from "../../protocol/workflow-call.ts";
import { trailOf } from "../../shared/call-trail.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import type { ActorContext } from "./context.ts";
import { checkRepeated, parseStart, refuseWaiting, requestHash } from "./inbound/start-run.ts";
import { runView } from "./reads/run-views.ts";
import type { CoordinatorContext } from "./wiring.ts";

/** Starts the run of a principal. The same request again returns the run. Throws as `parseStart`, `checkRepeated` and `refuseWaiting` do. */
export async function startRun(
  context: CoordinatorContext,
  principal: Principal,
  given: StartRun,
): Promise<RunView> {
  const { runtime, listing, bounds, clock, ids } = context;
  context.checkPlace();
  const {
    id,
    name,
    workflow: reference,
    input = {},
    projectId = "default",
    idempotencyKey: key,
    path = [],
    origin,
    pinned,
    correlationId,
    traceparent,
  } = parseStart(given);
  const { tenant, subject } = principal;
  if (context.name() !== `${tenant}:${id}`)
    throw invalid(`The request reached the wrong actor. Send it to the actor "${tenant}:${id}".`);
  const request = await requestHash(given);
  const repeated = () => {
    checkRepeated(runtime.state.record, principal, { request, key });
    return runView(runtime);
  };
  if (runtime.exists) return repeated();
  checkNew(id, context.location(tenant), "/id");
  const workflow = pinned ?? (await context.workflow(tenant, reference));
  refuseWaiting(workflow, path);
  // Agents wait for the run of a hook only. Without it, their turns would fail.
  const isCounted = path.length === 0 && (await context.permitRun(tenant, projectId));
  // Another request may have started the run during the wait.
  if (runtime.exists) return repeated();
  await runtime.start({
    ...{ id, tenant, projectId, workflow, request },
    stem: stemOf(ids.ulid()),
    input: context.checkedInput(workflow, input),
    startedBy: subject,
    ...(path.length === 0 ? {} : { path }),
    ...trailOf({ correlationId, traceparent: knownTraceparent(traceparent) }),
    ...defined({ name, origin }),
    ...bounds,
    createdAt: clock.now(),
  });
  const published = listing.publish();
  // The next start counts this run.
  if (isCounted) await published;
  return runView(runtime);
}

/** Returns the workflow of a tool call. Throws if it may not run here, or asks an agent that waits for it (RUNACCESS-3). */
export async function pinnedWorkflow(
  context: Pick<ActorContext, "checkPlace" | "location" | "workflow" | "permitRun">,
  { tenant, id }: ActorAddress,
  { workflow, path, projectId, worksForRun }: CalledRun,
): Promise<PinnedWorkflow> {
  context.checkPlace();
  checkNew(id, context.location(tenant), "/id");
  const pinned = await context.workflow(tenant, workflow);
  refuseWaiting(pinned, path);
  // A run that waits for this run would keep its place until then.
  if (worksForRun !== true) await context.permitRun(tenant, projectId);
  return pinned;
}
