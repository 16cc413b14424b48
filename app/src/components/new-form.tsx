/** A button that opens a form below it, and closes the form again. */
import type { ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";

interface NewFormProps {
  /** The text of the button, such as "New project". */
  text: string;
  testId: string;
  icon?: IconName;
  /** The main action of its page. */
  isMain?: boolean;
  /** With `onToggle` the caller opens and closes the form. */
  isOpen?: boolean;
  onToggle?: (isOpen: boolean) => void;
  children: ReactNode;
}

export function NewForm({
  text,
  testId,
  icon = "plus",
  isMain = false,
  isOpen,
  onToggle,
  children,
}: NewFormProps) {
  const look = isMain
    ? "border-accent bg-accent text-on-accent"
    : "border-line bg-surface hover:border-accent";
  return (
    <details
      data-testid={testId}
      open={isOpen}
      onToggle={onToggle && (({ currentTarget }) => onToggle(currentTarget.open))}
      className="group/new min-w-0 open:w-full"
    >
      <summary
        className={`flex w-fit list-none items-center gap-2 rounded-lg border px-3 py-1.5 text-sm font-medium pointer-coarse:py-2.5 [&::-webkit-details-marker]:hidden ${look}`}
      >
        <Icon name={icon} className="group-open/new:hidden" />
        <Icon name="cross" className="not-group-open/new:hidden" />
        {text}
      </summary>
      <div className="mt-2 rounded-xl border border-line bg-surface p-4">{children}</div>
    </details>
  );
}
