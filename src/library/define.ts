/**
 * The builders of code-defined libraries. Everything is checked here, when the module loads, so a mistake stops the
 * deployment and not a conversation.
 *
 * LIB-1  A tool's `execute` gets only input that its zod schema has accepted.
 * LIB-2  A tool that declares no effect is `once`: it is never run again when its outcome is unknown.
 */
import { z } from "zod";
import type { ModelProfile } from "../model/profile.ts";
import type { Persona, ToolDefinition, ToolEffect } from "../protocol/definitions.ts";
import type { ToolState } from "../protocol/tool-state.ts";
import type { CallContext } from "../shared/call-context.ts";
import type { DefinitionReference } from "../shared/definition-reference.ts";
import { DramatisError } from "../shared/errors.ts";
import type { Json, JsonObject } from "../shared/json.ts";
import { utf8Length } from "../shared/utf8.ts";
import { inputIssues, issuesText, validate } from "../shared/validation.ts";
import { MAX_DEFINITION_BYTES } from "./definition.ts";
import { idSchema, parseReference } from "./reference.ts";
import {
  DEFAULT_TOOL_TIMEOUT_MS,
  modelProfileSchema,
  personaSchema,
  toolDefinitionSchema,
} from "./schemas.ts";
import { ToolError } from "./tool-error.ts";

/** What a tool may use while it runs. */
export interface ToolContext {
  /** The call's identity across retries: hand it to other services as the idempotency key. */
  operationId: string;
  /** Aborts when the call is cancelled or its time is up. */
  signal: AbortSignal;
  context: CallContext;
  /** Facts kept in the conversation. */
  state: ToolState;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Tells whoever watches how far the call is. Nothing is kept of it, and the model does not see it. */
  progress(value: Json): void;
}

/** How a tool is written. */
export interface ToolOptions<Input extends z.ZodType> {
  /** What the model calls it: letters, digits, `_` and `-`. */
  name: string;
  /** Absent = the name in lower case, with hyphens. */
  id?: string;
  /** Tells the model when to use the tool. */
  description: string;
  /** A zod object. Describe its fields with `.describe()`: the model reads that too. */
  input: Input;
  /** What running it twice would do; `once` when absent. */
  effect?: ToolEffect;
  /** One attempt may take this long, in milliseconds: at most 900 000, 60 000 when absent. */
  timeoutMs?: number;
  /** Returns what the model is told: anything that is JSON. Throw `ToolError` to say what went wrong. */
  execute(input: z.output<Input>, context: ToolContext): unknown;
}

/** Something with an id in a library. */
export interface Defined<Definition> {
  readonly id: string;
  readonly definition: Definition;
}

/** A tool with its code. */
export interface Tool extends Defined<ToolDefinition> {
  /** Checks the input and executes. Throws `ToolError` with `INVALID_INPUT` before anything is executed. */
  run(input: unknown, context: ToolContext): Promise<unknown>;
}

export interface Library {
  readonly id: string;
  readonly personas: readonly Defined<Persona>[];
  readonly tools: readonly Tool[];
  readonly modelProfiles: readonly Defined<ModelProfile>[];
}

export function definePersona(id: string, persona: Persona): Defined<Persona> {
  return defined(id, validate(personaSchema, persona, "", `Persona "${id}"`));
}

export function defineModelProfile(id: string, profile: ModelProfile): Defined<ModelProfile> {
  return defined(id, validate(modelProfileSchema, profile, "", `Model profile "${id}"`));
}

/**
 * A tool: what the model sees, and the code behind it.
 * @example
 * const greet = defineTool({
 *   name: "greet",
 *   description: "Greets somebody by name.",
 *   input: z.object({ name: z.string() }),
 *   effect: "pure",
 *   execute: ({ name }) => `Hello, ${name}!`,
 * });
 */
export function defineTool<Input extends z.ZodType>(options: ToolOptions<Input>): Tool {
  const { name, input, execute } = options;
  const definition = validate(
    toolDefinitionSchema,
    {
      name,
      description: options.description,
      inputSchema: toInputSchema(name, input),
      effect: options.effect ?? "once",
      timeoutMs: options.timeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS,
    },
    "",
    `Tool "${name}"`,
  );
  return {
    ...defined(options.id ?? name.toLowerCase().replaceAll("_", "-"), definition),
    async run(value, context) {
      const parsed = await input.safeParseAsync(value);
      if (parsed.success) return execute(parsed.data, context);
      const issues = issuesText(inputIssues(parsed.error));
      throw new ToolError(`The input does not match the schema of "${name}": ${issues}`, {
        code: "INVALID_INPUT",
      });
    },
  };
}

/** A library of definitions. References without a library, as in `toolIds: ["greet"]`, stay within it. */
export function defineLibrary(
  id: string,
  contents: {
    personas?: readonly Defined<Persona>[];
    tools?: readonly Tool[];
    modelProfiles?: readonly Defined<ModelProfile>[];
  },
): Library {
  const { personas = [], tools = [], modelProfiles = [] } = contents;
  const library: Library = {
    id: validate(idSchema, id, "", `The id "${id}"`),
    personas,
    tools,
    modelProfiles,
  };
  refuseDuplicates(id, "persona", personas);
  refuseDuplicates(id, "tool", tools);
  refuseDuplicates(id, "model profile", modelProfiles);
  checkOwnReferences(library);
  return library;
}

function checkOwnReferences(library: Library): void {
  const check = (
    who: string,
    reference: DefinitionReference,
    kind: string,
    known: readonly { id: string }[],
  ) => {
    const target = parseReference(reference, library.id);
    if (target.library !== library.id || known.some((candidate) => candidate.id === target.id)) return;
    const ids = known.map((candidate) => candidate.id).join(", ") || "none";
    throw new DramatisError(
      "INVALID_INPUT",
      `${who} refers to the ${kind} "${target.id}", which library "${library.id}" does not have. It has: ${ids}.`,
    );
  };
  for (const { id, definition } of library.personas) {
    const who = `Persona "${id}"`;
    for (const reference of definition.tools?.toolIds ?? []) check(who, reference, "tool", library.tools);
    const { modelProfileId } = definition.identity;
    if (modelProfileId !== undefined) check(who, modelProfileId, "model profile", library.modelProfiles);
  }
  for (const { id, definition } of library.modelProfiles) {
    for (const reference of definition.fallbacks ?? [])
      check(`Model profile "${id}"`, reference, "model profile", library.modelProfiles);
  }
}

function refuseDuplicates(library: string, kind: string, defined: readonly { id: string }[]): void {
  const seen = new Set<string>();
  for (const { id } of defined) {
    if (seen.has(id)) {
      throw new DramatisError(
        "INVALID_INPUT",
        `Library "${library}" has two definitions of the ${kind} "${id}". Rename one, or give it an id of its own.`,
      );
    }
    seen.add(id);
  }
}

function defined<Definition extends object>(id: string, definition: Definition): Defined<Definition> {
  const checked = validate(idSchema, id, "", `The id "${id}"`);
  const bytes = utf8Length(JSON.stringify(definition));
  if (bytes > MAX_DEFINITION_BYTES) {
    throw new DramatisError(
      "INVALID_INPUT",
      `The definition of "${id}" has ${bytes} bytes as JSON; it may have ${MAX_DEFINITION_BYTES}.`,
    );
  }
  return { id: checked, definition };
}

/** The JSON Schema of what a caller sends. Keywords that only restate the type are left out: each costs tokens. */
function toInputSchema(name: string, input: z.ZodType): JsonObject {
  try {
    const schema = z.toJSONSchema(input, {
      io: "input",
      override: ({ jsonSchema }) => {
        if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      },
    });
    const { $schema: _, ...rest } = schema;
    return JSON.parse(JSON.stringify(rest));
  } catch (error) {
    throw new DramatisError(
      "INVALID_INPUT",
      `The input of tool "${name}" cannot be written as JSON Schema: ${error instanceof Error ? error.message : error}. ` +
        "Use types that JSON has; turn them into others with .transform().",
      { cause: error },
    );
  }
}
