/** Loads the requests that wait for the reader, and again when the page becomes visible. */
import { useCallback, useState } from "react";
import type { WaitingApproval } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { type PageOptions, type Pages, usePages } from "./use-pages.ts";

export interface Inbox extends Pages<WaitingApproval> {
  /** Removes a request that has an answer. The list of the server changes a moment later. */
  close(operationId: string): void;
}

const REFRESH_MS = 15_000;

async function load(page: PageOptions) {
  const { approvals, ...rest } = await client.approvals.list(page);
  return { items: approvals, ...rest };
}

export function useInbox(): Inbox {
  const pages = usePages(load, REFRESH_MS);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const close = useCallback((id: string) => setClosed((all) => new Set(all).add(id)), []);
  return { ...pages, value: pages.value?.filter(({ operationId }) => !closed.has(operationId)), close };
}
