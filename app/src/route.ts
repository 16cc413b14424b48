/** Routes of the console: `/c/:id` shows a conversation, every other path starts a new one. Pure. */
export type Route = { page: "new" } | { page: "conversation"; id: string };

export function routeOf(path: string): Route {
  const match = /^\/c\/([^/]+)\/?$/.exec(path);
  const id = decoded(match?.[1] ?? "");
  return id === "" ? { page: "new" } : { page: "conversation", id };
}

export function conversationPath(id: string): string {
  return `/c/${encodeURIComponent(id)}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
