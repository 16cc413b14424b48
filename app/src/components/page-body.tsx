/** The content of a page below its header, in one column. It has its own scrollbar. */
import type { ReactNode } from "react";

/** It is positioned, so that texts for screen readers, which are out of the flow, do not lengthen the document. */
export function PageBody({ children }: { children: ReactNode }) {
  return (
    <div className="relative min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto max-w-3xl space-y-3 px-4 py-4">{children}</div>
    </div>
  );
}
