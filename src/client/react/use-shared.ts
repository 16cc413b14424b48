/**
 * One store for all components that ask for the same.
 *
 * SHARE-1  The components of a page with the same client share each list and each run: one request and one connection for all.
 * SHARE-6  A component with another `user` shows nothing of the user before, from its first render on.
 */
import { useState, useSyncExternalStore } from "react";
import type { DramatisClient } from "../api.ts";
import { createClient } from "../http.ts";
import type { LiveStore } from "./live-store.ts";

/** Options of the hooks that share their state. */
export interface SharedOptions {
  /**
   * The client of the requests. Create it once, outside of your components: a component keeps its first client. Default: a client of the
   * page's own server.
   */
  client?: DramatisClient;
  /** Names the signed-in user, if the user can change while the page is open. Another name begins with an empty state. */
  user?: string | undefined;
}

const pageClient = createClient();

/** The stores of one hook, by client, user and key. */
export class Shared<Store> {
  readonly #stores = new WeakMap<DramatisClient, Map<string, Store>>();

  constructor(private readonly create: (client: DramatisClient, key: string) => Store) {}

  of(client: DramatisClient, key: string, user: string): Store {
    const stores = this.#stores.get(client) ?? new Map<string, Store>();
    this.#stores.set(client, stores);
    const place = JSON.stringify([user, key]);
    const store = stores.get(place) ?? this.create(client, key);
    stores.set(place, store);
    return store;
  }
}

/** Returns the shared store, and renders again when its state changes. */
export function useShared<Store extends LiveStore<object>>(
  shared: Shared<Store>,
  { client, user = "" }: SharedOptions,
  key = "",
): Store {
  const [kept] = useState(() => client ?? pageClient);
  const store = shared.of(kept, key, user);
  useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);
  return store;
}
