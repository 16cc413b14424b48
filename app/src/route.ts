/**
 * Routes of the console: `/c/:id` shows a conversation, `/runs` the runs of workflows, `/runs/:id` one run, and every other path starts a
 * new conversation. Pure.
 */
export type Route =
  | { page: "new" }
  | { page: "conversation"; id: string }
  | { page: "runs" }
  | { page: "run"; id: string };

export const RUNS_PATH = "/runs";

export function routeOf(path: string): Route {
  const [, folder, encoded] = /^\/(c|runs)(?:\/([^/]+))?\/?$/.exec(path) ?? [];
  const id = decoded(encoded ?? "");
  if (folder === "runs") return id === "" ? { page: "runs" } : { page: "run", id };
  return id === "" ? { page: "new" } : { page: "conversation", id };
}

export function conversationPath(id: string): string {
  return `/c/${encodeURIComponent(id)}`;
}

export function runPath(id: string): string {
  return `${RUNS_PATH}/${encodeURIComponent(id)}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
