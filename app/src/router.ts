/** Navigation within the page. */
import { useSyncExternalStore } from "react";
import { type Route, routeOf } from "./route.ts";

const listeners = new Set<() => void>();

/** Returns the current route and renders again when it changes. */
export function useRoute(): Route {
  return routeOf(useSyncExternalStore(subscribe, address));
}

/** Changes the address without loading the page again. */
export function navigate(path: string): void {
  if (path !== address()) window.history.pushState(null, "", path);
  for (const listener of listeners) listener();
}

function address(): string {
  const { pathname, search, hash } = window.location;
  return pathname + search + hash;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}
