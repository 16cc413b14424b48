/** A button that copies a text. */
import { useEffect, useState } from "react";
import { IconButton } from "./icon-button.tsx";

const SHOWN_MS = 2_000;

interface CopyButtonProps {
  text: string;
  /** Completes the name of the button. */
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
    <>
      <IconButton
        icon={state === "copied" ? "check" : state === "failed" ? "cross" : "copy"}
        name={`Copy ${about}`}
        data-testid="copy"
        onClick={() => {
          navigator.clipboard.writeText(text).then(
            () => setState("copied"),
            () => setState("failed"),
          );
        }}
      />
      <span aria-live="polite" className="sr-only">
        {state === "copied" ? "Copied" : state === "failed" ? "Not copied" : ""}
      </span>
    </>
  );
}
