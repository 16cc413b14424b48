/** The menu over the page, for small screens. */
import type { ReactNode } from "react";
import { Modal } from "./modal.tsx";

export function Drawer({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  return (
    <Modal
      aria-label="Menu"
      onClose={onClose}
      className="m-0 h-full max-h-none w-72 max-w-[85vw] border-r border-line bg-sunken text-ink backdrop:bg-black/40"
    >
      <div className="h-full">{children}</div>
    </Modal>
  );
}
