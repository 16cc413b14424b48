/** A panel over the page. The dialog element handles focus and Escape; a click beside the panel closes it. */
import { type ComponentProps, useLayoutEffect, useRef } from "react";

interface ModalProps extends Omit<ComponentProps<"dialog">, "onClick" | "onClose" | "ref"> {
  /** Called when the reader closes the panel. The caller then removes it. */
  onClose: () => void;
}

export function Modal({ onClose, ...rest }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);

  // It closes before it leaves the page, and so returns the focus.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);

  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape does the same as a click beside the panel.
    <dialog
      {...rest}
      ref={dialog}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    />
  );
}
