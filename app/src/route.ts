/**
 * Routes of the console. Pure.
 *
 * - `/c/:id`: a conversation
 * - `/c/:id/turns/:turnId`, `/c/:id/turns/:turnId/:view`: the inspector of a turn, with one of its views; `?call=N` selects a model call
 * - `/turns`: the turns of all conversations, with filters
 * - `/inbox`: the requests that wait for the reader
 * - `/libraries`, `/triggers`: the libraries and the triggers of the tenant
 * - `/dead-letters`: messages between actors that were not delivered
 * - `/runs`, `/runs/:id`: the runs of workflows, one run
 * - `/a`, `/a/:id`: the agents, one agent
 * - `/a/:id/memory`, `/a/:id/memory/:memoryId`: the memory of an agent, with a query and filters; one memory
 * - `/memories`: a search over several agents
 * - `/`: a new conversation; `?agent=ID` chooses its agent
 * - every other path: no page
 */
export type Route =
  | {
      page: "new";
      /** The agent that the address chooses. */
      agentId?: string;
    }
  | {
      page: "conversation";
      id: string;
      /** The turn to begin at. */
      turnId?: string;
    }
  | {
      page: "turn";
      id: string;
      turnId: string;
      view: TurnView;
      /** The number of the chosen model call; the newest when absent. */
      call?: number;
    }
  | {
      page: "turns";
      /** The query string: the filters. */
      search?: string;
    }
  | { page: "dead-letters" }
  | { page: "inbox" }
  | { page: "libraries" }
  | { page: "triggers" }
  | { page: "runs" }
  | { page: "run"; id: string }
  | { page: "agents" }
  | { page: "agent"; id: string }
  | {
      page: "memory";
      agentId: string;
      /** The memory that is open. */
      memoryId?: string;
      /** The query string: the search and its filters. */
      search?: string;
    }
  | { page: "memories" }
  | { page: "missing"; path: string };

/** The views of the inspector. The first is shown if the address names no view. */
export const TURN_VIEWS = [
  "waterfall",
  "request",
  "prompt",
  "journal",
  "incidents",
  "projections",
  "replay",
] as const;

export type TurnView = (typeof TURN_VIEWS)[number];

export const TURNS_PATH = "/turns";
export const DEAD_LETTERS_PATH = "/dead-letters";
export const INBOX_PATH = "/inbox";
export const LIBRARIES_PATH = "/libraries";
export const TRIGGERS_PATH = "/triggers";
export const RUNS_PATH = "/runs";
export const AGENTS_PATH = "/a";
export const MEMORIES_PATH = "/memories";

/** Returns the route of an address: its path, and its query and its fragment if it has them. */
export function routeOf(address: string): Route {
  const [place = "", fragment = ""] = address.split("#", 2);
  const [path = "", search = ""] = place.split("?", 2);
  const [, folder, ...encoded] = path.replace(/\/$/, "").split("/");
  const parts = encoded.map(decoded);
  const missing: Route = { page: "missing", path };
  if (parts.includes("")) return missing;
  const [id, part, memoryId] = parts;
  switch (`${folder}/${parts.length}`) {
    case "runs/0":
      return { page: "runs" };
    case "turns/0":
      return { page: "turns", ...(search === "" ? {} : { search: `?${search}` }) };
    case "dead-letters/0":
      return { page: "dead-letters" };
    case "libraries/0":
      return { page: "libraries" };
    case "triggers/0":
      return { page: "triggers" };
    case "inbox/0":
      return { page: "inbox" };
    case "a/0":
      return { page: "agents" };
    case "memories/0":
      return { page: "memories" };
  }
  if (id === undefined) return (folder ?? "") === "" ? newRoute(search) : missing;
  if (folder === "a" && part === "memory" && parts.length <= 3)
    return {
      ...{ page: "memory", agentId: id },
      ...(memoryId === undefined ? {} : { memoryId }),
      ...(search === "" ? {} : { search: `?${search}` }),
    };
  if (folder === "c" && part === "turns") return turnRoute(id, parts.slice(2), search) ?? missing;
  if (part !== undefined) return missing;
  if (folder === "runs") return { page: "run", id };
  if (folder === "a") return { page: "agent", id };
  const turnId = decoded(fragment);
  return folder === "c" ? { page: "conversation", id, ...(turnId === "" ? {} : { turnId }) } : missing;
}

/** Returns the address of a conversation, or of one of its turns. */
export function conversationPath(id: string, turnId?: string): string {
  const path = `/c/${encodeURIComponent(id)}`;
  return turnId === undefined ? path : `${path}#${encodeURIComponent(turnId)}`;
}

/** Returns the address of a turn in the inspector. `call` is the number of a model call. */
export function turnPath(id: string, turnId: string, view: TurnView = "waterfall", call?: number): string {
  const path = `${conversationPath(id)}/turns/${encodeURIComponent(turnId)}`;
  const place = view === TURN_VIEWS[0] ? path : `${path}/${view}`;
  return call === undefined ? place : `${place}?call=${call}`;
}

export function runPath(id: string): string {
  return `${RUNS_PATH}/${encodeURIComponent(id)}`;
}

export function agentPath(id: string): string {
  return `${AGENTS_PATH}/${encodeURIComponent(id)}`;
}

/** Returns the address of an agent's memory, or of one memory. `search` is the query string of the list beside it. */
export function memoryPath(agentId: string, memoryId?: string, search = ""): string {
  const path = `${agentPath(agentId)}/memory`;
  return `${memoryId === undefined ? path : `${path}/${encodeURIComponent(memoryId)}`}${search}`;
}

function newRoute(search: string): Route {
  const agentId = new URLSearchParams(search).get("agent");
  return { page: "new", ...(agentId === null ? {} : { agentId }) };
}

/** Returns the address of a new conversation with an agent. */
export function newPath(agentId: string): string {
  return `/?agent=${encodeURIComponent(agentId)}`;
}

/** Returns the route of a turn; `undefined` without a turn, or with an unknown view. */
function turnRoute(id: string, [turnId, name, ...others]: string[], search: string): Route | undefined {
  const view = name === undefined ? TURN_VIEWS[0] : TURN_VIEWS.find((known) => known === name);
  if (turnId === undefined || view === undefined || others.length > 0) return undefined;
  const [, call] = /(?:^|&)call=([1-9][0-9]{0,5})(?:&|$)/.exec(search) ?? [];
  return { page: "turn", id, turnId, view, ...(call === undefined ? {} : { call: Number(call) }) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
