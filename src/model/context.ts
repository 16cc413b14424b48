/** The provider-neutral request of a model: instructions, messages, tools. */
import type { JsonObject } from "../shared/json.ts";
import type { ContextMessage } from "./messages.ts";

/** A tool as a model sees it. */
export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: JsonObject;
}

/** Everything a request is built from. */
export interface ModelContext {
  systemInstructions: readonly string[];
  messages: readonly ContextMessage[];
  tools: readonly ToolSpec[];
  /** `auto` lets the model call tools, `none` forces text, `required` a call, a name a call of that tool. */
  toolChoice: "auto" | "none" | "required" | { name: string };
  /** The reply must be JSON of this schema. */
  output?: OutputSpec;
  /** What helps a provider to find its prompt cache again. A hint: one that cannot take it does without. */
  cache?: {
    /** The same for all requests that begin alike. */
    key: string;
    /** How many of the messages, counted from the first, later requests will repeat. */
    stableMessages: number;
  };
}

/** What a structured reply must look like. */
export interface OutputSpec {
  /** 1 to 64 letters, digits, `_` and `-`. */
  name: string;
  /** JSON Schema of an object. */
  schema: JsonObject;
}
