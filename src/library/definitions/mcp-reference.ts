/**
 * References to tools of MCP servers. Pure.
 *
 * MCPREF-1  `mcp:server/tool` names a tool of a server, and `mcp:server/*` all tools that the application allows.
 */
import { z } from "zod";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { referenceSchema } from "./reference.ts";

const SERVER = "[a-z0-9][a-z0-9-]{0,31}";
const FORM = new RegExp(`^mcp:(?<server>${SERVER})/(?<tool>\\*|[A-Za-z0-9_./-]{1,128})$`);
const LIBRARY = new RegExp(`^(?:[A-Za-z0-9][A-Za-z0-9_-]{0,63}|mcp:${SERVER})$`);

export const mcpServerIdSchema = z
  .string()
  .regex(new RegExp(`^${SERVER}$`), "Must be 1 to 32 small letters, digits and hyphens.");

/** The library of a pinned tool: a library, or `mcp:` and the id of a server. */
export const toolLibrarySchema = z.string().regex(LIBRARY, "Must be the id of a library, or `mcp:server`.");

export const toolReferenceSchema = z.union(
  [referenceSchema, z.string().regex(FORM)],
  'A reference is "library/id", "library/id@version", {library, id, version?}, "mcp:server/tool" or "mcp:server/*"',
);

export interface McpReference {
  server: string;
  /** The name of a tool, or `*` for all. */
  tool: string;
}

/** Returns the parts of a reference to an MCP server; `undefined` for other references. */
export function mcpReference(reference: DefinitionReference): McpReference | undefined {
  const { server, tool } = (typeof reference === "string" && FORM.exec(reference)?.groups) || {};
  return server === undefined || tool === undefined ? undefined : { server, tool };
}

export function modelName(server: string, id: string): string {
  return `mcp__${server}__${id}`;
}

export function mcpLibrary(server: string): string {
  return `mcp:${server}`;
}

/** Returns the server of a pinned tool; `undefined` if its library is no server. */
export function mcpServerOf(library: string): string | undefined {
  return library.startsWith("mcp:") ? library.slice(4) : undefined;
}
