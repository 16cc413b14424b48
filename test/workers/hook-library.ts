/**
 * Workflows for persona hooks in the tests. Each reports its task's runs under the key of the user's script, and its id
 * states its behaviour.
 */
import { z } from "zod";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node } from "../../src/library/define/define-workflow.ts";
import type { Workflow } from "../../src/library/tasks/built.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { passGate, reportRun, runsOf } from "./provider.ts";

const hows = ["works", "waits", "fails", "recovers"] as const;
type How = (typeof hows)[number];

/** Reports a run, and waits at the gate or fails as requested. Returns the script's key. */
async function act(tool: string, text: string, how: string, operationId: string, signal: AbortSignal) {
  const { key } = z.object({ key: z.string() }).parse(JSON.parse(text));
  await reportRun(key, { tool, operationId, input: { how } });
  if (how === "waits") await passGate(key, tool, signal);
  if (how === "recovers" && (await runsOf(key)).length > 1) return;
  if (how === "fails" || how === "recovers") throw new ToolError(`"${tool}" fails.`);
}

/** Makes the request of a cycle. It never runs twice, so a run of its workflow that was repeated would fail. */
const prepare = defineTask({
  id: "prepare",
  input: z.object({ user_message: z.string(), how: z.string() }),
  effect: "once",
  async execute({ user_message, how }, { operationId, signal }) {
    await act("prepare", user_message, how, operationId, signal);
    return { model: "scripted", stream: true, messages: [{ role: "user", content: user_message }] };
  },
});

const note = defineTask({
  id: "note",
  input: z.object({ user_text: z.string(), agent_message: z.string(), how: z.string() }),
  effect: "once",
  async execute({ user_text, agent_message, how }, { operationId, signal }) {
    await act("note", user_text, how, operationId, signal);
    return [{ op: "write", content: agent_message }];
  },
});

const context = z.object({ made: z.unknown() });

const assembly = (
  how: How,
  id = `assembly_${how}`,
  input: z.ZodType = z.object({ user_message: z.string() }),
) =>
  defineWorkflow(id, {
    input,
    context,
    initialNode: "prepare",
    nodes: [
      node("prepare", {
        task: prepare,
        inputMapping: { user_message: "input.user_message", how: `"${how}"` },
        outputMapping: { "state.made": "result" },
      }),
    ],
    outputMapping: {
      model: "state.made.model",
      stream: "state.made.stream",
      messages: "state.made.messages",
      seed: "7",
    },
  });

const extraction = (how: How) =>
  defineWorkflow(`extraction_${how}`, {
    input: z.object({ user_text: z.string(), agent_message: z.string() }),
    context,
    initialNode: "note",
    nodes: [
      node("note", {
        task: note,
        inputMapping: {
          user_text: "input.user_text",
          agent_message: "input.agent_message",
          how: `"${how}"`,
        },
        outputMapping: { "state.made": "result" },
      }),
    ],
    outputMapping: { operations: "state.made" },
  });

interface Hooks {
  contextAssembly?: Workflow;
  memoryExtraction?: Workflow;
  recalls?: true;
}

const persona = (id: string, { contextAssembly, memoryExtraction, recalls }: Hooks) => {
  return definePersona(id, {
    identity: { systemPrompt: "You are a test.", modelProfileId: "test/scripted" },
    memory: {
      ...(recalls && { scope: "agent", recall: { minRelevance: 0 } }),
      ...(contextAssembly && { contextAssembly: { workflow: contextAssembly } }),
      ...(memoryExtraction && {
        scope: "agent",
        recall: false,
        memoryTools: false,
        memoryExtraction: { workflow: memoryExtraction },
      }),
    },
  });
};

/** Exactly the members that a context hook gets. */
const closedInput = z.strictObject({
  conversation_id: z.string(),
  turn_id: z.string(),
  user_message: z.string(),
  recent_turns: z.array(z.json()),
  summary: z.string().optional(),
  model_profile: z.json(),
  tool_definitions: z.array(z.json()),
  system_instructions: z.array(z.string()),
  active_turns: z.array(z.json()),
  reply_to: z.json().optional(),
  output: z.json().optional(),
  tool_choice: z.json().optional(),
  memories: z.array(z.json()).optional(),
});

/**
 * The persona `closed` recalls, and its hook takes only the known members. The personas `assembly_HOW` and `extraction_HOW` have the workflow of the
 * same id as their hook.
 */
export const hookLibrary = defineLibrary("hookflows", {
  personas: [
    persona("closed", { contextAssembly: assembly("works", "closed", closedInput), recalls: true }),
    ...hows.map((how) => persona(`assembly_${how}`, { contextAssembly: assembly(how) })),
    ...hows.map((how) => persona(`extraction_${how}`, { memoryExtraction: extraction(how) })),
  ],
});
