/** A panel over the page. The dialog element handles focus and Escape; a click beside the panel closes it. */
import { type ComponentProps, type RefObject, useLayoutEffect, useRef } from "react";

interface ModalProps extends Omit<ComponentProps<"dialog">, "onClick" | "onClose" | "ref"> {
  /** Called when the reader closes the panel. The caller then removes it. */
  onClose: () => void;
}

/** Shows a dialog over the page. It closes before it leaves the page, and so returns the focus. */
export function useDialog(): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return dialog;
}

export function Modal({ onClose, ...rest }: ModalProps) {
  const dialog = useDialog();

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
