/** Shows the turn that a link leads to: earlier messages are loaded until it is there. */
import { useEffect, useRef } from "react";
import type { TurnState } from "../../../src/client/index.ts";
import type { History } from "./use-history.ts";

/** `leaveEnd` keeps the list from following its end. */
export function useTurnInView(
  turnId: string | undefined,
  turns: readonly TurnState[],
  history: History,
  leaveEnd: () => void,
): void {
  const shown = useRef<string | undefined>(undefined);
  const { loading, complete, error, load } = history;
  useEffect(() => {
    if (turnId === undefined || shown.current === turnId || turns.length === 0) return;
    const element = document.querySelector<HTMLElement>(`[data-turn="${CSS.escape(turnId)}"]`);
    if (element !== null) {
      shown.current = turnId;
      leaveEnd();
      element.scrollIntoView({ block: "start" });
      element.focus({ preventScroll: true });
    } else if (!loading && !complete && error === undefined) load();
  }, [turnId, turns, loading, complete, error, load, leaveEnd]);
}
