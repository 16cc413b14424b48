/** A command of the shell with its output. */
import type { ShellResult } from "../../files/tool-views.ts";
import { count } from "../../format.ts";
import { CopyButton } from "../copy-button.tsx";
import { Link } from "../link.tsx";

interface TerminalViewProps {
  command: string;
  /** Absent until the command ends. */
  result: ShellResult | undefined;
  /** Returns the address of a file. */
  to: (path: string) => string;
}

/** The exit code of a command that took too long. */
const TIMED_OUT = 124;

export function TerminalView({ command, result, to }: TerminalViewProps) {
  return (
    <figure
      data-testid="terminal"
      className="overflow-hidden rounded-lg border border-line bg-sunken text-xs"
    >
      <figcaption className="flex items-center justify-between gap-2 border-b border-line py-1 pr-1 pl-3 text-muted">
        <span>Command</span>
        {result !== undefined && (
          <span className={`font-mono ${result.exitCode === 0 ? "text-added" : "text-danger"}`}>
            {exitText(result.exitCode)}
          </span>
        )}
        <span className="ml-auto">
          <CopyButton text={command} about="this command" />
        </span>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long output scrolls by keyboard, too. */}
      <div tabIndex={0} className="max-h-96 overflow-y-auto px-3 py-2 font-mono leading-5">
        <pre className="whitespace-pre-wrap wrap-anywhere">
          <span aria-hidden="true" className="text-accent select-none">
            ${" "}
          </span>
          <span className="font-medium">{command}</span>
        </pre>
        {result !== undefined && <Output {...result} />}
      </div>
      {result !== undefined && result.changed.length > 0 && (
        <div className="border-t border-line px-3 py-2">
          <p className="text-muted">{count(result.changed.length, "changed file", "changed files")}</p>
          <ul>
            {result.changed.map((path) => (
              <li key={path}>
                <Link
                  to={to(path)}
                  className="font-mono wrap-anywhere text-accent hover:underline pointer-coarse:block pointer-coarse:py-2"
                >
                  {path}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      )}
    </figure>
  );
}

export function exitText(code: number): string {
  return `Exit code ${code}${code === TIMED_OUT ? ", time limit" : ""}`;
}

function Output({ stdout, stderr, isCut }: ShellResult) {
  return (
    <>
      {stdout !== "" && <pre className="whitespace-pre-wrap wrap-anywhere">{stdout}</pre>}
      {stderr !== "" && (
        <pre className="mt-1 border-l-2 border-danger pl-2 whitespace-pre-wrap text-danger wrap-anywhere">
          <span className="sr-only">Errors: </span>
          {stderr}
        </pre>
      )}
      {stdout === "" && stderr === "" && <p className="text-muted italic">No output</p>}
      {isCut && <p className="mt-1 font-sans text-caution">The output is cut. The rest is not stored.</p>}
    </>
  );
}
