/** A button below a turn that opens a dialog about it. */
import { type ReactNode, useCallback, useState } from "react";
import type { IconName } from "./icon.tsx";
import { IconButton } from "./icon-button.tsx";

interface TurnButtonProps {
  icon: IconName;
  name: string;
  testId: string;
  /** Returns the dialog. */
  dialog: (onClose: () => void) => ReactNode;
}

export function TurnButton({ icon, name, testId, dialog }: TurnButtonProps) {
  const [open, setOpen] = useState(false);
  const close = useCallback(() => setOpen(false), []);
  return (
    <div aria-live="off">
      <IconButton
        icon={icon}
        name={name}
        onClick={() => setOpen(true)}
        aria-haspopup="dialog"
        data-testid={testId}
      />
      {open && dialog(close)}
    </div>
  );
}
