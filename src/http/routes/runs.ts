/** `/api/runs`: starts runs of workflows, reads and cancels them. */
import type { Context } from "hono";
import { ulid } from "ulid";
import { z } from "zod";
import { type CoordinatorApi, startFields } from "../../protocol/coordinator-api.ts";
import { charactersOf } from "../../protocol/ids.ts";
import { checkNew, locationFields } from "../../protocol/location-policy.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { inJurisdiction } from "../../shared/location.ts";
import type { Principal } from "../../shared/principal.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { readBody, readOptionalBody } from "../base/body.ts";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { pageOptions, pageSchema, pathParams } from "../base/query.ts";
import { json, page } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS, ok, onePage } from "../openapi/operation.ts";
import { run, runEntry } from "../openapi/run-views.ts";
import { ids, runId } from "../openapi/scalars.ts";
import { stopSchema } from "./conversations.ts";

const RUNS = "/api/runs";
const RUN = `${RUNS}/:id` as const;
const GATE = `${RUN}/gates/:operationId` as const;

const startSchema = z.strictObject({
  ...startFields,
  input: startFields.input.meta({ description: "As the workflow's `inputSchema` takes it. Default: `{}`." }),
  idempotencyKey: startFields.idempotencyKey.meta({
    description: "Repeating the request with this key and the same content answers the same run.",
  }),
  ...locationFields,
});

const params = z.object({ id: runId });
const gateParams = params.extend({ operationId: ids.operation });
const answerSchema = z.strictObject({ answer: z.json().meta({ description: "JSON." }) });

export const runOperations: readonly ApiOperation[] = [
  {
    id: "startRun",
    method: "post",
    path: RUNS,
    tag: "runs",
    summary: "Start a run of a workflow",
    description:
      "The run keeps the versions of everything that it uses. It goes on by itself; read it, or follow its journal.",
    body: startSchema.meta({
      example: { workflow: "demo/summaries", input: { documents: ["One.", "Two!"] } },
    }),
    answers: [{ status: 201, description: "The run.", body: run, location: true }],
    errors: [...BODY_ERRORS, "NOT_FOUND", "CONFLICT", "IDEMPOTENCY_CONFLICT"],
  },
  {
    id: "getRun",
    method: "get",
    path: RUN,
    tag: "runs",
    summary: "Read a run",
    params,
    answers: ok("The run.", run),
    errors: ["NOT_FOUND"],
  },
  {
    id: "cancelRun",
    method: "post",
    path: `${RUN}/cancel`,
    tag: "runs",
    summary: "Cancel a run",
    description:
      "What works in it is stopped, and nothing else begins. Cancelling it again changes nothing. A run that has ended otherwise is a `CONFLICT`. The body may be absent.",
    params,
    body: stopSchema,
    optionalBody: true,
    answers: ok("The run is cancelled.", run),
    errors: [...BODY_ERRORS, "NOT_FOUND", "CONFLICT"],
  },
  {
    id: "answerGate",
    method: "post",
    path: GATE,
    tag: "runs",
    summary: "Answer the question of a gate",
    description:
      "The answer must fit the schema of the gate. The first answer counts, and is kept with its author. The same answer again changes nothing.",
    params: gateParams,
    body: answerSchema.meta({ example: { answer: { approved: true } } }),
    answers: ok("The run goes on.", run),
    errors: [...BODY_ERRORS, "NOT_FOUND", "CONFLICT"],
  },
  {
    id: "listRunEntries",
    method: "get",
    path: `${RUN}/journal`,
    tag: "runs",
    summary: "Read the journal of a run",
    description:
      "What each token did, in order: the inputs, outputs, attempts and errors of nodes, fan-outs and fan-ins.",
    params,
    query: pageSchema.omit({ order: true }),
    answers: onePage("entries", runEntry),
    errors: ["NOT_FOUND", "INVALID_INPUT"],
  },
];

export function runRoutes(app: HttpRoutes): void {
  app.post(RUNS, async (context) => {
    const { principal, actors, location } = context.var;
    const { jurisdiction, locationHint, ...input } = await readBody(context, startSchema);
    const policy = location(principal.tenant);
    const id = inJurisdiction(
      await runIdOf(principal, input.idempotencyKey),
      jurisdiction ?? policy.jurisdiction,
    );
    checkNew(id, policy, "/jurisdiction");
    const coordinator = await actors.coordinator(principal.tenant, id, locationHint ?? policy.locationHint);
    return json(unwrap(await coordinator.start(principal, { id, ...input })), 201, `${RUNS}/${id}`);
  });

  app.get(RUN, async (context) => json(unwrap(await (await runOf(context)).status(context.var.principal))));

  app.post(`${RUN}/cancel`, async (context) => {
    const { reason } = await readOptionalBody(context, stopSchema);
    const coordinator = await runOf(context);
    return json(unwrap(await coordinator.cancel(context.var.principal, defined({ reason }))));
  });

  app.post(GATE, async (context) => {
    const { operationId } = pathParams(gateParams, context.req);
    const { answer } = await readBody(context, answerSchema);
    const coordinator = await runOf(context);
    return json(unwrap(await coordinator.submitHumanInput(context.var.principal, operationId, answer)));
  });

  app.get(`${RUN}/journal`, async (context) => {
    const coordinator = await runOf(context);
    return page(
      "entries",
      unwrap(await coordinator.journal(context.var.principal, pageOptions(context.req.query()))),
    );
  });
}

/** Returns the actor of the run in the path. Throws `NOT_FOUND` for an id that cannot exist. */
async function runOf(context: Context<HttpEnv>): Promise<CoordinatorApi> {
  const { principal, actors } = context.var;
  const { id } = pathParams(params, context.req);
  return actors.coordinator(principal.tenant, id);
}

/** Returns the id of a new run. A key of a principal has one id for ever, so a repeated request finds the same run. */
async function runIdOf({ tenant, subject }: Principal, key: string | undefined): Promise<string> {
  if (key === undefined) return `run_${ulid()}`;
  return `run_${charactersOf(await sha256Hex(JSON.stringify([tenant, subject, key])))}`;
}
