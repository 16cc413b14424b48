/** The settings and the actions of a conversation. The browser's popover handles focus and Escape. */
import { type ReactNode, useId } from "react";
import { Icon } from "./icon.tsx";

export function ConversationMenu({ children }: { children: ReactNode }) {
  const id = useId();
  return (
    <>
      <button
        type="button"
        popoverTarget={id}
        aria-label="Settings of the conversation"
        title="Settings of the conversation"
        data-testid="settings"
        className="-mr-2 shrink-0 rounded-lg p-2 text-muted hover:text-ink"
      >
        <Icon name="settings" className="size-5" />
      </button>
      <div
        id={id}
        popover="auto"
        className="menu max-h-[80dvh] w-88 max-w-[calc(100vw-1.5rem)] divide-y divide-line overflow-y-auto rounded-2xl border border-line bg-surface p-2 text-ink shadow-lg"
      >
        {children}
      </div>
    </>
  );
}
