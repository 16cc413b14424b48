/** Schemas of the bodies and answers of `/api/libraries` (API-1). */
import { z } from "zod";
import { modelProfileSchema, personaSchema } from "../../library/personas/persona-schema.ts";
import { skillSchema } from "../../library/skills/skill.ts";
import { promptSchema } from "../../library/tasks/prompt.ts";
import { taskFields } from "../../library/tasks/task-schema.ts";
import { withToolForms } from "../../library/tools/tool-forms.ts";
import { retrySchema, toolDefinitionSchema } from "../../library/tools/tool-schema.ts";
import { PROVIDERS } from "../../model/profile.ts";
import { workflowDefinition } from "../../protocol/run-schemas.ts";
import { ids, time } from "../../protocol/scalars.ts";
import { isJsonObject } from "../../shared/json.ts";
import { persona } from "./views.ts";

export const versionNumber = z
  .string()
  .regex(/^[1-9][0-9]{0,14}$/)
  .transform(Number)
  .meta({ description: "Number of a version, from 1.", example: "1" });

const SKILL_FILES = {
  "SKILL.md": "---\nname: greet\ndescription: Greets users. Use it at the first message.\n---\nSay hello.\n",
};

function versionOf(name: string, definition: z.ZodType) {
  return z
    .strictObject({
      library: ids.library,
      id: ids.definition,
      version: z.int().min(1),
      hash: z.string().describe("SHA-256 of the definition as canonical JSON, in hex."),
      definition,
      owner: z.string().nullable().describe("The author; `null` for deployed definitions."),
      createdAt: time.nullable(),
    })
    .meta({ id: name });
}

const modelProfile = modelProfileSchema
  .extend({ provider: z.enum(PROVIDERS), baseUrl: z.url().exactOptional() })
  .meta({
    id: "ModelProfile",
    description: "A model, its settings and its prices.",
    example: { provider: "openai", modelId: "gpt-4.1-mini" },
  });
const tool = toolDefinitionSchema.meta({
  id: "Tool",
  description: "A tool as data.",
  example: {
    name: "sum",
    description: "Adds numbers.",
    inputSchema: { type: "object" },
    effect: "pure",
    timeoutMs: 60_000,
  },
});

const stepView = z.looseObject({ ref: z.string(), action: z.unknown() }).meta({
  id: "Step",
  description: "A step of a task: its action, inline or by reference, its condition and its mappings.",
  example: { ref: "greet", action: { kind: "update_context", values: { text: "'Hello'" } } },
});
const task = z
  .strictObject({
    ...taskFields,
    timeoutMs: z.int().min(1),
    steps: z.array(stepView).exactOptional(),
    effect: toolDefinitionSchema.shape.effect.exactOptional(),
  })
  .meta({
    id: "Task",
    description: "A task as data: of steps, or of a function of the deployed code, which has an effect.",
    example: {
      inputSchema: { type: "object" },
      timeoutMs: 60_000,
      steps: [{ ref: "greet", action: { kind: "update_context", values: { text: "'Hello'" } } }],
    },
  });
const action = z.looseObject({ kind: z.string() }).meta({
  id: "Action",
  description: "An action as data: its kind, and the options of the kind.",
  example: { kind: "http.request", hosts: ["api.example.com"], effect: "pure" },
});
const prompt = promptSchema.meta({
  id: "Prompt",
  description: "Texts for a model, in Liquid.",
  example: { template: "Summarise: {{ text }}" },
});

const skill = skillSchema.meta({
  id: "Skill",
  description: "The files of a folder with a `SKILL.md`: instructions for certain tasks.",
  example: { files: SKILL_FILES },
});

export const workflowVersion = versionOf("WorkflowVersion", workflowDefinition);
export const taskVersion = versionOf("TaskVersion", task);
export const actionVersion = versionOf("ActionVersion", action);
export const promptVersion = versionOf("PromptVersion", prompt);
export const skillVersion = versionOf("SkillVersion", skill);
export const personaVersion = versionOf("PersonaVersion", persona);
export const toolVersion = versionOf("ToolVersion", tool);
export const modelProfileVersion = versionOf("ModelProfileVersion", modelProfile);

const id = { id: ids.definition };

export const taskBody = z.strictObject({ ...taskFields, ...id }).meta({
  example: {
    id: "greet",
    inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    steps: [{ ref: "greet", action: { kind: "update_context", values: { text: "'Hello, ' + input.name" } } }],
  },
});

/** Refuses a field `__proto__`, which zod leaves out of loose objects. */
const withoutProto = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((body, context) => {
    if (isJsonObject(body) && Object.hasOwn(body, "__proto__"))
      context.addIssue({ code: "unrecognized_keys", keys: ["__proto__"], input: body });
    return body;
  }, schema);

export const actionBody = withoutProto(
  z.looseObject({ ...id, kind: z.string().describe("The kind of the action.") }),
).meta({ example: { id: "ask", kind: "http.request", hosts: ["api.example.com"], effect: "pure" } });
/** `checkedWorkflow` checks the rest. */
export const workflowBody = withoutProto(z.looseObject(id)).meta({
  example: {
    id: "greeting",
    inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    initialNode: "greet",
    nodes: [{ ref: "greet", task: "greet", outputMapping: { "output.text": "result" } }],
    outputMapping: { text: "output.text" },
  },
});
export const promptBody = promptSchema.extend(id).meta({
  example: { id: "summarise", template: "Summarise in {{ words }} words: {{ text }}" },
});
export const skillBody = skillSchema.safeExtend(id).meta({ example: { id: "greet", files: SKILL_FILES } });
export const personaBody = personaSchema.extend(id).meta({
  example: { id: "guide", identity: { systemPrompt: "You are a friendly guide." } },
});
export const modelProfileBody = modelProfileSchema.extend(id).meta({
  example: { id: "fast", provider: "openai", modelId: "gpt-4.1-mini", parameters: { temperature: 0 } },
});
const {
  name,
  description,
  inputSchema,
  effect,
  timeoutMs,
  async: isAsync,
  approval,
  target,
  inputMapping,
} = toolDefinitionSchema.shape;
/** Absent fields have the values of the deployed tool. */
export const toolBody = withToolForms(
  z.strictObject({
    ...id,
    name,
    description,
    target: target
      .unwrap()
      .describe(
        "`task` is a task or a deployed tool with code. `workflow` is a workflow: each call starts a run. `agent` is the id of the agent that answers. Its `mode` is the default of a call, and its `template` describes the sub-agents that calls spawn.",
      ),
    inputSchema: inputSchema.exactOptional(),
    effect: effect.exactOptional(),
    timeoutMs: timeoutMs.exactOptional(),
    inputMapping: inputMapping.describe(
      "CEL expressions over `input`, by the members of the deployed tool's input.",
    ),
    retry: retrySchema
      .describe(
        "Attempts of a call that fails for a reason that may pass: 1 when absent. A `once` tool has one. `backoffMs` is the pause before the second, 1 000 when absent; it doubles up to a minute.",
      )
      .exactOptional(),
    async: isAsync.describe(
      "Calls run in the background: the agent continues and gets the result later in the same turn.",
    ),
    approval: approval.describe(
      "`always`, or a rule that names who may answer: no call runs before a person has approved it. `never` only if the deployed tool needs no approval.",
    ),
  }),
).meta({
  example: {
    id: "sum",
    name: "sum",
    description: "Adds up an expression.",
    target: { task: "demo/calculator" },
  },
});
