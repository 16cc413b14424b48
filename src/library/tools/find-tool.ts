/**
 * Tools by id.
 *
 * TOOLID-1  The id of a tool in code is its name, unchanged, unless the tool has an `id`.
 * TOOLID-2  A tool is also found under the id that release 0.3.0 derived from its name: in lower case, with `-` for `_`.
 *           Personas, posted tools and conversations of that release refer to it. An exact id takes precedence. A derived
 *           id that two tools share finds neither. Its versions are those that were published under it; if there are none,
 *           those of the tool.
 */
import { foldedId } from "../../shared/known-ids.ts";

/** Returns the tool with this id or this derived id; `undefined` if there is none. */
export function findTool<Tool extends { id: string }>(tools: readonly Tool[], id: string): Tool | undefined {
  const exact = tools.find((tool) => tool.id === id);
  if (exact !== undefined) return exact;
  const [derived, ...others] = tools.filter((tool) => foldedId(tool.id) === id);
  return others.length === 0 ? derived : undefined;
}
