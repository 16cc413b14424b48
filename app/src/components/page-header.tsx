/** The header of a page, with a button for the list of conversations on small screens. */
import type { ComponentProps, ReactNode } from "react";
import { Icon } from "./icon.tsx";
import { Link } from "./link.tsx";

interface PageHeaderProps {
  title: string;
  subtitle?: ReactNode;
  /** Opens the list of conversations; absent if the list is visible. */
  onMenu: (() => void) | undefined;
  children?: ReactNode;
}

export function PageHeader({ title, subtitle, onMenu, children }: PageHeaderProps) {
  return (
    <header className="flex h-14 shrink-0 items-center gap-2 border-b border-line px-4">
      {onMenu !== undefined && (
        <button
          type="button"
          onClick={onMenu}
          aria-label="Conversations"
          className="-ml-2 rounded-lg p-2 text-muted hover:text-ink"
        >
          <Icon name="menu" className="size-5" />
        </button>
      )}
      <div className="min-w-0 flex-1">
        <h1 className="truncate text-sm font-semibold">{title}</h1>
        {subtitle !== undefined && <p className="truncate text-xs text-muted">{subtitle}</p>}
      </div>
      {children}
    </header>
  );
}

/** A link in the header that looks like a button. */
export function HeaderLink(props: ComponentProps<typeof Link>) {
  return (
    <Link
      {...props}
      className="flex shrink-0 items-center gap-1.5 rounded-lg border border-line bg-surface px-3 py-1.5 text-sm hover:border-accent"
    />
  );
}
