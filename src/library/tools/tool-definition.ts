/**
 * The definition of a tool in code: the common options of all tools, and their checks.
 *
 * TOOLID-1  The id of a tool in code is its name, unchanged, unless the tool has an `id`.
 */
import { z } from "zod";
import type { ApprovalNeed } from "../../protocol/approval-schema.ts";
import type { AgentTarget, ToolDefinition, ToolEffect, ToolTarget } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import type { Mapping } from "../../shared/expressions/mapping.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import { utf8Length } from "../../shared/utf8.ts";
import { jsonPointer, validate } from "../../shared/validation.ts";
import { MAX_DEFINITION_BYTES } from "../definitions/definition.ts";
import { inputSchemaOf, isZodSchema, objectSchema, valueSchemaOf } from "../definitions/json-schema-of.ts";
import { agentDefaults, agentTarget, RESERVED, reservedMember } from "./agent-tool.ts";
import type { Defined, ToolContext } from "./tool.ts";
import { completeRetry, readTimeout, type ToolRetry, withoutTimeout } from "./tool-forms.ts";
import { DEFAULT_TOOL_TIMEOUT_MS, retrySchema, timeoutProblem, toolDefinitionSchema } from "./tool-schema.ts";

/** The argument of `defineTool`. */
export interface ToolOptions<Input extends z.ZodType> {
  /** Name for the model: 1 to 64 letters, digits, `_` and `-`. */
  name: string;
  /** The name when absent (TOOLID-1). */
  id?: string;
  /** Explains to the model when to use the tool. */
  description: string;
  /** A zod object. The model also reads descriptions that you add to fields with `.describe()`. */
  input: Input;
  /** Effect of running the tool twice; `once` when absent. */
  effect?: ToolEffect;
  /**
   * The hosts that the tool's code reaches, as `host` or `host:port`. Without this list, the code may reach any host. A sub-agent then needs
   * `network: "any"` to use the tool.
   */
  hosts?: string[];
  /** Runs calls in the background: the model continues immediately and receives the result later in the same turn. `false` when absent. */
  async?: boolean;
  /**
   * `always` or a rule requires a person's approval before a call. The call runs with the input that the person saw. A rule names the people
   * who may answer. With `always`, every participant may answer. Default: `never`.
   * @example { by: "operator", notRequester: true }
   */
  approval?: ApprovalNeed;
  /** Timeout of one attempt, in milliseconds: 1 to 900 000; 60 000 when absent. */
  timeoutMs?: number;
  /** Attempts of a call after temporary errors. Default: one attempt. `once` tools cannot retry. */
  retry?: ToolRetry;
  /** Returns the result for the model, any JSON. Throw `ToolError` to report a failure to the model. */
  execute(input: z.output<Input>, context: ToolContext): unknown;
}

/** The fields of all kinds of tools. `toolDefinitionSchema` checks their values. */
export const commonOptions = Object.fromEntries(
  ["name", "id", "description", "effect", "timeoutMs", "retry", "async", "approval", "hosts"].map((name) => [
    name,
    z.unknown().optional(),
  ]),
);
export const zodSchema = z.custom(
  isZodSchema,
  "Must be a schema of zod 4. Wrap the fields in z.object({…}).",
);

export type Usual = Partial<Pick<ToolDefinition, "inputSchema" | "timeoutMs" | "effect" | "retry">>;

export function definedTool(
  options: Omit<ToolOptions<z.ZodType>, "input" | "execute">,
  tool: string,
  {
    input,
    target,
    inputMapping,
    usual = agentTarget(target) && agentDefaults(agentTarget(target) as AgentTarget),
  }: { input?: z.ZodType; target?: ToolTarget; inputMapping?: Mapping; usual?: Usual },
): Defined<ToolDefinition> {
  const {
    name,
    description,
    id,
    effect = usual?.effect ?? "once",
    async: isAsync,
    approval,
    hosts,
  } = options;
  const refuse = (path: string[], message: string) => {
    throw invalid(`${tool}: ${jsonPointer(path)}: ${message}`);
  };
  const timeoutMs = readTimeout(options, refuse);
  const attempts = validate(retrySchema, withoutTimeout(options.retry) ?? {}, "/retry", tool);
  const own = completeRetry(attempts, effect, refuse);
  const retry = options.retry === undefined && effect !== "once" ? (own ?? usual?.retry) : own;
  const definition = validate(
    toolDefinitionSchema,
    {
      name,
      description,
      inputSchema:
        input === undefined
          ? usual?.inputSchema
          : objectSchema(
              tool,
              (target === undefined ? inputSchemaOf : valueSchemaOf)(`The input of tool "${name}"`, input),
            ),
      effect,
      timeoutMs: timeoutMs ?? usual?.timeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS,
      ...defined({ retry, async: isAsync, approval, hosts, target, inputMapping }),
    },
    "",
    tool,
  );
  const problem = timeoutProblem(definition);
  if (problem !== null) refuse(["timeoutMs"], problem);
  const agent = agentTarget(target);
  const reserved = agent && reservedMember(agent, definition.inputSchema);
  if (reserved !== undefined) refuse(["input", reserved], RESERVED);
  return withId(checkedId("tool", id ?? name), definition);
}

/** Returns a definition with its id. Throws `INVALID_INPUT` if the definition is too large. */
export function withId<Definition extends object>(id: string, definition: Definition): Defined<Definition> {
  const bytes = utf8Length(JSON.stringify(definition));
  if (bytes > MAX_DEFINITION_BYTES)
    throw invalid(
      `The definition of "${id}" has ${bytes} bytes as JSON. The maximum is ${MAX_DEFINITION_BYTES}.`,
    );
  return { id, definition };
}

/** Returns the id. Throws `INVALID_INPUT` if it is not valid. */
export function checkedId(kind: string, id: unknown): string {
  const shown = typeof id === "string" ? `"${id}" ` : "";
  return validate(definitionIdSchema, id, "", `The id ${shown}of a ${kind}`);
}
