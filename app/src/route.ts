/**
 * Routes of the console: `/c/:id` shows a conversation, `/runs` the runs of workflows, `/runs/:id` one run, `/a` the agents, `/a/:id` one agent,
 * `/a/:id/memory` its memory (`?q=` and filters choose what is shown), `/a/:id/memory/:memoryId` one memory of it, `/memories` a search over agents, and every other path starts a
 * new conversation. Pure.
 */
export type Route =
  | { page: "new" }
  | {
      page: "conversation";
      id: string;
      /** The turn to begin at. */
      turnId?: string;
    }
  | { page: "runs" }
  | { page: "run"; id: string }
  | { page: "agents" }
  | { page: "agent"; id: string }
  | {
      page: "memory";
      agentId: string;
      /** The memory that is open. */
      memoryId?: string;
      /** The query of the address: what is shown. */
      search?: string;
    }
  | { page: "memories" };

export const RUNS_PATH = "/runs";
export const AGENTS_PATH = "/a";
export const MEMORIES_PATH = "/memories";

/** Returns the route of an address: its path, and its query and its fragment if it has them. */
export function routeOf(address: string): Route {
  const [place = "", fragment = ""] = address.split("#", 2);
  const [path = "", search = ""] = place.split("?", 2);
  const [, folder, ...encoded] = path.replace(/\/$/, "").split("/");
  const parts = encoded.map(decoded);
  if (parts.includes("")) return { page: "new" };
  const [id, part, memoryId] = parts;
  switch (`${folder}/${parts.length}`) {
    case "runs/0":
      return { page: "runs" };
    case "a/0":
      return { page: "agents" };
    case "memories/0":
      return { page: "memories" };
  }
  if (id === undefined) return { page: "new" };
  if (folder === "a" && part === "memory" && parts.length <= 3)
    return {
      ...{ page: "memory", agentId: id },
      ...(memoryId === undefined ? {} : { memoryId }),
      ...(search === "" ? {} : { search: `?${search}` }),
    };
  if (part !== undefined) return { page: "new" };
  if (folder === "runs") return { page: "run", id };
  if (folder === "a") return { page: "agent", id };
  const turnId = decoded(fragment);
  return folder === "c"
    ? { page: "conversation", id, ...(turnId === "" ? {} : { turnId }) }
    : { page: "new" };
}

/** Returns the address of a conversation, or of one of its turns. */
export function conversationPath(id: string, turnId?: string): string {
  const path = `/c/${encodeURIComponent(id)}`;
  return turnId === undefined ? path : `${path}#${encodeURIComponent(turnId)}`;
}

export function runPath(id: string): string {
  return `${RUNS_PATH}/${encodeURIComponent(id)}`;
}

export function agentPath(id: string): string {
  return `${AGENTS_PATH}/${encodeURIComponent(id)}`;
}

/** Returns the address of an agent's memory, or of one memory. `search` is the query that chooses what is shown beside it. */
export function memoryPath(agentId: string, memoryId?: string, search = ""): string {
  const path = `${agentPath(agentId)}/memory`;
  return `${memoryId === undefined ? path : `${path}/${encodeURIComponent(memoryId)}`}${search}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
