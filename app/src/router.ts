/** Which page the address names: `/c/:id` is a conversation, everything else the beginning of one. */
import { useSyncExternalStore } from "react";

export type Route = { page: "new" } | { page: "conversation"; id: string };

const listeners = new Set<() => void>();

/** The current page; renders again when it changes. */
export function useRoute(): Route {
  return routeOf(useSyncExternalStore(subscribe, () => window.location.pathname));
}

/** Goes to an address of this page without loading it anew. */
export function navigate(path: string): void {
  if (path !== window.location.pathname) window.history.pushState(null, "", path);
  for (const listener of listeners) listener();
}

export function conversationPath(id: string): string {
  return `/c/${encodeURIComponent(id)}`;
}

export function routeOf(path: string): Route {
  const match = /^\/c\/([^/]+)\/?$/.exec(path);
  const id = decoded(match?.[1] ?? "");
  return id === "" ? { page: "new" } : { page: "conversation", id };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}
