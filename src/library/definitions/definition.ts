/**
 * The kinds of definitions, and the identity of their content.
 *
 * HASH-1  The hash covers the whole content, including name and description. It ignores the order of keys and everything
 *         that the registry adds: library, id, version, owner and times.
 */
import type { ModelProfile } from "../../model/profile.ts";
import type { Persona, Skill, ToolDefinition } from "../../protocol/definitions.ts";
import type { ActionDefinition, PromptDefinition, TaskDefinition } from "../../protocol/task-definition.ts";
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import { sha256Hex } from "../../shared/sha256.ts";

/** The type of the definitions of each kind. */
export interface DefinitionTypes {
  persona: Persona;
  tool: ToolDefinition;
  "model-profile": ModelProfile;
  task: TaskDefinition;
  action: ActionDefinition;
  prompt: PromptDefinition;
  workflow: WorkflowDefinition;
  skill: Skill;
}

export type DefinitionKind = keyof DefinitionTypes;

export const DEFINITION_KINDS: readonly DefinitionKind[] = [
  "persona",
  "tool",
  "model-profile",
  "task",
  "action",
  "prompt",
  "workflow",
  "skill",
];

export function kindName(kind: DefinitionKind): string {
  return kind.replace("-", " ");
}

/** Maximum size of a definition as JSON, in UTF-8 bytes. Each version is one row of the database. */
export const MAX_DEFINITION_BYTES = 512 * 1024;

/** Returns the SHA-256 of the definition's canonical JSON as 64 hex digits. */
export function contentHash(definition: DefinitionTypes[DefinitionKind]): Promise<string> {
  // SAFETY: a definition has passed its schema, and the schemas admit only JSON values.
  return sha256Hex(canonicalJson(definition as unknown as Json));
}
