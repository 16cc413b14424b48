/** The tools `run_LIBRARY__WORKFLOW`, and public tools of libraries: each call starts a run and waits for its end. */
import { runProgress } from "../../compat/mcp/progress.ts";
import { questionsOfRun } from "../../compat/mcp/questions.ts";
import { createdTask } from "../../compat/mcp/tasks.ts";
import { runResult, waitingResult } from "../../compat/mcp/tools.ts";
import type { DefinitionKey } from "../../library/definitions/reference.ts";
import type { PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import type { RunView } from "../../protocol/run-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { inJurisdiction } from "../../shared/location.ts";
import { runIdOf } from "../routes/runs.ts";
import { giveAnswers } from "./answers.ts";
import type { CallResult, ToolCall } from "./call.ts";

/** Milliseconds between two looks at a run. */
const WAIT_MS = 1_000;

export async function runWorkflow(
  call: ToolCall,
  workflow: DefinitionKey,
  input: JsonObject,
  pinned?: PinnedWorkflow,
): Promise<CallResult> {
  const { ports, signal } = call;
  const { actors, principal } = ports;
  const retried = await resumed(call);
  let view = retried ?? (await start(call, workflow, input, pinned));
  const { id } = view;
  if (call.takesTasks && retried === undefined) return createdTask({ runId: id }, view.createdAt);
  call.onCancel(async (found) => (await found.actors.coordinator(principal.tenant, id)).cancel(principal));
  const isRefused = call.answers.some(({ action }) => action !== "accept");
  const asked = new Set<string>();
  for (let seq = -1; view.endedAt === undefined && !signal.aborted; ) {
    if (view.seq > seq) await call.progress(runProgress(view));
    seq = view.seq;
    const questions = questionsOfRun(view, principal).filter(({ place }) => !asked.has(place.operationId));
    const end = questions.length === 0 ? undefined : isRefused ? null : await call.ask(questions);
    if (end === null) return waitingResult({ runId: id, status: view.status }, questions);
    if (end !== undefined) return end;
    for (const { place } of questions) asked.add(place.operationId);
    view = unwrap(await (await actors.coordinator(principal.tenant, id)).finished(principal, WAIT_MS));
  }
  return runResult(view);
}

async function start(
  { ports, headers, key }: ToolCall,
  workflow: DefinitionKey,
  input: JsonObject,
  pinned: PinnedWorkflow | undefined,
): Promise<RunView> {
  const { actors, location, principal } = ports;
  const { jurisdiction, locationHint } = location(principal.tenant);
  const id = inJurisdiction(await runIdOf(principal, key), jurisdiction);
  const traceparent = headers.get("traceparent") ?? undefined;
  const request = { id, workflow, input, ...defined({ idempotencyKey: key, traceparent, pinned }) };
  return unwrap(
    await (await actors.coordinator(principal.tenant, id, locationHint)).start(principal, request),
  );
}

/** Gives the answers of a retried call. Returns its run; `undefined` for the first call. */
async function resumed({ ports, answers }: ToolCall): Promise<RunView | undefined> {
  const { actors, principal } = ports;
  const [id] = answers.flatMap(({ place }) => ("runId" in place ? [place.runId] : []));
  if (id === undefined) return undefined;
  await giveAnswers(ports, answers);
  return unwrap(await (await actors.coordinator(principal.tenant, id)).status(principal));
}
