/** Checks actions of steps and libraries, as authors write them. */
import type { ToolEffect } from "../../protocol/definition-parts.ts";
import type {
  ActionDefinition,
  CodeActionDefinition,
  InlineAction,
  StepDefinition,
} from "../../protocol/task-definition.ts";
import type { InputIssue } from "../../shared/errors.ts";
import { mappingIssues } from "../../shared/expressions/mapping.ts";
import { isJsonObject, type JsonObject } from "../../shared/json.ts";
import { listIds } from "../../shared/known-ids.ts";
import { templateBudget, templateIssues } from "../../shared/templates/template.ts";
import { inputIssues, plainly } from "../../shared/validation.ts";
import { ACTION_KINDS, asksPerson, insteadOfKind, isKind, kindNamed, kindOf } from "./kinds.ts";
import { AREA_NAMES } from "./paths.ts";
import { type PlacedSchema, schemaIssues } from "./schema-check.ts";

/** Returns the stored form of an action without code. Returns other values unchanged. */
export function normalAction(action: unknown): unknown {
  return isJsonObject(action) && "kind" in action ? { ...action, kind: kindNamed(action.kind) } : action;
}

/** Returns the problems of an action without code (ACTION-1). `path` is the JSON pointer of the action. */
export function actionIssues(action: unknown, path: string): InputIssue[] {
  const issues = optionIssues(action, path);
  // SAFETY: without such problems it is an action of its kind.
  return issues.length > 0 ? issues : schemaIssues(actionSchemas(action as InlineAction, path));
}

/** Returns the JSON Schemas of an action. `path` is the JSON pointer of the action. */
export function actionSchemas(action: StepDefinition["action"], path: string): PlacedSchema[] {
  if (typeof action === "string" || !("kind" in action)) return [];
  if (action.kind === "llm") return [{ path: `${path}/outputSchema`, schema: action.outputSchema }];
  return action.kind === "mock.return" || asksPerson(action)
    ? [{ path: `${path}/schema`, schema: (action as { schema?: JsonObject }).schema }]
    : [];
}

/** Like `actionIssues`, without the keywords of schemas. The templates of one definition share `meter`. */
export function optionIssues(action: unknown, path: string, meter = templateBudget()): InputIssue[] {
  const { kind } = (action ?? {}) as { kind?: unknown };
  if (!isKind(kind)) return [{ path: `${path}/kind`, message: kindProblem(kind) }];
  // SAFETY: the schema of the kind checks the rest.
  const given = action as InlineAction;
  const parsed = kindOf(given).schema.safeParse(given, { error: plainly });
  if (!parsed.success) return inputIssues(parsed.error, path);
  const mappings = kindOf(given).mappings?.(given) ?? [];
  const templates = kindOf(given).templates?.(given) ?? [];
  const texts = templates.flatMap(({ path: place, source }) =>
    source === undefined ? [] : templateIssues(source, `${path}${place}`, meter),
  );
  const expressions = mappings.flatMap(({ path: place, mapping }) =>
    mappingIssues(mapping, AREA_NAMES, `${path}${place}`),
  );
  return [...texts, ...expressions];
}

/** Returns the effect of running an action twice. */
export function effectOfAction(action: ActionDefinition | CodeActionDefinition): ToolEffect {
  return action.kind === "code" ? action.effect : kindOf(action).effect(action);
}

function kindProblem(kind: unknown): string {
  const known = `It is one of: ${listIds(String(kind), ACTION_KINDS)}.`;
  if (kind === undefined)
    return `Must be an action of a library, made with defineAction(…) or named by reference, or have a \`kind\`. ${known}`;
  if (kind === "code")
    return "Functions are actions of deployed libraries. Replace this object with a reference to the action.";
  const instead = insteadOfKind(kind);
  if (instead !== undefined) return `A task has no actions of the kind "${kind}". ${instead} ${known}`;
  return `Unknown kind of action "${String(kind)}". ${known}`;
}
