/** The address of the page as something to follow and to change. */
import { useSyncExternalStore } from "react";
import { type Route, routeOf } from "./route.ts";

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

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}
