/** A dialog over the page with a title, a button that closes it, and content that scrolls. */
import { type ReactNode, useId } from "react";
import { Icon } from "./icon.tsx";
import { Modal } from "./modal.tsx";

interface DialogPanelProps {
  title: string;
  /** Lines below the title. */
  facts?: ReactNode;
  closeLabel: string;
  testId: string;
  onClose: () => void;
  children: ReactNode;
}

export function DialogPanel({ title, facts, closeLabel, testId, onClose, children }: DialogPanelProps) {
  const id = useId();
  return (
    <Modal
      aria-labelledby={id}
      data-testid={testId}
      onClose={onClose}
      className="m-auto w-2xl max-w-[calc(100vw-1.5rem)] rounded-2xl border border-line bg-surface p-0 text-ink shadow-lg backdrop:bg-black/40"
    >
      <div className="flex max-h-[calc(100dvh-3rem)] flex-col">
        <header className="flex items-start gap-3 border-b border-line py-3 pr-2 pl-4">
          <div className="min-w-0 flex-1">
            <h2 id={id} className="text-sm font-semibold">
              {title}
            </h2>
            {facts}
          </div>
          <button
            type="button"
            onClick={onClose}
            aria-label={closeLabel}
            className="rounded-lg p-2 text-muted hover:text-ink"
          >
            <Icon name="cross" className="size-5" />
          </button>
        </header>
        <div className="min-h-0 overflow-y-auto p-2">{children}</div>
      </div>
    </Modal>
  );
}
