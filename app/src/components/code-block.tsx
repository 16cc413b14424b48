/** A block of code: its language, a button that copies it, and its colours. */
import { createContext, useContext, useEffect, useState } from "react";
import type { CodePiece } from "../highlight.ts";
import { CopyButton } from "./copy-button.tsx";

/** Growing code stays plain: each piece would colour all code again. */
export const IsGrowing = createContext(false);

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

/** Returns the pieces of complete code; `undefined` until it is coloured, and for code that stays plain. */
function usePieces(code: string, language: string): CodePiece[] | undefined {
  const [found, setFound] = useState<{ code: string; pieces: CodePiece[] | undefined }>();
  const isGrowing = useContext(IsGrowing);
  useEffect(() => {
    if (language === "" || isGrowing) return;
    const life = new AbortController();
    import("../highlight.ts")
      .then(({ piecesOf }) => piecesOf(code, language, life.signal))
      .then(
        (pieces) => {
          if (!life.signal.aborted) setFound({ code, pieces });
        },
        // The code stays readable without colours.
        () => undefined,
      );
    return () => life.abort();
  }, [code, language, isGrowing]);
  return found?.code === code ? found.pieces : undefined;
}
