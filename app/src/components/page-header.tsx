/** The header of a page, with a button for the menu on small screens. The button shows that requests wait. */
import { type ComponentProps, createContext, type ReactNode, useContext } from "react";
import { Icon } from "./icon.tsx";
import { Link } from "./link.tsx";

/** The waiting requests of the inbox in words, such as "2 requests wait"; `undefined` without a request. */
export const Waiting = createContext<string | undefined>(undefined);

interface PageHeaderProps {
  title: string;
  subtitle?: ReactNode;
  /** Opens the menu; absent if it is visible. */
  onMenu: (() => void) | undefined;
  children?: ReactNode;
}

export function PageHeader({ title, subtitle, onMenu, children }: PageHeaderProps) {
  const waiting = useContext(Waiting);
  return (
    <header className="flex h-14 shrink-0 items-center gap-2 border-b border-line px-4">
      {onMenu !== undefined && (
        <button
          type="button"
          onClick={onMenu}
          aria-label={waiting === undefined ? "Menu" : `Menu, ${waiting}`}
          className="relative -ml-2 rounded-lg p-2 text-muted hover:text-ink"
        >
          <Icon name="menu" className="size-5" />
          {waiting !== undefined && (
            <span className="absolute top-1 right-1 size-2.5 rounded-full bg-caution ring-2 ring-canvas" />
          )}
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
