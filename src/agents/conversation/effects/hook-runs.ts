/**
 * The runs of hooks that are workflows. The conversation starts a run by RPC. The end of the run comes by envelope, as in a tool call.
 *
 * HOOKRUN-1  An attempt of a hook has one run. A repeated start after a crash finds the run, even if the input has changed.
 * HOOKRUN-2  If an attempt is stopped or times out, its run is cancelled.
 * HOOKRUN-3  A broken connection is opened again after a pause. After `MAX_BREAKS` in a row the attempt fails.
 */
import { withDeadline } from "../../../ports/deadline.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import { calledRunId } from "../../../protocol/ids.ts";
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import type { CalledRun } from "../../../protocol/workflow-call.ts";
import { backoffMs } from "../../../shared/backoff.ts";
import { trailOf } from "../../../shared/call-trail.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, type Result, unwrap } from "../../../shared/errors.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import type { Principal } from "../../../shared/principal.ts";
import type { RuntimeContext } from "../context.ts";
import { refusedRun } from "../core/planning/run-call.ts";
import { failure } from "../core/planning/tool-call.ts";
import type { ToolCompleted } from "../core/signals.ts";

type HookRunApi = Awaited<ReturnType<RuntimeContext["run"]>>;

export interface HookRunInput {
  tenant: string;
  called: CalledRun;
  /** Resolved from the reference when absent. */
  pinned?: PinnedWorkflow;
  timeoutMs: number;
  given: HookGiven;
}

export type HookGiven = Pick<ToolCompleted, "recalled" | "taint">;

/** Maximum number of consecutive broken connections of an attempt. */
const MAX_BREAKS = 20;
/** Milliseconds before the first new connection. The pause doubles up to `MAX_PAUSE_MS`. */
const PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

interface Waiting {
  attempt: number;
  given: HookGiven;
  hasEnded: boolean;
}

export class HookRuns {
  /** The runs that this instance of the actor waits for, by operation. */
  readonly #waiting = new Map<string, Waiting>();

  constructor(private readonly context: Pick<RuntimeContext, "clock" | "run" | "waitUntil">) {}

  /** Returns the memories and the taint in the input of an attempt; `undefined` unless this instance of the actor waits for the run. */
  givenTo(operationId: string, attempt: number): HookGiven | undefined {
    const waiting = this.#waiting.get(operationId);
    return waiting?.attempt === attempt ? waiting.given : undefined;
  }

  /** Notes that the run of an operation has ended: it needs no cancellation. */
  end(operationId: string): void {
    const waiting = this.#waiting.get(operationId);
    if (waiting !== undefined) waiting.hasEnded = true;
  }

  /** Starts the run of an attempt and waits for its end. Returns the failure of the attempt; `undefined` if it ended or was stopped. */
  async start(input: HookRunInput, signal: AbortSignal): Promise<ToolResult | undefined> {
    const { clock } = this.context;
    const { called, timeoutMs, given } = input;
    const { operationId, attempt } = called.origin;
    const waiting: Waiting = { attempt, given, hasEnded: false };
    this.#waiting.set(operationId, waiting);
    const ask = this.#connection(input);
    const begun = ask((run, principal) => this.#begin(run, principal, input));
    try {
      return await withDeadline(
        clock,
        timeoutMs,
        () => begun.then(() => new Promise<never>(() => undefined)),
        {
          outer: signal,
        },
      );
    } catch (error) {
      if (waiting.hasEnded) return undefined;
      if (error instanceof DramatisError) return refusedRun(error);
      const reason = "The hook that started it was stopped.";
      const cancelled = begun.then(() => ask((run, principal) => run.cancel(principal, { reason })));
      // The cancellation fails if the run was refused or has ended. That is not an error.
      this.context.waitUntil(cancelled.catch(() => undefined));
      if (signal.aborted) return undefined;
      if (!isTimeout(error)) return refusedRun({ code: "UNAVAILABLE", message: String(error) });
      return failure("", "TIMEOUT", `The workflow of the hook did not end within ${timeoutMs} ms.`, true);
    } finally {
      if (this.#waiting.get(operationId) === waiting) this.#waiting.delete(operationId);
    }
  }

  /** Starts the run, or finds it (HOOKRUN-1). */
  async #begin(run: HookRunApi, principal: Principal, { called, pinned }: HookRunInput) {
    const { workflow, input, projectId, path, origin } = called;
    const { operationId } = origin;
    const id = runIdOf(called);
    const request = {
      ...{ id, workflow, input, projectId, path, origin, idempotencyKey: operationId },
      ...trailOf(called),
      ...defined({ pinned }),
    };
    const started = await run.start(principal, request);
    return started.ok || started.error.code !== "IDEMPOTENCY_CONFLICT" ? started : run.status(principal);
  }

  /** Returns a function that sends a request to the run's actor and repeats it if the connection breaks (HOOKRUN-3). */
  #connection({ tenant, called }: HookRunInput) {
    const { run, clock } = this.context;
    // The conversation vouches for the subject. It gives the run no role.
    const principal: Principal = { subject: called.startedBy, tenant, roles: [] };
    return async <Value>(
      request: (run: HookRunApi, principal: Principal) => Promise<Result<Value>>,
    ): Promise<Value> => {
      for (let breaks = 1; ; breaks++) {
        try {
          return unwrap(await request(await run(tenant, runIdOf(called)), principal));
        } catch (error) {
          if (error instanceof DramatisError || breaks > MAX_BREAKS) throw error;
          await clock.sleep(backoffMs(breaks, PAUSE_MS, MAX_PAUSE_MS));
        }
      }
    };
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}

function runIdOf({ origin: { operationId, attempt, conversationId } }: CalledRun): string {
  return calledRunId(operationId, attempt, jurisdictionOf(conversationId));
}
