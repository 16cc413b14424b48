/** The prompts of the libraries of a tenant, named `library/id`. A prompt without a description is a part of a task, and is not offered. */
import { type McpServer, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { promptResult } from "../../compat/mcp/prompts.ts";
import { describing } from "../../compat/mcp/tools.ts";
import type { LibraryPorts } from "../../library/authoring/authoring.ts";
import { type DefinitionKey, formatReference, parseReference } from "../../library/definitions/reference.ts";
import type { PromptDefinition } from "../../protocol/task-definition.ts";
import { DramatisError } from "../../shared/errors.ts";
import { everyLibrary, ifNotFound } from "./lists.ts";

type Registry = LibraryPorts["registry"];

export async function addAllPrompts(server: McpServer, registry: Registry): Promise<void> {
  for (const { key, definition } of await everyLibrary(registry, "prompt"))
    addPrompt(server, key, definition);
}

/** Adds a prompt, if it exists. */
export async function addNamedPrompt(server: McpServer, registry: Registry, name: string): Promise<void> {
  if (!/^[^/@]+\/[^/@]+$/.test(name)) return;
  const key = keyOf(name);
  const found = key && (await registry.find("prompt", key).catch(ifNotFound));
  if (key && found) addPrompt(server, key, found.definition);
}

/** Returns the key that a name has; `undefined` for a name that no prompt can have. */
function keyOf(name: string): DefinitionKey | undefined {
  try {
    return parseReference(name);
  } catch (error) {
    if (error instanceof DramatisError) return undefined;
    throw error;
  }
}

function addPrompt(server: McpServer, key: DefinitionKey, prompt: PromptDefinition): void {
  const { description, requires = {} } = prompt;
  if (description === undefined) return;
  server.registerPrompt(formatReference(key), { description, argsSchema: describing(requires) }, (given) => {
    try {
      return promptResult(prompt, given);
    } catch (error) {
      if (!(error instanceof DramatisError)) throw error;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, error.message);
    }
  });
}
