/** A call of a tool for files: its command with the output, its changes, or its commit. */
import { useContext } from "react";
import { ConversationId } from "../../conversation-id.ts";
import { shortOid } from "../../files/commits.ts";
import type { ToolView } from "../../files/tool-views.ts";
import { filesPath } from "../../route.ts";
import { Link } from "../link.tsx";
import { ChangeMark, DiffView, FileDiff } from "./diff-view.tsx";
import { TerminalView } from "./terminal-view.tsx";

interface FileToolViewProps {
  view: ToolView;
  /** The repository that the call names. */
  repo: string | undefined;
}

export function FileToolView({ view, repo }: FileToolViewProps) {
  const owner = { conversation: useContext(ConversationId) };
  const to = (path: string) => filesPath(owner, "files", { repo, path });
  switch (view.type) {
    case "terminal":
      return <TerminalView command={view.command} result={view.result} to={to} />;
    case "diff":
      return <DiffView diff={view.diff} cut={view.cut} empty="No changes." to={to} />;
    case "edit":
      return <FileDiff file={view.file} to={to} />;
    case "commit":
      return (
        <div data-testid="commit-view" className="space-y-2 rounded-lg border border-line p-3 text-xs">
          <p>
            Commit <span className="font-mono">{shortOid(view.commit)}</span>
            {view.changes.length === 0 && ": nothing to commit"}
          </p>
          <ul>
            {view.changes.map(({ path, change }) => (
              <li key={path} className="flex gap-2 font-mono">
                <ChangeMark change={change} />
                <span className="min-w-0 wrap-anywhere">{path}</span>
              </li>
            ))}
          </ul>
          <Link
            to={filesPath(owner, "merge", { repo })}
            className="inline-block py-0.5 text-accent underline pointer-coarse:py-2.5"
          >
            Review and merge
          </Link>
        </div>
      );
    default:
      return view satisfies never;
  }
}
