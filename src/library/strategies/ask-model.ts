/** Tasks of strategies: each sends one prompt to the model. */
import type { z } from "zod";
import { defineTask } from "../define/define-task.ts";
import type { Prompt, Task } from "../tasks/built.ts";
import { step } from "../tasks/step.ts";

interface Question<Input extends z.ZodType, Output extends z.ZodType> {
  id: string;
  description: string;
  input: Input;
  output: Output;
  prompt: Prompt;
  /** From `result.response` and `input` to `output`. */
  outputMapping: Record<string, string>;
}

/** Milliseconds of one answer of the model. */
const TIMEOUT_MS = 120_000;

/** Defines a task that sends a prompt, filled with the input of the task, to the model. */
export function askModel<Input extends z.ZodType, Output extends z.ZodType>({
  prompt,
  outputMapping,
  ...task
}: Question<Input, Output>): Task {
  return defineTask({
    ...task,
    timeoutMs: TIMEOUT_MS,
    steps: [step("ask", { action: { kind: "llm", prompt }, outputMapping })],
  });
}
