/** Loads a value, and again on request. A newer request aborts the older request. */
import { useCallback, useEffect, useRef, useState } from "react";

export interface Resource<Value> {
  /** Last loaded value. It stays during a reload and after a failed reload. */
  value: Value | undefined;
  error: unknown;
  reload(): void;
}

/** `load` must keep its identity between renders. Another `version` of the same thing loads again. */
export function useResource<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  version?: string | number,
): Resource<Value> {
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

  // biome-ignore lint/correctness/useExhaustiveDependencies: `reload` does not read `version`, and a new version must load again.
  useEffect(() => {
    reload();
    return () => current.current?.abort();
  }, [reload, version]);

  return { ...state, reload };
}
