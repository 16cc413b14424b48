/** A button that copies a text. */
import { useEffect, useState } from "react";
import { Icon } from "./icon.tsx";
import { ACTION } from "./turn-button.tsx";

const SHOWN_MS = 2_000;

interface CopyButtonProps {
  text: string;
  /** Completes the label for screen readers. */
  about: string;
}

export function CopyButton({ text, about }: CopyButtonProps) {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  return (
    <button
      type="button"
      data-testid="copy"
      onClick={() => {
        navigator.clipboard.writeText(text).then(
          () => setState("copied"),
          () => setState("failed"),
        );
      }}
      className={ACTION}
    >
      <Icon name={state === "copied" ? "check" : "copy"} className="size-3.5" />
      <span aria-live="polite">
        {state === "copied" ? "Copied" : state === "failed" ? "Not copied" : "Copy"}
      </span>
      <span className="sr-only"> {about}</span>
    </button>
  );
}
