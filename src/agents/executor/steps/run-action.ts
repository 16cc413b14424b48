/** Runs actions, by kind. */
import type { ToolContext } from "../../../library/define.ts";
import type { Action, CodeAction } from "../../../library/tasks/action.ts";
import { ToolError } from "../../../library/tool-error.ts";
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import { mapped } from "../../../shared/expressions/mapping.ts";
import type { Json } from "../../../shared/json.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";
import type { TaskAreas } from "./areas.ts";

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
      return runCode(action, run);
    case "update_context":
      return Promise.resolve(mapped(action.values, run.areas.variables, run.meter));
    default:
      return action satisfies never;
  }
}

function runCode(action: CodeAction, { input, context, clock }: ActionRun): Promise<unknown> {
  const { timeoutMs } = action.definition;
  const message = `Its action did not answer within ${timeoutMs} ms.`;
  return withDeadline(clock, timeoutMs, (signal) => action.run(input, { ...context, signal }), {
    outer: context.signal,
    reason: () => new ToolError(message, { code: "TIMEOUT", retriable: true }),
  });
}
