/** Tasks of the runs in the tests: each reports that it ran, and waits at a gate or fails if its input requests it. */
import { z } from "zod";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import type { ToolEffect } from "../../src/protocol/definition-parts.ts";
import { passGate, reportRun } from "./provider.ts";

const input = z.object({
  /** The test. */
  key: z.string(),
  name: z.string(),
  /** A gate. */
  wait: z.string().nullish(),
  fails: z.boolean().default(false),
  /** Attempts that fail for a reason that passes. */
  flaky: z.number().default(0),
  value: z.unknown().optional(),
});

/** The attempts of each operation in this process. */
const attempts = new Map<string, number>();

const work = (effect: ToolEffect) =>
  defineTask({
    id: `work_${effect}`,
    input,
    effect,
    timeoutMs: 60_000,
    ...(effect === "once" ? {} : { retry: { maxAttempts: 3, initialDelayMs: 10 } }),
    async execute({ key, name, wait, fails, flaky, value }, { operationId, signal }) {
      await reportRun(key, { tool: name, operationId, input: value ?? null });
      const attempt = (attempts.get(operationId) ?? 0) + 1;
      attempts.set(operationId, attempt);
      if (attempt <= flaky) throw new Error("An attempt fails.");
      if (typeof wait === "string") await passGate(key, wait, signal);
      if (fails) throw new ToolError(`"${name}" fails.`);
      return { name, value: value ?? null };
    },
  });

/** Sends no report, because many of them run. */
const echo = defineTask({
  id: "echo",
  input: z.object({ value: z.unknown() }),
  effect: "pure",
  execute: ({ value }) => ({ value }),
});

/** Returns the trail of its call, after so many attempts that fail. */
const trail = defineTask({
  id: "trail",
  input: z.object({ flaky: z.number().default(0) }),
  effect: "idempotent",
  retry: { maxAttempts: 3, initialDelayMs: 10 },
  execute({ flaky }, { operationId, context: { correlationId = null, traceparent = null } }) {
    const attempt = (attempts.get(operationId) ?? 0) + 1;
    attempts.set(operationId, attempt);
    if (attempt <= flaky) throw new Error("An attempt fails.");
    return { correlationId, traceparent };
  },
});

export const flowLibrary = defineLibrary("flow", {
  tasks: [echo, trail, work("pure"), work("idempotent"), work("once")],
});
