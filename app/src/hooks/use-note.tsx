/** The line with the result of an action. It takes the focus, because the form of the action may leave the page. */
import { type ReactNode, useCallback, useRef, useState } from "react";

export function useNote(): { note: ReactNode; say: (text: string) => void } {
  const [text, setText] = useState("");
  const line = useRef<HTMLParagraphElement>(null);
  const say = useCallback((said: string) => {
    setText(said);
    line.current?.focus();
  }, []);
  const note = (
    <p
      ref={line}
      role="status"
      tabIndex={-1}
      data-testid="note"
      className="px-1 text-sm text-muted outline-none wrap-anywhere"
    >
      {text}
    </p>
  );
  return { note, say };
}
