/**
 * The schemas of pinned versions in an imported conversation. They equal the schemas of posted definitions, with
 * parts instead of references.
 */
import { z } from "zod";
import { TOOL_EFFECTS } from "../../protocol/definition-parts.ts";
import type { ToolDefinition } from "../../protocol/definitions.ts";
import { mappingIssues } from "../../shared/expressions/mapping.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import { inputSchemaIssues } from "../definitions/input-schema.ts";
import { toolLibrarySchema } from "../definitions/mcp-reference.ts";
import { MAX_FALLBACKS, modelProfileSchema, personaSchema } from "../personas/persona-schema.ts";
import { MAX_SKILLS, skillSchema } from "../skills/skill.ts";
import { agentTarget, RESERVED, reservedMember } from "../tools/agent-tool.ts";
import {
  MAX_TIMEOUT_MS,
  pinnedRetrySchema,
  timeoutProblem,
  toolDefinitionSchema,
} from "../tools/tool-schema.ts";

/** Tools of a persona with the tools of its MCP servers, of memory and of calls. */
const MAX_TOOLS = 1_000;

const effect = z.enum(TOOL_EFFECTS);
const origin = { id: definitionIdSchema, version: z.int().min(0), hash: z.string().max(200) };
const pin = { ...origin, library: definitionIdSchema.exactOptional() };
const timeoutMs = z.int().min(1).max(MAX_TIMEOUT_MS);
const place = { library: definitionIdSchema, id: definitionIdSchema, effect, timeoutMs };

const profilePin = z.strictObject({ ...pin, definition: modelProfileSchema });
/** A task and a workflow are checked by themselves. */
const part = z.unknown().optional();

const toolDefinition = toolDefinitionSchema.superRefine((definition, context) => {
  for (const { path, message } of toolIssues(definition))
    context.addIssue({ code: "custom", path: path.split("/").slice(1), message });
});

const tool = z.strictObject({
  ...pin,
  library: toolLibrarySchema.exactOptional(),
  definition: toolDefinition,
  task: part,
});

const hook = z
  .strictObject({ ...place, task: part, workflow: part })
  .refine(({ task, workflow }) => task === undefined || workflow === undefined, {
    path: ["workflow"],
    error: "Must be absent: the hook has a task.",
  });

/** The versions of an agent, without the content of its tasks and workflows. */
export const chainSchema = z.strictObject({
  persona: z.strictObject({ ...pin, definition: personaSchema }),
  tools: z.array(tool).max(MAX_TOOLS),
  withheld: z.record(z.string().max(200), z.string().max(1_000)).exactOptional(),
  modelProfile: profilePin,
  fallbacks: z.array(profilePin).max(MAX_FALLBACKS).exactOptional(),
  compactionProfile: profilePin.exactOptional(),
  titleProfile: profilePin.exactOptional(),
  contextAssembly: hook.exactOptional(),
  memoryExtraction: hook.exactOptional(),
  skills: z
    .array(z.strictObject({ ...pin, definition: skillSchema }))
    .min(1)
    .max(MAX_SKILLS)
    .exactOptional(),
});

/** A task of steps, but for its schemas and its steps. */
export const pinnedTaskSchema = z.strictObject({
  ...pin,
  inputSchema: z.unknown().optional(),
  outputSchema: z.unknown().optional(),
  steps: z.array(z.looseObject({ action: z.looseObject({ kind: z.string() }) })),
  authored: z.literal(true).exactOptional(),
});

export const codeActionSchema = z.strictObject({ kind: z.literal("code"), ...place });

/** A workflow without its definition, and without the content of its tasks and workflows. */
export const pinnedWorkflowSchema = z.strictObject({
  ...origin,
  library: definitionIdSchema,
  definition: z.unknown(),
  tasks: z.record(
    z.string(),
    z.strictObject({ ...place, retry: pinnedRetrySchema.exactOptional(), task: part }),
  ),
  workflows: z.record(z.string(), z.unknown()),
});

/** Returns the problems of a tool that depend on several fields, or on the meaning of its texts. */
function toolIssues(tool: ToolDefinition) {
  const { target, inputSchema, inputMapping = {} } = tool;
  const agent = agentTarget(target);
  const reserved = agent && reservedMember(agent, inputSchema);
  const problem = timeoutProblem(tool);
  return [
    ...inputSchemaIssues(inputSchema, "/inputSchema"),
    ...mappingIssues(inputMapping, ["input"], "/inputMapping"),
    ...(reserved === undefined ? [] : [{ path: `/inputSchema/properties/${reserved}`, message: RESERVED }]),
    ...(problem === null ? [] : [{ path: "/timeoutMs", message: problem }]),
  ];
}
