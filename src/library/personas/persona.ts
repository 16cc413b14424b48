/**
 * The settings of a persona and their defaults.
 *
 * PERSONA-1  `definePersona` keeps the fields as written. The registry fills in the defaults, then hashes and pins the result. A new default
 *            does not change existing conversations. Writing a default explicitly does not change the hash.
 */
import type { Persona } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { completeScope } from "../memory/scope.ts";

const DEFAULT_RECENT_TURNS = 20;
const DEFAULT_MAX_MOVES = 16;
/** Maximum of `maxMovesPerTurn`. The ids of a turn's calls have room for this number of replies. */
export const MAX_MOVES = 100;

/** Returns the maximum number of recent turns in the model's context. */
export function recentTurnsLimit(persona: Persona): number {
  return persona.memory?.recentTurnsLimit ?? DEFAULT_RECENT_TURNS;
}

/** Returns the maximum number of model replies per turn. The agent must then answer. */
export function maxMovesPerTurn(persona: Persona): number {
  return persona.tools?.constraints?.maxMovesPerTurn ?? DEFAULT_MAX_MOVES;
}

/** Returns the persona with its settings filled in. */
export function completePersona(persona: Persona): Persona {
  return {
    ...persona,
    memory: {
      ...persona.memory,
      recentTurnsLimit: recentTurnsLimit(persona),
      ...defined({ scope: completeScope(persona.memory) }),
    },
    tools: {
      ...persona.tools,
      constraints: { ...persona.tools?.constraints, maxMovesPerTurn: maxMovesPerTurn(persona) },
    },
  };
}
