/** The changes of a branch as a difference, and the form that commits them. */
import { type ComponentProps, useCallback } from "react";
import type { ConversationView, WorkspaceOwner } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { messageOf } from "../../format.ts";
import { useMaySpeak } from "../../hooks/use-may-speak.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { type FilesChoice, filesPath } from "../../route.ts";
import { ErrorNote } from "../error-note.tsx";
import { Link } from "../link.tsx";
import { Loading } from "../loading.tsx";
import { CommitForm } from "./commit-form.tsx";
import { DiffView } from "./diff-view.tsx";
import type { RepositoryProps } from "./files-page.tsx";

export function ChangesView(props: RepositoryProps & { choice: FilesChoice }) {
  const { owner, conversation, repository, choice, version, onChanged } = props;
  const { id: repo, defaultBranch, changes } = repository;
  const against = choice.against ?? "base";
  return (
    <div className="space-y-3">
      {conversation !== undefined && (
        <Commit
          conversation={conversation}
          repo={repo}
          uncommitted={changes.length}
          onCommitted={onChanged}
        />
      )}
      <nav aria-label="Changes to show" className="flex flex-wrap gap-2 text-xs">
        {(["base", "head"] as const).map((name) => (
          <Link
            key={name}
            to={filesPath(owner, "changes", {
              repo: choice.repo,
              against: name === "head" ? name : undefined,
            })}
            aria-current={name === against ? "true" : undefined}
            className="rounded-full border border-line px-3 py-1 text-muted hover:text-ink aria-[current=true]:border-accent aria-[current=true]:bg-tint aria-[current=true]:text-ink pointer-coarse:py-2"
          >
            {name === "base" ? `All since ${defaultBranch}` : "Not committed"}
          </Link>
        ))}
      </nav>
      <Difference
        key={against}
        owner={owner}
        repo={repo}
        against={against}
        version={version}
        empty={against === "head" ? "Everything is committed." : "The branch has no changes yet."}
      />
    </div>
  );
}

type CommitProps = Omit<ComponentProps<typeof CommitForm>, "conversationId"> & {
  conversation: ConversationView;
};

/** The form, for readers who may commit. */
function Commit({ conversation, ...props }: CommitProps) {
  return useMaySpeak(conversation) && <CommitForm conversationId={conversation.id} {...props} />;
}

interface DifferenceProps {
  owner: WorkspaceOwner;
  repo: string;
  against: "head" | "base";
  version: string;
  empty: string;
}

/** Loads a difference and shows it. */
export function Difference({ owner, repo, against, version, empty }: DifferenceProps) {
  const load = useCallback(
    (signal: AbortSignal) => client.workspaces.diff(owner, { repo, against, signal }),
    [owner, repo, against],
  );
  const { value, error, reload } = useResource(load, version);
  return (
    <>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {value === undefined && error === undefined && <Loading label="Loading the changes" />}
      {value !== undefined && (
        <DiffView
          diff={value.diff}
          cut={value.cut}
          empty={empty}
          to={(path) => filesPath(owner, "files", { repo, path })}
        />
      )}
    </>
  );
}
