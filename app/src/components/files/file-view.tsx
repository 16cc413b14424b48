/** A text file with the numbers of its lines. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { WorkspaceFile, WorkspaceOwner } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { count, messageOf } from "../../format.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { CopyButton } from "../copy-button.tsx";
import { ErrorNote } from "../error-note.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";

interface FileViewProps {
  owner: WorkspaceOwner;
  repo: string;
  path: string;
  version: string;
}

export function FileView({ owner, repo, path, version }: FileViewProps) {
  const load = useCallback(
    (signal: AbortSignal) => client.workspaces.file(owner, path, { repo, signal }),
    [owner, repo, path],
  );
  const { value, error, reload } = useResource(load, version);
  const [more, setMore] = useState<WorkspaceFile[]>([]);
  const [problem, setProblem] = useState<unknown>(undefined);
  const newest = useRef(value);
  // Other first lines belong to a newer file.
  useEffect(() => {
    newest.current = value;
    setMore([]);
  }, [value]);
  const box = useRef<HTMLElement>(null);
  const isLoaded = value !== undefined;
  // Another file begins at its first line, also if the reader has scrolled.
  useEffect(() => {
    if (isLoaded && (box.current?.getBoundingClientRect().top ?? 0) < 0) box.current?.scrollIntoView();
  }, [isLoaded]);
  if (value === undefined)
    return error === undefined ? (
      <Loading label={`Loading ${path}`} />
    ) : (
      <ErrorNote text={messageOf(error)} onRetry={reload} />
    );
  const parts = [value, ...more];
  const { to, total, cut } = parts.at(-1) ?? value;
  const content = parts.map((part) => part.content.replace(/\n$/, "")).join("\n");
  const lines = content.split("\n");
  const loadMore = async () => {
    setProblem(undefined);
    try {
      const next = await client.workspaces.file(owner, path, { repo, from: to + 1 });
      if (newest.current === value) setMore((before) => [...before, next]);
    } catch (reason) {
      setProblem(reason);
    }
  };
  return (
    <section
      ref={box}
      aria-label={path}
      data-testid="file"
      data-path={path}
      className="overflow-hidden rounded-lg border border-line bg-surface"
    >
      <header className="flex items-center gap-2 border-b border-line bg-sunken py-1 pr-1 pl-3 text-xs">
        <h2 className="min-w-0 flex-1 font-mono font-medium wrap-anywhere">{path}</h2>
        <span className="shrink-0 text-muted">{count(total, "line", "lines")}</span>
        <CopyButton text={content} about="this file" />
      </header>
      {total === 0 ? (
        <p className="px-3 py-2 text-xs text-muted italic">The file is empty.</p>
      ) : (
        <div className="flex py-1.5 font-mono text-xs leading-5 [tab-size:4]">
          <pre aria-hidden="true" className="shrink-0 px-3 text-right text-muted tabular-nums select-none">
            {lines.map((_, index) => index + 1).join("\n")}
          </pre>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll sideways, by keyboard too. */}
          <pre tabIndex={0} className="min-w-0 flex-1 overflow-x-auto pr-3">
            <code>{content}</code>
          </pre>
        </div>
      )}
      {to < total && (
        <div className="border-t border-line px-3 py-1">
          <LoadMore onClick={() => void loadMore()} text={`Show more of ${total} lines`} />
        </div>
      )}
      {cut !== undefined && to === total && (
        <p className="border-t border-line px-3 py-2 text-xs text-caution">
          The last line is too long, and is cut.
        </p>
      )}
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {problem !== undefined && <ErrorNote text={messageOf(problem)} />}
    </section>
  );
}
