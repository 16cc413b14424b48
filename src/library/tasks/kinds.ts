/**
 * The kinds of actions: their options, their effects, and their references.
 *
 * ACTION-1  An action has a known kind and the options of its kind. Other actions are rejected when they are defined.
 * ACTION-3  A definition refers to functions by id and contains no code. JSON and TypeScript can therefore express the same definitions.
 */
import { z } from "zod";
import { approvalRuleSchema } from "../../protocol/approval-schema.ts";
import { ARTIFACT_KINDS, isArtifactRead } from "../../protocol/artifacts.ts";
import { TOOL_EFFECTS, type ToolEffect } from "../../protocol/definition-parts.ts";
import {
  HUMAN_KINDS,
  type HumanAction,
  type InlineAction,
  type MemoryAction,
} from "../../protocol/task-definition.ts";
import { isRead, WORKSPACE_ACTION_KINDS } from "../../protocol/workspace.ts";
import type { Mapping } from "../../shared/expressions/mapping.ts";
import { hostProblem } from "../../shared/host-rules.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { MAX_TEMPLATE_LENGTH } from "../../shared/templates/template-limits.ts";
import { referenceSchema } from "../definitions/reference.ts";
import { MAX_TIMEOUT_MS } from "../tools/tool-schema.ts";
import { schemaCheck } from "./schema-check.ts";
import {
  MAX_ACTION_HOSTS,
  MAX_ANSWER_TOKENS,
  MAX_GATE_MS,
  MAX_MOCK_DELAY_MS,
  MAX_PROMPT_TOKENS,
} from "./task-limits.ts";

interface Refers {
  prompt?: DefinitionReference;
  profile?: DefinitionReference;
}

interface ActionKind<Kind extends InlineAction> {
  schema: z.ZodType;
  /** The expressions of the action, with their JSON pointers. */
  mappings?(action: Kind): { path: string; mapping: Mapping }[];
  /** The Liquid texts of the action, with their JSON pointers. */
  templates?(action: Kind): { path: string; source: string | undefined }[];
  refers?(action: Kind): Refers;
  effect(action: Kind): ToolEffect;
}

const timeoutMs = z.int().min(1).max(MAX_TIMEOUT_MS).exactOptional();
const template = z.string().min(1).max(MAX_TEMPLATE_LENGTH);
/** A name of an event or a measurement. */
const dottedName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)*$/, "Must be words of small letters and digits, joined by dots.")
  .max(100);
const kind = z.string();

const KINDS: { [Name in InlineAction["kind"]]: ActionKind<Extract<InlineAction, { kind: Name }>> } = {
  update_context: {
    schema: z.strictObject({ kind, values: z.record(z.string().min(1).max(200), z.string().min(1)) }),
    mappings: ({ values }) => [{ path: "/values", mapping: values }],
    effect: () => "pure",
  },
  "http.request": {
    schema: z.strictObject({
      kind,
      hosts: z
        .array(z.string().superRefine(checkHost))
        .min(1, "Must name the hosts that it may reach.")
        .max(MAX_ACTION_HOSTS),
      effect: z.enum(TOOL_EFFECTS).exactOptional(),
      timeoutMs,
    }),
    effect: ({ effect = "once" }) => effect,
  },
  llm: {
    schema: z
      .strictObject({
        kind,
        profile: referenceSchema.exactOptional(),
        prompt: referenceSchema.exactOptional(),
        systemPrompt: template.exactOptional(),
        template: template.exactOptional(),
        outputSchema: schemaCheck.exactOptional(),
        maxInputTokens: z.int().min(1).max(MAX_PROMPT_TOKENS).exactOptional(),
        maxOutputTokens: z.int().min(1).max(MAX_ANSWER_TOKENS).exactOptional(),
        timeoutMs,
      })
      .refine(({ prompt, template: own }) => prompt !== undefined || own !== undefined, {
        path: ["template"],
        error: "Must have a `prompt` of a library, or a `template` of its own.",
      }),
    templates: ({ systemPrompt, template: own }) => [
      { path: "/systemPrompt", source: systemPrompt },
      { path: "/template", source: own },
    ],
    refers: ({ prompt, profile }) => ({ ...(prompt && { prompt }), ...(profile && { profile }) }),
    // A repeated request gives another answer and costs twice.
    effect: () => "idempotent",
  },
  "llm.embed": {
    schema: z.strictObject({ kind, profile: referenceSchema.exactOptional(), timeoutMs }),
    refers: ({ profile }) => (profile === undefined ? {} : { profile }),
    effect: () => "idempotent",
  },
  emit_event: {
    schema: z.strictObject({ kind, name: dottedName }),
    effect: () => "pure",
  },
  "metric.record": {
    schema: z.strictObject({ kind, name: dottedName, unit: z.string().min(1).max(32).exactOptional() }),
    effect: () => "pure",
  },
  vector: {
    schema: z.strictObject({
      kind,
      index: z.string().min(1).max(64),
      operation: z.enum(["query", "upsert"]),
    }),
    effect: ({ operation }) => (operation === "query" ? "pure" : "idempotent"),
  },
  "mock.return": {
    schema: z.strictObject({
      kind,
      schema: schemaCheck,
      seed: z.int().min(0).exactOptional(),
      stringMode: z.enum(["words", "letters", "empty"]).exactOptional(),
      delay: z
        .strictObject({
          minMs: z.int().min(0).max(MAX_MOCK_DELAY_MS),
          maxMs: z.int().min(0).max(MAX_MOCK_DELAY_MS),
        })
        .refine(({ minMs, maxMs }) => minMs <= maxMs, { path: ["minMs"], error: "Must not exceed maxMs." })
        .exactOptional(),
    }),
    effect: () => "pure",
  },
  "memory.write": memory("idempotent"),
  "memory.read": memory("pure"),
  "memory.search": memory("pure"),
  "memory.list": memory("pure"),
  "memory.update": memory("idempotent"),
  "memory.delete": memory("idempotent"),
  "memory.archive": memory("idempotent"),
  ...operations(WORKSPACE_ACTION_KINDS, isRead),
  ...operations(ARTIFACT_KINDS, isArtifactRead),
  "human.input": human(),
  "human.approve": human(),
  "human.review": human(),
};

function memory(effect: ToolEffect): ActionKind<Extract<InlineAction, MemoryAction>> {
  return { schema: z.strictObject({ kind }), effect: () => effect };
}

/** Describes actions without options, on a workspace or on artifacts. */
function operations<Kind extends InlineAction["kind"]>(
  kinds: readonly Kind[],
  isPure: (name: Kind) => boolean,
) {
  const describe = (name: Kind): [string, ActionKind<InlineAction>] => [
    name,
    { schema: z.strictObject({ kind }), effect: () => (isPure(name) ? "pure" : "idempotent") },
  ];
  // SAFETY: the entries have the kinds as their names.
  return Object.fromEntries(kinds.map(describe)) as { [Name in Kind]: ActionKind<InlineAction> };
}

function human(): ActionKind<Extract<InlineAction, HumanAction>> {
  return {
    schema: z.strictObject({
      kind,
      prompt: template,
      schema: schemaCheck.exactOptional(),
      timeoutMs: z.int().min(1_000).max(MAX_GATE_MS).exactOptional(),
      approval: approvalRuleSchema.exactOptional(),
    }),
    templates: ({ prompt }) => [{ path: "/prompt", source: prompt }],
    // The same person must not be asked twice.
    effect: () => "once",
  };
}

/** Accepted aliases of kinds, as other systems name them. */
const ALIASES: Readonly<Record<string, string>> = {
  "llm.generate": "llm",
  "context.transform": "update_context",
};

/** Kinds of other systems that are no actions here, with what to use instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  workflow: "Let a node of a workflow run the other workflow.",
  "mcp.invoke": "Name the tool of the MCP server as `mcp:SERVER/TOOL` in a persona.",
};

function checkHost(host: string, context: z.RefinementCtx<string>): void {
  const message = hostProblem(host);
  if (message !== null) context.addIssue({ code: "custom", message });
}

/** The kinds of actions without code. Functions have the kind `code`, and steps refer to them by id. */
export const ACTION_KINDS = Object.keys(KINDS) as InlineAction["kind"][];

export function kindOf<Kind extends InlineAction>({ kind: name }: Kind): ActionKind<Kind> {
  // SAFETY: the table has each kind under its own name.
  return KINDS[name] as unknown as ActionKind<Kind>;
}

export function isKind(name: unknown): name is InlineAction["kind"] {
  return typeof name === "string" && Object.hasOwn(KINDS, name);
}

export function kindNamed(name: unknown): unknown {
  return typeof name === "string" && Object.hasOwn(ALIASES, name) ? ALIASES[name] : name;
}

/** Returns what to use instead of a kind of another system; `undefined` for other names. */
export function insteadOfKind(name: unknown): string | undefined {
  return typeof name === "string" && Object.hasOwn(INSTEAD, name) ? INSTEAD[name] : undefined;
}

export function asksPerson({ kind: name }: { kind: string }): boolean {
  return HUMAN_KINDS.some((one) => one === name);
}

export function refersTo(action: InlineAction): Refers {
  return kindOf(action).refers?.(action) ?? {};
}
