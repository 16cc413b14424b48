/**
 * A persona's settings and their defaults.
 *
 * PERSONA-1  A definition keeps its fields as written. What the registry hands out, and so what a conversation pins
 *            and what is hashed, has its settings filled in: a later change of a default alters no conversation that
 *            exists, and writing a default out changes no hash.
 */
import type { Persona } from "../protocol/definitions.ts";

const DEFAULT_RECENT_TURNS = 20;
const DEFAULT_MAX_MOVES = 16;
/** The most model replies per turn that a persona may ask for: the ids of a turn have room for their calls. */
export const MAX_MOVES = 100;

/** Turns of a conversation that the model sees, as far as they fit its context. */
export function recentTurnsLimit(persona: Persona): number {
  return persona.memory?.recentTurnsLimit ?? DEFAULT_RECENT_TURNS;
}

/** Model replies per turn before the agent must answer. */
export function maxMovesPerTurn(persona: Persona): number {
  return persona.tools?.constraints?.maxMovesPerTurn ?? DEFAULT_MAX_MOVES;
}

/** The same persona with every setting written out. */
export function completePersona(persona: Persona): Persona {
  return {
    ...persona,
    memory: { ...persona.memory, recentTurnsLimit: recentTurnsLimit(persona) },
    tools: {
      ...persona.tools,
      constraints: { ...persona.tools?.constraints, maxMovesPerTurn: maxMovesPerTurn(persona) },
    },
  };
}
