/**
 * Definitions: what library authors write. A definition is data with an id, versioned by the hash of its content;
 * a tool's `execute` is code and belongs to whatever is deployed.
 */

import type { ModelProfile } from "../model/profile.ts";
import type { DefinitionReference } from "../shared/identifiers.ts";
import type { JsonObject } from "../shared/json.ts";

/** What one agent is: who it is, what it remembers, what it may use. Holds no state. */
export interface Persona {
  name?: string;
  description?: string;
  identity: {
    systemPrompt: string;
    /** Behavioural instructions, each a system instruction of its own after the prompt. */
    instructions?: string[];
    /** A model profile of a library; absent = the default profile. */
    modelProfileId?: DefinitionReference;
  };
  memory?: {
    /** Turns of this conversation that the model sees, as far as they fit its context; 20 when absent. */
    recentTurnsLimit?: number;
  };
  tools?: {
    toolIds?: DefinitionReference[];
    constraints?: {
      /** Model replies per turn before the agent must answer; 16 when absent. */
      maxMovesPerTurn?: number;
    };
  };
}

/** What running a tool twice would do. Absent means `once`. */
export type ToolEffect = "pure" | "idempotent" | "once";

/** A tool as data: what a conversation pins. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: JsonObject;
  effect: ToolEffect;
  /** One attempt may take this long, in milliseconds. */
  timeoutMs: number;
  /** The deployed tool whose code runs, where that is not the tool itself. */
  task?: DefinitionReference;
}

/** Where a pinned definition came from. Inline definitions have no library. */
export interface Pin {
  library?: string;
  id: string;
  /** 0 for a deployed definition that was pinned while its number could not be asked for: the hash says which it is. */
  version: number;
  /** SHA-256 of the canonical JSON of the content, in hex. */
  hash: string;
}

/** Everything a conversation needs of its agent, resolved when it was created and kept as data. */
export interface VersionChain {
  persona: Pin & { definition: Persona };
  tools: (Pin & { definition: ToolDefinition })[];
  modelProfile: Pin & { definition: ModelProfile };
  /** Who answers when that model cannot, in order. */
  fallbacks?: (Pin & { definition: ModelProfile })[];
}
