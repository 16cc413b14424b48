/** Which page an address names: `/c/:id` is a conversation, everything else the beginning of one. Pure. */
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
