/** The provider-neutral model request: instructions, messages, tools. */
import type { JsonObject } from "../shared/json.ts";
import type { ContextMessage } from "./messages.ts";

/** A tool as a model sees it. */
export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: JsonObject;
}

/** The required form of a structured reply. */
export interface OutputSpec {
  /** 1 to 64 letters, digits, `_` and `-`. */
  name: string;
  /** JSON Schema of an object. */
  schema: JsonObject;
}

/** The input of a format adapter. */
export interface ModelContext {
  systemInstructions: readonly string[];
  messages: readonly ContextMessage[];
  tools: readonly ToolSpec[];
  /** `auto` allows tool calls, `none` forces text, `required` forces a call, a name forces a call of this tool. */
  toolChoice: "auto" | "none" | "required" | { name: string };
  /** Requires a reply that is JSON of this schema. */
  output?: OutputSpec;
  /** A hint for the provider's prompt cache. Providers without such a hint ignore it. */
  cache?: {
    /** Equal for all requests with the same beginning. */
    key: string;
    /** Number of leading messages that later requests will repeat. */
    stableMessages: number;
  };
}
