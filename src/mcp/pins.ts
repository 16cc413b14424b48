/**
 * The accepted tools of an MCP server. Pure.
 *
 * MCPPIN-1  The first list of a server is accepted, because the application names the server. A tool that is new or changed in a later list
 *           waits for an operator. Until then it is not offered, and its calls are refused.
 * MCPPIN-2  A tool that has its accepted description again needs no consent. A tool that leaves the list and returns changed needs it.
 * MCPPIN-3  Consent names the hash that the operator has seen. It fails if the description has changed since.
 * MCPPIN-4  If a consented change makes the effect stricter, conversations that have the older version cannot call the tool.
 */
import { strictest } from "../library/definitions/effects.ts";
import type { McpConsent, McpToolState } from "../protocol/mcp-servers.ts";
import { conflict, notFound } from "../shared/errors.ts";
import type { ListedTool, McpDescriptor } from "./descriptor.ts";

export interface Described {
  hash: string;
  descriptor: McpDescriptor;
}

/** A tool of a server, as the tenant knows it. */
export interface McpPin {
  name: string;
  /** Counts the accepted descriptions. */
  version: number;
  /** The oldest version that may still be called (MCPPIN-4). */
  least: number;
  accepted?: Described;
  /** Who accepted the newest change. Absent for the first list. */
  by?: string;
  /** A description that waits for consent. */
  offered?: Described;
  /** The newest list does not have it. */
  missing?: true;
  /** The newest list has it in a form that cannot be used. */
  problem?: string;
}

export interface McpList {
  /** Time of the newest list, in milliseconds since the epoch; 0 if it must be read again. */
  listedAt: number;
  tools: Record<string, McpPin>;
}

/** Returns the list after a server has sent its tools (MCPPIN-1, MCPPIN-2). */
export function merged(list: McpList | null, listed: readonly ListedTool[], now: number): McpList {
  const known = new Map(Object.entries(list?.tools ?? {}));
  const tools = new Map<string, McpPin>();
  for (const tool of listed) {
    const before = known.get(tool.id);
    // Another tool may have the id now. The name of the accepted tool stays until consent.
    const pin = before?.accepted === undefined ? { ...blank(tool.name), ...before, name: tool.name } : before;
    const { offered: _, missing: __, problem: ___, ...kept } = pin;
    known.delete(tool.id);
    if (tool.problem !== undefined) {
      tools.set(tool.id, { ...kept, problem: tool.problem });
      continue;
    }
    const { descriptor, hash } = tool;
    const isAccepted = kept.accepted?.hash === hash;
    if (isAccepted) tools.set(tool.id, kept);
    else if (list === null)
      tools.set(tool.id, { ...kept, version: 1, least: 1, accepted: { descriptor, hash } });
    else tools.set(tool.id, { ...kept, offered: { descriptor, hash } });
  }
  for (const [id, { offered: _, problem: __, ...kept }] of known)
    if (kept.accepted !== undefined) tools.set(id, { ...kept, missing: true });
  return { listedAt: now, tools: Object.fromEntries(tools) };
}

function blank(name: string): McpPin {
  return { name, version: 0, least: 1 };
}

/** Returns the list after an operator has accepted descriptions (MCPPIN-3). Throws `NOT_FOUND` and `CONFLICT`. */
export function consented(list: McpList, consents: McpConsent["tools"], by: string): McpList {
  const tools = { ...list.tools };
  for (const { id, hash } of consents) {
    const pin = Object.hasOwn(tools, id) ? tools[id] : undefined;
    if (pin === undefined) throw notFound(`The server has no tool "${id}".`);
    // The tool is accepted in this form already.
    if (pin.offered === undefined && pin.accepted?.hash === hash) continue;
    const { offered, ...kept } = pin;
    if (offered?.hash !== hash)
      throw conflict(
        `The tool "${id}" has no description with this hash that waits for consent. Read the list again.`,
      );
    const version = pin.version + 1;
    const [before, after] = [pin.accepted?.descriptor.effect, offered.descriptor.effect];
    const isStricter = before !== undefined && strictest(before, after) !== before;
    const { name } = offered.descriptor;
    tools[id] = { ...kept, name, version, least: isStricter ? version : pin.least, accepted: offered, by };
  }
  return { ...list, tools };
}

/** Returns the state of a tool. Only an `accepted` tool is offered to models and called. */
export function stateOf({ accepted, offered, missing, problem }: McpPin): McpToolState {
  if (problem !== undefined) return "invalid";
  if (missing) return "missing";
  if (offered !== undefined) return accepted === undefined ? "new" : "changed";
  return "accepted";
}

/** Returns the reason why a tool cannot be called now; `undefined` if it can. It has no text of the server, because models read it. */
export function pinProblem(server: string, pin: McpPin): string | undefined {
  const consent = `An operator must accept it first (\`POST /api/mcp-servers/${server}/consent\`).`;
  switch (stateOf(pin)) {
    case "accepted":
      return undefined;
    case "changed":
      return `The server has changed its description. ${consent}`;
    case "new":
      return `The server has added it. ${consent}`;
    case "missing":
      return "The server no longer has it.";
    case "invalid":
      return "The server describes it in a form that cannot be used.";
  }
}
