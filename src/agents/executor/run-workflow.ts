/**
 * Runs the workflow of a tool call or of a hook: starts its run, waits for the end, and cancels the run that nobody waits for.
 *
 * FLOWCALL-1  An attempt of a call has one run. Its id derives from the operation and the attempt, and lies in the jurisdiction of the caller, so a
 *             start that is repeated finds the run, even with another input. The run outlives the Executor: a repeated call waits for the same one.
 * FLOWCALL-2  The output of the run is the tool's result. A run that ended otherwise is a failure, with the run's own code in the message.
 * FLOWCALL-3  A run whose call was cancelled, or ran out of time, is cancelled, once its start is known.
 * FLOWCALL-4  A connection to the run that breaks is made anew, with a pause. After `MAX_BREAKS` in a row the call fails for a reason that may
 *             pass.
 * FLOWCALL-5  A call reports what its run has used, with all below it: at its end, however it ended. The run of a call that was cancelled, or ran
 *             out of time, has 700 ms to say so; after that the newest amounts count that it has shown.
 */
import { ToolError } from "../../library/tool-error.ts";
import type { Amounts } from "../../model/spending.ts";
import type { Clock } from "../../ports/clock.ts";
import { amountsOfView } from "../../protocol/budget.ts";
import type { CoordinatorApi, RunView } from "../../protocol/coordinator-api.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import { calledRunId } from "../../protocol/ids.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, type Result, unwrap } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import { jurisdictionOf } from "../../shared/location.ts";
import type { Principal } from "../../shared/principal.ts";
import type { WorkflowCall } from "./run-tool.ts";

export interface WorkflowRunPorts {
  clock: Pick<Clock, "sleep">;
  /** Finds the actor of a run. */
  coordinator(address: ActorAddress): Promise<CoordinatorApi>;
  /** Keeps the executor alive for a cancellation. */
  waitUntil(work: Promise<unknown>): void;
}

/** Milliseconds of one question for the end of a run. A run that goes on is asked again. */
const ASK_MS = 60_000;

/** Connections to a run that may break one after the other. */
const MAX_BREAKS = 20;

/** Milliseconds before the first new connection. The pause doubles up to `MAX_PAUSE_MS`. */
const PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

/** Returns the output of the run. `onUsed` gets the amounts of each view of the run; the newest count. Throws `ToolError`, and what the coordinator throws at a start that it refuses. */
export async function runWorkflow(
  ports: WorkflowRunPorts,
  call: WorkflowCall,
  signal: AbortSignal,
  onUsed: (spent: Amounts) => void,
): Promise<Json> {
  const { context, operationId, attempt, workflow, input } = call;
  const { reference, startedBy, path, origin, pinned } = workflow;
  const { tenant, projectId } = context;
  // The conversation vouches for the subject. It gives the call no role: the run is that of a plain user.
  const principal: Principal = { subject: startedBy, tenant, roles: [] };
  const id = calledRunId(operationId, attempt, jurisdictionOf(context.conversationId ?? context.runId));
  const request = {
    ...{ id, workflow: reference, input, projectId, path, origin, idempotencyKey: operationId },
    ...defined({ pinned }),
  };
  const run = new RunConnection(ports, { kind: "coordinator", tenant, id });
  const seen = (view: RunView): RunView => {
    onUsed(amountsOfView(view.usage));
    return view;
  };
  const begun = run
    .ask((actor) => actor.start(principal, request))
    .catch((error: unknown) => {
      if (!isOfAnotherInput(error)) throw error;
      return run.ask((actor) => actor.status(principal));
    })
    .then(seen);
  const cancel = async () => {
    if (isOver(await begun)) return;
    const reason = "The call that started it was stopped.";
    await run.ask((actor) => actor.cancel(principal, { reason }));
  };
  // A run that was refused, or has ended meanwhile, needs no cancellation.
  const stop = () => ports.waitUntil(cancel().catch(() => undefined));
  signal.addEventListener("abort", stop, { once: true });
  try {
    let view = await begun;
    while (!isOver(view)) view = seen(await run.ask((actor) => actor.finished(principal, ASK_MS)));
    return outputOf(view, signal);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Reports whether the run has begun with another input: a context hook that a crash repeats may see a history that was compacted meanwhile. */
function isOfAnotherInput(error: unknown): boolean {
  return error instanceof DramatisError && error.code === "IDEMPOTENCY_CONFLICT";
}

function isOver({ status }: RunView): boolean {
  return status !== "running" && status !== "waiting";
}

/** The connection to the actor of a run: each look-up is a request of its own, so one serves until it breaks. */
class RunConnection {
  #actor: Promise<CoordinatorApi> | undefined;

  constructor(
    private readonly ports: WorkflowRunPorts,
    private readonly address: ActorAddress,
  ) {}

  /** Returns the answer of the actor. Repeats the request while the connection breaks (FLOWCALL-4). Throws the errors that the actor answers. */
  async ask<Value>(request: (actor: CoordinatorApi) => Promise<Result<Value>>): Promise<Value> {
    const { clock, coordinator } = this.ports;
    for (let breaks = 1; ; breaks++) {
      try {
        this.#actor ??= coordinator(this.address);
        return unwrap(await request(await this.#actor));
      } catch (error) {
        if (error instanceof DramatisError || breaks > MAX_BREAKS) throw error;
        this.#actor = undefined;
        await clock.sleep(Math.min(MAX_PAUSE_MS, PAUSE_MS * 2 ** (breaks - 1)));
      }
    }
  }
}

/** Returns the output of a run that is over (FLOWCALL-2). */
function outputOf({ status, output, error, id }: RunView, signal: AbortSignal): Json {
  if (status === "completed") return output ?? {};
  if (signal.aborted) throw new ToolError("The call was cancelled.", { code: "CANCELLED" });
  const { code = "EXECUTION_FAILED", message = "" } = error ?? {};
  throw new ToolError(`The run "${id}" of the workflow is ${status}: ${code}: ${message}`, {
    code: status === "timed_out" ? "TIMEOUT" : "EXECUTION_FAILED",
  });
}
