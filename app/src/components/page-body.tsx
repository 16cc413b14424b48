/** The content of a page below its header, in one column. It has its own scrollbar. */
import type { ReactNode } from "react";

/** It is positioned, so that texts for screen readers, which are out of the flow, do not lengthen the document. */
export function PageBody({ children, isWide = false }: { children: ReactNode; isWide?: boolean }) {
  return (
    <div className="relative min-h-0 flex-1 overflow-y-auto">
      <div className={`mx-auto space-y-3 px-4 py-4 ${isWide ? "max-w-6xl" : "max-w-3xl"}`}>{children}</div>
    </div>
  );
}
