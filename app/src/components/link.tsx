/** A link within the page. A plain click changes the address without loading; the browser handles all other clicks. */
import type { ComponentProps } from "react";
import { navigate } from "../router.ts";

interface LinkProps extends Omit<ComponentProps<"a">, "href" | "onClick"> {
  to: string;
  onNavigate?: () => void;
}

export function Link({ to, onNavigate, ...rest }: LinkProps) {
  return (
    <a
      {...rest}
      href={to}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
        event.preventDefault();
        navigate(to);
        onNavigate?.();
      }}
    />
  );
}
