/** A block of code: its language, a button that copies it, and its colours. */
import { useEffect, useState } from "react";
import type { CodePiece } from "../highlight.ts";
import { CopyButton } from "./copy-button.tsx";

/** Longer code stays plain, so that a page never blocks. */
const MAX_COLOURED = 50_000;

export function CodeBlock({ code, language }: { code: string; language: string }) {
  const pieces = usePieces(code, language);
  return (
    <div data-testid="code" className="overflow-hidden rounded-lg border border-line bg-sunken">
      <div className="flex items-center justify-between gap-2 border-b border-line py-1 pr-1 pl-3 text-xs text-muted">
        <span className="font-mono">{language === "" ? "text" : language}</span>
        <CopyButton text={code} about="this code" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long code scrolls sideways, by keyboard too. */}
      <pre tabIndex={0}>
        <code>
          {pieces === undefined
            ? code
            : pieces.map(({ text, kind }, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: pieces never change their order.
                <span key={index} className={kind === undefined ? undefined : `code-${kind}`}>
                  {text}
                </span>
              ))}
        </code>
      </pre>
    </div>
  );
}

/** Returns the pieces of the newest code that is coloured; `undefined` while the code still grows. */
function usePieces(code: string, language: string): CodePiece[] | undefined {
  const [found, setFound] = useState<{ code: string; pieces: CodePiece[] | undefined }>();
  useEffect(() => {
    if (language === "" || code.length > MAX_COLOURED) return;
    let isOld = false;
    import("../highlight.ts")
      .then(({ piecesOf }) => piecesOf(code, language))
      .then(
        (pieces) => {
          if (!isOld) setFound({ code, pieces });
        },
        // The code stays readable without colours.
        () => undefined,
      );
    return () => {
      isOld = true;
    };
  }, [code, language]);
  return found?.code === code ? found.pieces : undefined;
}
