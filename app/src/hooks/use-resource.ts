/** Something that is read once and again on request, with its failure. A newer reading wins over a slower older one. */
import { useCallback, useEffect, useRef, useState } from "react";

export interface Resource<Value> {
  /** The last that was read; stays while it is read again. */
  value: Value | undefined;
  error: unknown;
  reload(): void;
}

/** `load` must keep its identity between renders. */
export function useResource<Value>(load: (signal: AbortSignal) => Promise<Value>): Resource<Value> {
  const [state, setState] = useState<{ value: Value | undefined; error: unknown }>({
    value: undefined,
    error: undefined,
  });
  const current = useRef<AbortController | null>(null);

  const reload = useCallback(() => {
    current.current?.abort();
    const controller = new AbortController();
    current.current = controller;
    load(controller.signal).then(
      (value) => {
        if (!controller.signal.aborted) setState({ value, error: undefined });
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setState(({ value }) => ({ value, error }));
      },
    );
  }, [load]);

  useEffect(() => {
    reload();
    return () => current.current?.abort();
  }, [reload]);

  return { ...state, reload };
}
