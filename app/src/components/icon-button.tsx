/** A button that shows an icon. Screen readers and a tooltip have its name. */
import type { ComponentProps } from "react";
import { Icon, type IconName } from "./icon.tsx";

/** The look of the buttons below a turn. */
export const ACTION =
  "inline-flex size-8 items-center justify-center rounded-lg text-muted hover:bg-sunken hover:text-ink disabled:opacity-60 pointer-coarse:size-10";

interface IconButtonProps extends Omit<ComponentProps<"button">, "children" | "title" | "type"> {
  icon: IconName;
  name: string;
}

export function IconButton({ icon, name, ...rest }: IconButtonProps) {
  return (
    <button type="button" title={name} aria-label={name} className={ACTION} {...rest}>
      <Icon name={icon} />
    </button>
  );
}
