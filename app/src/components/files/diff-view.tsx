/** A unified difference: each file with its added and removed lines. */
import { useId, useState } from "react";
import {
  type ChangeKind,
  type DiffFile,
  type DiffHunk,
  type DiffLine,
  parseDiff,
} from "../../files/unified-diff.ts";
import { count } from "../../format.ts";
import { Icon } from "../icon.tsx";
import { Link } from "../link.tsx";

/** A file with more changed lines begins closed, and so does each file after more changed lines of the files above it. */
const [MAX_OPEN_LINES, MAX_OPEN_ABOVE] = [400, 1_000];

interface DiffViewProps {
  diff: string;
  /** The parts that the server left out. */
  cut?: string | undefined;
  /** The text without a change. */
  empty: string;
  /** Returns the address of a file. */
  to: (path: string) => string;
}

export function DiffView({ diff, cut, empty, to }: DiffViewProps) {
  const files = parseDiff(diff);
  if (files.length === 0 && cut === undefined) return <p className="px-1 py-2 text-sm text-muted">{empty}</p>;
  const sum = (side: "added" | "removed") => files.reduce((total, file) => total + file[side], 0);
  let above = 0;
  const shown = files.map((file) => {
    const lines = file.added + file.removed;
    const isOpen = lines <= MAX_OPEN_LINES && above <= MAX_OPEN_ABOVE;
    if (isOpen) above += lines;
    return { file, isOpen };
  });
  return (
    <div data-testid="diff" className="space-y-3">
      <p className="flex flex-wrap items-center gap-x-3 px-1 text-xs text-muted">
        {count(files.length, "file", "files")}
        <Counts added={sum("added")} removed={sum("removed")} />
      </p>
      {shown.map(({ file, isOpen }) => (
        <FileDiff key={file.path} file={file} isOpen={isOpen} to={to} />
      ))}
      {cut !== undefined && <p className="px-1 text-xs text-caution">The difference is cut. {cut}</p>}
    </div>
  );
}

interface FileDiffProps {
  file: DiffFile;
  isOpen?: boolean;
  /** Returns the address of the file. */
  to: (path: string) => string;
}

/** The changes of one file. It draws its lines while it is open. */
export function FileDiff({ file, isOpen = true, to }: FileDiffProps) {
  const { path, change, added, removed, isBinary, modes, hunks } = file;
  const [open, setOpen] = useState(isOpen);
  const id = useId();
  const note = isBinary ? "Binary file" : modes === undefined ? undefined : `Mode ${modes}`;
  return (
    <div
      data-testid="file-diff"
      data-path={path}
      className="overflow-hidden rounded-lg border border-line bg-surface text-xs"
    >
      <header className="flex items-stretch bg-sunken">
        <button
          type="button"
          aria-expanded={open}
          aria-controls={id}
          onClick={() => setOpen(!open)}
          className="flex min-w-0 flex-1 items-center gap-2 rounded-lg px-2.5 py-2 text-left -outline-offset-2 pointer-coarse:py-3"
        >
          <Icon name="chevron" className={`text-muted transition-transform ${open ? "rotate-90" : ""}`} />
          <ChangeMark change={change} />
          <span className="min-w-0 flex-1 font-mono font-medium wrap-anywhere">{path}</span>
          <Counts added={added} removed={removed} />
        </button>
        {change !== "deleted" && (
          <Link
            to={to(path)}
            className="flex shrink-0 items-center rounded-lg px-2.5 text-accent -outline-offset-2 hover:underline"
          >
            View<span className="sr-only"> the file {path}</span>
          </Link>
        )}
      </header>
      <div id={id}>
        {open && note !== undefined && <p className="border-t border-line px-3 py-2 text-muted">{note}</p>}
        {open && hunks.length > 0 && <Lines hunks={hunks} path={path} />}
      </div>
    </div>
  );
}

function Lines({ hunks, path }: { hunks: readonly DiffHunk[]; path: string }) {
  return (
    <table
      aria-label={`Changed lines of ${path}`}
      className="w-full table-fixed border-t border-line font-mono leading-5 [tab-size:4]"
    >
      <thead className="sr-only">
        <tr>
          <th>Old line</th>
          <th>New line</th>
          <th>Change</th>
          <th>Text</th>
        </tr>
      </thead>
      <colgroup>
        <col className="w-9 max-sm:w-8 sm:w-12" />
        <col className="w-9 max-sm:w-8 sm:w-12" />
        <col className="w-5" />
        <col />
      </colgroup>
      {hunks.map(({ from, lines }, index) => (
        <tbody key={from}>
          {(index > 0 || from > 1) && (
            <tr className="bg-tint text-muted select-none">
              <td colSpan={4} className="px-2">
                <span aria-hidden="true">⋯</span>
                <span className="sr-only">Lines without a change</span>
              </td>
            </tr>
          )}
          {lines.map((line, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines never change their order.
            <Line key={at} line={line} />
          ))}
        </tbody>
      ))}
    </table>
  );
}

const LOOKS: Record<DiffLine["kind"], { sign: string; row: string; text: string }> = {
  added: { sign: "+", row: "bg-added-tint", text: "text-added" },
  removed: { sign: "-", row: "bg-danger-tint", text: "text-danger" },
  same: { sign: "", row: "", text: "" },
  note: { sign: "", row: "text-muted italic", text: "" },
};

const NUMBER = "pr-1.5 text-right align-top text-[0.6875rem] text-muted tabular-nums select-none";

function Line({ line: { kind, text, old, now } }: { line: DiffLine }) {
  const { sign, row, text: colour } = LOOKS[kind];
  return (
    <tr data-kind={kind} className={row}>
      <td className={NUMBER}>{old}</td>
      <td className={NUMBER}>{now}</td>
      <td className={`text-center align-top font-semibold select-none ${colour}`}>{sign}</td>
      <td className="pr-2 whitespace-pre-wrap wrap-anywhere">{text === "" ? "\n" : text}</td>
    </tr>
  );
}

const MARKS: Record<ChangeKind, { letter: string; className: string }> = {
  added: { letter: "A", className: "text-added" },
  modified: { letter: "M", className: "text-caution" },
  deleted: { letter: "D", className: "text-danger" },
};

/** The letter of a change, with its word for screen readers. */
export function ChangeMark({ change }: { change: ChangeKind }) {
  const { letter, className } = MARKS[change];
  return (
    <span title={change} className={`w-3 shrink-0 text-center font-mono text-xs font-semibold ${className}`}>
      <span aria-hidden="true">{letter}</span>
      <span className="sr-only">{change}</span>
    </span>
  );
}

function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="flex shrink-0 gap-1.5 font-mono text-xs tabular-nums">
      {added > 0 && <span className="text-added">+{added}</span>}
      {removed > 0 && <span className="text-danger">−{removed}</span>}
    </span>
  );
}
