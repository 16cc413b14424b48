/** A turn that a later turn replaced. It is folded, because the agents no longer see it. */
import type { ReactNode } from "react";

export function EarlierVersion({ isOpen, children }: { isOpen: boolean; children: ReactNode }) {
  return (
    <details open={isOpen} data-testid="earlier-version" className="rounded-xl border border-line px-4 py-2">
      <summary className="cursor-pointer py-1 text-xs text-muted pointer-coarse:py-2.5">
        Earlier version
      </summary>
      <div className="pt-3">{children}</div>
    </details>
  );
}
