/** Loads the names of the workflows of the first libraries, as choices. The reader can type any other name. */
import { useEffect, useState } from "react";
import { callApi } from "../api.ts";

/** Libraries with suggested workflows. */
const MAX_LIBRARIES = 20;

/** Returns names such as `demo/summaries`. It loads them when `isWanted` is set. */
export function useWorkflowNames(isWanted: boolean): string[] {
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    if (!isWanted) return;
    const controller = new AbortController();
    load(controller.signal).then(setNames, () => undefined);
    return () => controller.abort();
  }, [isWanted]);
  return names;
}

async function load(signal: AbortSignal): Promise<string[]> {
  const { libraries } = await callApi<{ libraries: { id: string }[] }>("libraries", { signal });
  const names = await Promise.all(
    libraries.slice(0, MAX_LIBRARIES).map(async ({ id: library }) => {
      const { workflows } = await callApi<{ workflows: { id: string }[] }>(`libraries/${library}/workflows`, {
        signal,
      });
      return workflows.map(({ id }) => `${library}/${id}`);
    }),
  );
  return names.flat();
}
