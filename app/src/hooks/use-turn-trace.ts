/** Loads the trace of a turn: again and again while the turn works, and once more when it is over. */
import { useCallback, useEffect, useRef } from "react";
import type { TraceView } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { type Resource, useResource } from "./use-resource.ts";

/** Time until the next reading of a turn that works. It grows while the trace stays unchanged. */
const REFRESH_MS = 2_000;
const MAX_REFRESH_MS = 30_000;

export function useTurnTrace(conversationId: string, turnId: string, active: boolean): Resource<TraceView> {
  const load = useCallback(
    (signal: AbortSignal) => client.turns.trace(conversationId, turnId, { signal }),
    [conversationId, turnId],
  );
  const { value, error, reload } = useResource(load);
  const was = useRef(active);
  useEffect(() => {
    if (was.current && !active) reload();
    was.current = active;
  }, [active, reload]);

  const count = value?.spans.length;
  const last = useRef({ count, wait: REFRESH_MS });
  useEffect(() => {
    if (!active || (value === undefined && error === undefined)) return;
    const isNew = last.current.count !== count;
    const wait = isNew ? REFRESH_MS : Math.min(last.current.wait * 1.5, MAX_REFRESH_MS);
    last.current = { count, wait };
    const timer = setTimeout(reload, wait);
    return () => clearTimeout(timer);
  }, [active, value, error, count, reload]);
  return { value, error, reload };
}
