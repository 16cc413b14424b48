/** Loads older messages when the reader scrolls to the first loaded message. */
import { type RefObject, useEffect, useRef } from "react";
import { messageOf } from "../format.ts";
import type { History } from "../hooks/use-history.ts";
import { ErrorNote } from "./error-note.tsx";

interface HistoryLoaderProps {
  history: History;
  scroller: RefObject<HTMLDivElement | null>;
}

export function HistoryLoader({ history, scroller }: HistoryLoaderProps) {
  const { loading, complete, error, load } = history;
  const mark = useRef<HTMLDivElement>(null);
  const waiting = !loading && !complete && error === undefined;

  useEffect(() => {
    const element = mark.current;
    if (element === null || !waiting) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) load();
      },
      { root: scroller.current, rootMargin: "200px 0px 0px" },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [waiting, load, scroller]);

  if (complete) return null;
  return (
    <div ref={mark} className="mb-6 text-center text-sm text-muted">
      {error !== undefined ? (
        <ErrorNote text={messageOf(error)} onRetry={load} />
      ) : (
        <button
          type="button"
          onClick={load}
          disabled={loading}
          className="rounded-lg px-3 py-1 hover:text-ink"
        >
          {loading ? "Loading earlier messages…" : "Load earlier messages"}
        </button>
      )}
    </div>
  );
}
