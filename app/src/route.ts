/**
 * Routes of the console. Pure.
 *
 * - `/c/:id`: a conversation
 * - `/c/:id/turns/:turnId`, `/c/:id/turns/:turnId/:view`: the inspector of a turn, with one of its views; `?call=N` selects a model call
 * - `/c/:id/files`, `/c/:id/files/:view`: the files of a conversation; `?repo=` selects a repository, `?path=` a file
 * - `/runs/:id/files`, `/runs/:id/files/:view`: the files of a run
 * - `/projects`, `/projects/:id`, `/projects/:id/secrets`, `/projects/:id/settings`: the projects, one project
 * - `/projects/:id/artifacts`: the artifacts of a project; `?q=` searches, `?type=` filters, `?path=` selects an artifact
 * - `/turns`: the turns of all conversations, with filters
 * - `/inbox`: the requests that wait for the reader
 * - `/libraries`, `/triggers`: the libraries and the triggers of the tenant
 * - `/dead-letters`: messages between actors that were not delivered
 * - `/runs`, `/runs/:id`: the runs of workflows, with filters; one run
 * - `/a`, `/a/:id`: the agents, one agent
 * - `/a/:id/memory`, `/a/:id/memory/:memoryId`: the memory of an agent, with a query and filters; one memory
 * - `/memories`: a search over several agents
 * - `/`: a new conversation; `?agent=ID` chooses its agent
 * - every other path: no page
 */
import type { WorkspaceOwner } from "../../src/client/index.ts";

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
      page: "files";
      owner: WorkspaceOwner;
      view: FilesView;
      /** The query string: the repository and the file. */
      search?: string;
    }
  | { page: "projects" }
  | {
      page: "project";
      id: string;
      /** The repositories when absent. */
      view?: ProjectView;
    }
  | {
      page: "artifacts";
      id: string;
      /** The query string: the search, the type and the artifact. */
      search?: string;
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
  | {
      page: "runs";
      /** The query string: the filters. */
      search?: string;
    }
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

/** The views of files. The first is shown if the address names no view. A run has no view `merge`. */
export const FILES_VIEWS = ["files", "changes", "commits", "merge"] as const;

export type FilesView = (typeof FILES_VIEWS)[number];

/** The views of a project beside its repositories and its artifacts. */
export type ProjectView = "secrets" | "settings";

export const PROJECTS_PATH = "/projects";
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
      return { page: "runs", ...(search === "" ? {} : { search: `?${search}` }) };
    case "projects/0":
      return { page: "projects" };
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
    case "agents/0":
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
  if (folder === "c" && part === "files")
    return filesRoute({ conversation: id }, parts.slice(2), search) ?? missing;
  if (folder === "runs" && part === "files")
    return filesRoute({ run: id }, parts.slice(2), search) ?? missing;
  if (folder === "projects" && part === "artifacts" && parts.length === 2)
    return { page: "artifacts", id, ...(search === "" ? {} : { search: `?${search}` }) };
  if (folder === "projects" && (part === "secrets" || part === "settings") && parts.length === 2)
    return { page: "project", id, view: part };
  if (part !== undefined) return missing;
  if (folder === "projects") return { page: "project", id };
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

/** Returns the address of the files of a conversation or a run. `choice` is the repository, the file and the settings of the view. */
export function filesPath(
  owner: WorkspaceOwner,
  view: FilesView = "files",
  choice: FilesChoice = {},
): string {
  const path = `${"run" in owner ? runPath(owner.run) : conversationPath(owner.conversation)}/files`;
  return `${view === FILES_VIEWS[0] ? path : `${path}/${view}`}${searchOf({ ...choice })}`;
}

/** Returns values as a query string. It leaves out empty values. */
function searchOf(values: Record<string, string | undefined>): string {
  const set = Object.entries(values).flatMap(([name, value]) => (value ? [[name, value]] : []));
  return set.length === 0 ? "" : `?${new URLSearchParams(set)}`;
}

/** The choice of a reader among the files: a repository, a file, and the commit that changes are shown against. */
export interface FilesChoice {
  repo?: string | undefined;
  path?: string | undefined;
  against?: "head" | undefined;
}

/** Returns the choice of a query string. It ignores unknown names. */
export function filesChoice(search: string): FilesChoice {
  const given = new URLSearchParams(search);
  return {
    repo: given.get("repo") ?? undefined,
    path: given.get("path") ?? undefined,
    against: given.get("against") === "head" ? "head" : undefined,
  };
}

export function projectPath(id: string, view?: ProjectView): string {
  const path = `${PROJECTS_PATH}/${encodeURIComponent(id)}`;
  return view === undefined ? path : `${path}/${view}`;
}

/** The choice of a reader among artifacts: a search, a type, and the artifact that is open. */
export interface ArtifactsChoice {
  q?: string | undefined;
  type?: string | undefined;
  path?: string | undefined;
}

export function artifactsPath(id: string, choice: ArtifactsChoice = {}): string {
  return `${projectPath(id)}/artifacts${searchOf({ ...choice })}`;
}

/** Returns the choice of a query string. It ignores unknown names. */
export function artifactsChoice(search: string): ArtifactsChoice {
  const given = new URLSearchParams(search);
  return {
    q: given.get("q") ?? undefined,
    type: given.get("type") ?? undefined,
    path: given.get("path") ?? undefined,
  };
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

/** Returns the views of an owner's files. */
export function filesViews(owner: WorkspaceOwner): FilesView[] {
  return FILES_VIEWS.filter((view) => view !== "merge" || "conversation" in owner);
}

/** Returns the route of files; `undefined` for an unknown view. */
function filesRoute(owner: WorkspaceOwner, [name, ...others]: string[], search: string): Route | undefined {
  const view = name === undefined ? FILES_VIEWS[0] : filesViews(owner).find((known) => known === name);
  if (view === undefined || others.length > 0) return undefined;
  return { page: "files", owner, view, ...(search === "" ? {} : { search: `?${search}` }) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
