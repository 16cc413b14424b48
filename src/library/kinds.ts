/** The kinds of definitions that a library holds. */
import type { ModelProfile } from "../model/profile.ts";
import type { Persona, ToolDefinition } from "../protocol/definitions.ts";
import { completePersona } from "./persona.ts";

/** What each kind defines. */
export interface DefinitionTypes {
  persona: Persona;
  tool: ToolDefinition;
  "model-profile": ModelProfile;
}

export type DefinitionKind = keyof DefinitionTypes;

/** As messages call them. */
export const KIND_NAMES: Record<DefinitionKind, string> = {
  persona: "persona",
  tool: "tool",
  "model-profile": "model profile",
};

/** The most bytes that a definition may have, as JSON in UTF-8: it is one row of the registry. */
export const MAX_DEFINITION_BYTES = 512 * 1024;

const COMPLETE: { [Kind in DefinitionKind]: (definition: DefinitionTypes[Kind]) => DefinitionTypes[Kind] } = {
  persona: completePersona,
  tool: (definition) => definition,
  "model-profile": (definition) => definition,
};

/** The definition with every setting written out: what is hashed, kept and pinned. */
export function completeDefinition<Kind extends DefinitionKind>(
  kind: Kind,
  definition: DefinitionTypes[Kind],
): DefinitionTypes[Kind] {
  return COMPLETE[kind](definition);
}
