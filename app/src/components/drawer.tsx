/** A panel over the page, for small screens. The dialog element handles focus and Escape. */
import { type ReactNode, useEffect, useRef } from "react";

export function Drawer({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);

  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);

  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape does the same as a click beside the panel.
    <dialog
      ref={dialog}
      aria-label="Conversations"
      onCancel={onClose}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
      className="m-0 h-full max-h-none w-72 max-w-[85vw] border-r border-line bg-sunken text-ink backdrop:bg-black/40"
    >
      <div className="h-full">{children}</div>
    </dialog>
  );
}
