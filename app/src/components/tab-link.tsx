/** A link to a view of a page, in the row of its views. */
import type { ComponentProps } from "react";
import { Link } from "./link.tsx";

/** The look of a row of such links. */
export const TABS = "flex flex-wrap gap-x-1 border-b border-line";

export function TabLink({ isCurrent, ...link }: ComponentProps<typeof Link> & { isCurrent: boolean }) {
  return (
    <Link
      {...link}
      aria-current={isCurrent ? "page" : undefined}
      className="-mb-px rounded-t-lg border-b-2 border-transparent px-2.5 py-2 text-sm text-muted hover:text-ink aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-ink"
    />
  );
}
