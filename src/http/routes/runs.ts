/** `/api/runs`: starts runs of workflows, lists, reads, cancels and retries them. */
import { ulid } from "ulid";
import { z } from "zod";
import { parseReference } from "../../library/definitions/reference.ts";
import type { RunActor } from "../../protocol/actor-lookup.ts";
import { gateAnswer, retryRun, startRunBody } from "../../protocol/coordinator-api.ts";
import { charactersOf } from "../../protocol/ids.ts";
import { checkNew } from "../../protocol/location-policy.ts";
import { stopRequest } from "../../protocol/requests.ts";
import { run, runEntry, runEvent, runSummary, runWorkflow } from "../../protocol/run-schemas.ts";
import { ids, runId } from "../../protocol/scalars.ts";
import { upgradeRequest } from "../../protocol/upgrade-request.ts";
import { RUN_STATUSES } from "../../protocol/workflow-run.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { inJurisdiction } from "../../shared/location.ts";
import type { Principal } from "../../shared/principal.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { isUpgrade, withProtocol } from "../auth/bearer.ts";
import type { RequestVariables } from "../base/context.ts";
import { pageSchema, positionHeader } from "../base/query.ts";
import { events, json, page } from "../base/respond.ts";
import { ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { socketOptions, socketQuery } from "./sockets.ts";

const RUNS = "/api/runs";
export const RUN = `${RUNS}/:id` as const;
const GATE = `${RUN}/gates/:operationId` as const;

const listQuery = pageSchema.extend({
  status: z.enum(RUN_STATUSES).describe("Runs that have this status now.").exactOptional(),
  workflow: z
    .string()
    .max(200)
    .regex(/^[^/@]+\/[^/@]+(?:@[1-9][0-9]{0,14})?$/, "Must be `library/id` or `library/id@version`.")
    .meta({ description: "Runs of this workflow, or of one version of it.", example: "demo/summaries" })
    .exactOptional(),
  text: z
    .string()
    .min(1)
    .max(200)
    .describe("Runs with this text in their name, or in the `library/id` of their workflow.")
    .exactOptional(),
});

export const runParams = z.object({ id: runId });
const gateParams = runParams.extend({ operationId: ids.operation });

export const runRoutes: readonly Route[] = [
  route({
    id: "startRun",
    method: "post",
    path: RUNS,
    tag: "runs",
    summary: "Start a run of a workflow",
    description:
      "The run keeps the versions of everything that it uses. It runs in the background. Read it, or follow its journal.",
    body: startRunBody.meta({
      example: {
        workflow: "demo/summaries",
        name: "Two documents",
        input: { documents: ["One.", "Two!"] },
      },
    }),
    answers: [{ status: 201, description: "The run.", body: run, location: true }],
    errors: ["NOT_FOUND", "CONFLICT", "IDEMPOTENCY_CONFLICT"],
    handle: async (
      { body: { jurisdiction, locationHint, ...input } },
      { principal, actors, location },
      { req },
    ) => {
      const policy = location(principal.tenant);
      const id = inJurisdiction(
        await runIdOf(principal, input.idempotencyKey),
        jurisdiction ?? policy.jurisdiction,
      );
      checkNew(id, policy, "/jurisdiction");
      const coordinator = await actors.coordinator(principal.tenant, id, locationHint ?? policy.locationHint);
      const request = { id, ...input, ...defined({ traceparent: req.header("traceparent") }) };
      return json(unwrap(await coordinator.start(principal, request)), 201, `${RUNS}/${id}`);
    },
  }),
  route({
    id: "listRuns",
    method: "get",
    path: RUNS,
    tag: "runs",
    summary: "List runs",
    description:
      "Your own runs; all of the tenant for operators and administrators. A run appears, and changes its status here, a moment later than in its own view. With several filters, or with `text`, a page looks at up to 2,000 runs, so it may be short or empty and have a `nextCursor`.",
    query: listQuery,
    answers: onePage("runs", runSummary),
    handle: async ({ query: { workflow, ...query } }, { principal, directory }) => {
      const filter = defined({ workflow: workflow === undefined ? undefined : parseReference(workflow) });
      return page("runs", await directory().runs(principal, { ...query, ...filter }));
    },
  }),
  route({
    id: "getRun",
    method: "get",
    path: RUN,
    tag: "runs",
    summary: "Read a run",
    params: runParams,
    answers: ok("The run.", run),
    handle: async ({ params }, ports) =>
      json(unwrap(await (await runOf(ports, params)).status(ports.principal))),
  }),
  route({
    id: "cancelRun",
    method: "post",
    path: `${RUN}/cancel`,
    tag: "runs",
    summary: "Cancel a run",
    description:
      "Stops its active work. No further work starts. Repeating the request is a no-op. A run that ended otherwise is a `CONFLICT`. The body may be absent.",
    params: runParams,
    body: stopRequest,
    optionalBody: true,
    answers: ok("The run is cancelled.", run),
    errors: ["CONFLICT"],
    handle: async ({ params, body }, ports) =>
      json(unwrap(await (await runOf(ports, params)).cancel(ports.principal, body))),
  }),
  route({
    id: "retryRun",
    method: "post",
    path: `${RUN}/retry`,
    tag: "runs",
    summary: "Retry a failed run",
    description:
      "The run restarts tokens that failed or that the failure cancelled. Completed tokens are not repeated. `CONFLICT` if the run has not failed, has no token to restart, or has reported its failure to another run or a conversation. `OUTCOME_UNKNOWN` if an effect may happen twice and `repeatOnce` is not `true`. The body may be absent.",
    params: runParams,
    body: retryRun.meta({ example: { seq: 14, repeatOnce: true } }),
    optionalBody: true,
    answers: ok("The run goes on.", run),
    errors: ["CONFLICT", "OUTCOME_UNKNOWN", "QUEUE_OVERFLOW"],
    handle: async ({ params, body }, ports) =>
      json(unwrap(await (await runOf(ports, params)).retryRun(ports.principal, body))),
  }),
  route({
    id: "answerGate",
    method: "post",
    path: GATE,
    tag: "runs",
    summary: "Answer the question of a gate",
    description:
      "The answer must fit the schema of the gate. The first answer counts, and is kept with its author. Repeating the same answer is a no-op.",
    params: gateParams,
    body: gateAnswer.meta({ example: { answer: { approved: true } } }),
    answers: ok("The run continues. The answer has no contents for a person who may not read the run.", run),
    errors: ["PERMISSION_DENIED", "CONFLICT"],
    handle: async ({ params, body: { answer } }, ports) => {
      const coordinator = await runOf(ports, params);
      return json(unwrap(await coordinator.submitHumanInput(ports.principal, params.operationId, answer)));
    },
  }),
  route({
    id: "listRunEntries",
    method: "get",
    path: `${RUN}/journal`,
    tag: "runs",
    summary: "Read the journal of a run",
    description:
      "The history of each token in order: the inputs, outputs, attempts and errors of nodes, fan-outs and fan-ins.",
    params: runParams,
    query: pageSchema.omit({ order: true }),
    answers: onePage("entries", runEntry),
    handle: async ({ params, query }, ports) =>
      page("entries", unwrap(await (await runOf(ports, params)).journal(ports.principal, query))),
  }),
  route({
    id: "getRunWorkflow",
    method: "get",
    path: `${RUN}/workflow`,
    tag: "runs",
    summary: "Read the workflow of a run",
    description: "The version that the run keeps. It never changes, so read it once.",
    params: runParams,
    answers: ok("The workflow.", runWorkflow),
    handle: async ({ params }, ports) =>
      json(unwrap(await (await runOf(ports, params)).workflow(ports.principal))),
  }),
  route({
    id: "followRun",
    method: "get",
    path: `${RUN}/events`,
    tag: "runs",
    summary: "Follow a run as server-sent events, or over a WebSocket",
    description:
      "The journal entries after `from`, then new entries as they arrive. The stream ends after the entry that ends the run. An `EventSource` continues automatically when it reconnects, and the 204 after the end stops it. An upgrade gets a WebSocket with the same events, each as a frame of JSON. After the last frame it closes with 1000. The client may send `ack`, and `ping`, which is answered with `pong`.",
    params: runParams,
    query: socketQuery,
    headers: positionHeader,
    answers: [
      { status: 101, description: "The connection is a WebSocket." },
      { status: 200, description: "Entries.", type: "text/event-stream", body: runEvent },
      { status: 204, description: "The run is over, and no entry follows `from`." },
    ],
    errors: ["FORBIDDEN"],
    handle: async ({ params, query, headers }, ports, context) => {
      const { principal } = ports;
      const { raw } = context.req;
      const coordinator = await runOf(ports, params);
      if (isUpgrade(raw)) {
        const request = upgradeRequest(raw, principal, params.id, "plain", socketOptions(query));
        return withProtocol(raw, await coordinator.fetch(request));
      }
      const from = headers["Last-Event-ID"] ?? query.from;
      if (raw.method === "HEAD") unwrap(await coordinator.status(principal));
      return events(context, async () => unwrap(await coordinator.follow(principal, defined({ from }))));
    },
  }),
];

export function runOf({ principal, actors }: RequestVariables, { id }: { id: string }): Promise<RunActor> {
  return actors.coordinator(principal.tenant, id);
}

/** Returns the id of a new run. A key of a principal has one id for ever, so a repeated request finds the same run. */
export async function runIdOf({ tenant, subject }: Principal, key: string | undefined): Promise<string> {
  if (key === undefined) return `run_${ulid()}`;
  return `run_${charactersOf(await sha256Hex(JSON.stringify([tenant, subject, key])))}`;
}
