/** The hooks of a simulation: tasks that assemble requests and extract memories, as planned. */
import { z } from "zod";
import { openaiFormat } from "../../src/adapters/formats/openai/adapter.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import type { Task } from "../../src/library/tasks/built.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";
import type { WorldClock } from "./clocks.ts";
import { type History, nextStep } from "./history.ts";
import type { HookPlan, Plan } from "./plan.ts";
import { planOf } from "./planned-forks.ts";

const EFFECTS: readonly ToolEffect[] = ["pure", "idempotent", "once"];
export type HookKind = "assembly" | "extraction";

export function hookTask(kind: HookKind, { effect }: HookPlan): string {
  return `${kind}_${effect}`;
}

/** Returns the tasks of both hooks with every effect. Each run follows the plan of its conversation. */
export function hookTasks(plan: Plan, { clock, history }: { clock: WorldClock; history: History }): Task[] {
  const task = (kind: HookKind, effect: ToolEffect) =>
    defineTask({
      id: hookTask(kind, { effect, ms: 0, failures: 0 }),
      input: z.looseObject({ turn_id: z.string() }),
      effect,
      async execute(input, { operationId, context }) {
        const conversation = Number(context.conversationId?.slice("conv_".length));
        const planned = planOf(plan, conversation)?.hooks?.[kind];
        if (planned === undefined) throw new Error("Nobody planned this hook.");
        const ofKind = (run: { kind: HookKind; conversation: number }) =>
          run.kind === kind && run.conversation === conversation;
        const before = history.hookRuns.filter(ofKind).length;
        history.hookRuns.push({
          conversation,
          kind,
          turnId: input.turn_id,
          operationId,
          step: nextStep(history),
        });
        await clock.sleep(planned.ms);
        if (before < planned.failures) throw new ToolError("Planned: the hook fails.");
        return kind === "assembly" ? requestOf(input) : [{ op: "write", content: input.turn_id }];
      },
    });
  return EFFECTS.flatMap((effect) => [task("assembly", effect), task("extraction", effect)]);
}

/** The input of a context hook, as far as the simulated one reads it. */
interface AssemblyInput {
  user_message: string;
  recent_turns: { messages: ContextMessage[] }[];
  system_instructions: string[];
  tool_definitions: { name: string; description: string; inputSchema: { [key: string]: never } }[];
  model_profile: ModelProfile;
}

function requestOf(input: object) {
  // SAFETY: the platform gives a context hook these members; a message of a planned conversation is text.
  const { user_message, recent_turns, system_instructions, tool_definitions, model_profile } =
    input as unknown as AssemblyInput;
  return openaiFormat.buildRequest(model_profile, {
    systemInstructions: system_instructions,
    messages: [...recent_turns.flatMap(({ messages }) => messages), { role: "user", content: user_message }],
    tools: tool_definitions,
    toolChoice: "auto",
  });
}
