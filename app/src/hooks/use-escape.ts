/** Closes something with Escape, while there is something to close. */
import { useEffect } from "react";

/** `opener` selects the element that gets the focus afterwards. */
export function useEscape(close: (() => void) | undefined, opener?: string): void {
  useEffect(() => {
    if (close === undefined) return;
    const onKeyDown = (event: KeyboardEvent) => {
      // A dialog above the page closes first.
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      const element = opener === undefined ? null : document.querySelector<HTMLElement>(opener);
      close();
      element?.focus();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [close, opener]);
}
