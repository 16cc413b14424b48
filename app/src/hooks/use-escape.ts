/** Closes something with Escape, while there is something to close. The focus returns to the button that had opened it. */
import { useEffect } from "react";

export function useEscape(close: (() => void) | undefined): void {
  useEffect(() => {
    if (close === undefined) return;
    const onKeyDown = (event: KeyboardEvent) => {
      // A dialog above the page closes first.
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      const opener = document.querySelector<HTMLElement>("[data-testid=run-node][aria-expanded=true]");
      close();
      opener?.focus();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [close]);
}
