/** Runs actions, by kind. */
import type { ToolContext } from "../../../library/define.ts";
import { DEFAULT_TOOL_TIMEOUT_MS } from "../../../library/schemas.ts";
import type { Action } from "../../../library/tasks/action.ts";
import { ToolError } from "../../../library/tool-error.ts";
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import { mapped } from "../../../shared/expressions/mapping.ts";
import type { Json } from "../../../shared/json.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";
import type { TaskAreas } from "./areas.ts";
import { requestHttp } from "./http-request.ts";

/** Where an action runs. */
export interface ActionRun {
  input: Json;
  areas: TaskAreas;
  context: ToolContext;
  clock: Pick<Clock, "timer">;
  /** The steps of all expressions of the task. */
  meter: Meter;
}

/** Returns what an action gives. Throws what it throws. */
export function runAction(action: Action, run: ActionRun): Promise<unknown> {
  switch (action.kind) {
    case "code":
      return inTime(action.definition.timeoutMs, run, (signal) =>
        action.run(run.input, { ...run.context, signal }),
      );
    case "update_context":
      return Promise.resolve(mapped(action.values, run.areas.variables, run.meter));
    case "http.request":
      return inTime(action.timeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS, run, (signal) =>
        requestHttp(action, run.input, signal),
      );
    default:
      return action satisfies never;
  }
}

function inTime(
  milliseconds: number,
  { context, clock }: ActionRun,
  work: (signal: AbortSignal) => Promise<unknown>,
): Promise<unknown> {
  const message = `Its action did not answer within ${milliseconds} ms.`;
  return withDeadline(clock, milliseconds, work, {
    outer: context.signal,
    reason: () => new ToolError(message, { code: "TIMEOUT", retriable: true }),
  });
}
