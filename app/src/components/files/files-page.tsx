/**
 * The files of a conversation or a run: its branch, the files, the changes, the commits, and the merge of a conversation's branch.
 *
 * FILESPAGE-1  Each view, each repository and each file has its own address.
 * FILESPAGE-2  The page reads everything again when the reader returns to it, after a commit or a merge, and when the state of the
 *              branch has changed: it reads this state every few seconds.
 */
import { type ReactNode, useCallback, useEffect, useState } from "react";
import {
  type ConversationView,
  DramatisClientError,
  type RunView,
  type WorkspaceOwner,
} from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import type { Repository } from "../../files/commits.ts";
import { messageOf } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { useTitle } from "../../hooks/use-title.ts";
import {
  conversationPath,
  type FilesView,
  filesChoice,
  filesPath,
  projectPath,
  runPath,
} from "../../route.ts";
import { navigate } from "../../router.ts";
import { runName } from "../../runs/run-texts.ts";
import { ErrorNote } from "../error-note.tsx";
import { IconButton } from "../icon-button.tsx";
import { Link } from "../link.tsx";
import { Loading } from "../loading.tsx";
import { MissingPage } from "../missing-page.tsx";
import { PageBody } from "../page-body.tsx";
import { HeaderLink, PageHeader } from "../page-header.tsx";
import { BranchState } from "./branch-state.tsx";
import { ChangesView } from "./changes-view.tsx";
import { CommitsView } from "./commits-view.tsx";
import { FileBrowser } from "./file-browser.tsx";
import { FilesTabs } from "./files-tabs.tsx";
import { MergeView } from "./merge-view.tsx";

/** Milliseconds between two reads of the state of the branch. */
const REFRESH_MS = 5_000;

/** The conversation or the run of the files. */
type Loaded = { conversation: ConversationView; run?: never } | { run: RunView; conversation?: never };

async function load(owner: WorkspaceOwner, signal: AbortSignal): Promise<Loaded> {
  return "run" in owner
    ? { run: await client.runs.get(owner.run, { signal }) }
    : { conversation: await client.conversations.get(owner.conversation, { signal }) };
}

/** Returns the title of the owner; "" before it is loaded. */
function useOwnerTitle(owner: WorkspaceOwner, loaded: Loaded | undefined): string {
  const id = "run" in owner ? owner.run : owner.conversation;
  const { conversation, run } = loaded ?? {};
  const given = conversation === undefined ? "" : conversation.title;
  const title = useTitle(id, given);
  return run === undefined ? title : runName(run);
}

interface FilesPageProps {
  owner: WorkspaceOwner;
  view: FilesView;
  /** The query string: the repository and the file. */
  search: string;
  onMenu: (() => void) | undefined;
}

/** Another owner needs another `key`. */
export function FilesPage({ owner: given, view, search, onMenu }: FilesPageProps) {
  const [owner] = useState(given);
  const loadAll = useCallback(
    async (signal: AbortSignal) => {
      const [of, files] = await Promise.all([load(owner, signal), client.workspaces.get(owner, { signal })]);
      return { of, files };
    },
    [owner],
  );
  const { value, error, reload } = useResource(loadAll);
  const [reloads, setReloads] = useState(0);
  const reloadAll = useCallback(() => {
    setReloads((before) => before + 1);
    reload();
  }, [reload]);
  // The next read begins after the end of the last. A reader who returns begins the next.
  useEffect(() => {
    if (value === undefined && error === undefined) return;
    const timer = setTimeout(() => document.visibilityState === "visible" && reload(), REFRESH_MS);
    return () => clearTimeout(timer);
  }, [value, error, reload]);
  useEffect(() => {
    const onVisible = () => document.visibilityState === "visible" && reloadAll();
    document.addEventListener("visibilitychange", onVisible);
    return () => document.removeEventListener("visibilitychange", onVisible);
  }, [reloadAll]);
  const title = useOwnerTitle(owner, value?.of);
  usePageTitle(title === "" ? "Files" : `Files of ${title}`);

  const noun = "run" in owner ? "Run" : "Conversation";
  if (error instanceof DramatisClientError && [401, 403, 404].includes(error.status))
    return <MissingPage title={`${noun} not found`} detail={error.detail} onMenu={onMenu} />;
  const choice = filesChoice(search);
  const repositories = value?.files.repositories ?? [];
  const repository =
    choice.repo === undefined ? repositories[0] : repositories.find(({ id: repo }) => repo === choice.repo);
  const project = (value?.of.conversation ?? value?.of.run)?.projectId;
  return (
    <>
      <PageHeader title="Files" subtitle={title === "" ? undefined : title} onMenu={onMenu}>
        <IconButton icon="retry" name="Read the files again" onClick={reloadAll} />
        <HeaderLink
          to={"run" in owner ? runPath(owner.run) : conversationPath(owner.conversation)}
          data-testid="open-owner"
        >
          {noun}
        </HeaderLink>
      </PageHeader>
      <PageBody isWide>
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
        {value === undefined && error === undefined && <Loading label="Loading the files" />}
        {project !== undefined && repository === undefined && (
          <NoRepository project={project} repo={choice.repo} />
        )}
        {value !== undefined && project !== undefined && repository !== undefined && (
          <>
            <BranchState
              branch={value.files.branch}
              repository={repository}
              repositories={repositories}
              project={project}
              onChoose={(repo) => navigate(filesPath(owner, view, { repo }))}
            />
            <FilesTabs owner={owner} view={view} repo={choice.repo} uncommitted={repository.changes.length} />
            <View
              key={repository.id}
              view={view}
              owner={owner}
              conversation={value.of.conversation}
              branch={value.files.branch}
              repository={repository}
              search={search}
              version={`${reloads} ${JSON.stringify(value.files)}`}
              onChanged={reload}
            />
          </>
        )}
      </PageBody>
    </>
  );
}

/** The state that the views of a repository share. */
export interface RepositoryProps {
  /** Keeps its identity between renders. */
  owner: WorkspaceOwner;
  /** The owner, unless it is a run. People commit and merge the files of conversations only. */
  conversation: ConversationView | undefined;
  branch: string;
  repository: Repository;
  /** Another text reads the files again. */
  version: string;
  /** Called after a commit or a merge. */
  onChanged: () => void;
}

function View({ view, search, ...rest }: RepositoryProps & { view: FilesView; search: string }): ReactNode {
  const choice = filesChoice(search);
  switch (view) {
    case "files":
      return <FileBrowser {...rest} choice={choice} />;
    case "changes":
      return <ChangesView {...rest} choice={choice} />;
    case "commits":
      return <CommitsView {...rest} />;
    case "merge": {
      const { conversation } = rest;
      return conversation && <MergeView {...rest} conversation={conversation} choice={choice} />;
    }
    default:
      return view satisfies never;
  }
}

function NoRepository({ project, repo }: { project: string; repo: string | undefined }) {
  const isAuthor = useHasRole("author");
  return (
    <div data-testid="no-repository" className="space-y-2 px-1 py-6 text-center text-sm text-muted">
      {repo === undefined ? (
        <p>
          The project <span className="font-mono text-ink">{project}</span> has no repository, so its agents
          have no files to work on.
        </p>
      ) : (
        <p>
          The project <span className="font-mono text-ink">{project}</span> has no repository{" "}
          <span className="font-mono text-ink">{repo}</span>.
        </p>
      )}
      {isAuthor ? (
        <Link to={projectPath(project)} className="inline-block py-1 text-accent hover:underline">
          Open the project to add a repository
        </Link>
      ) : (
        <p>Authors and administrators add repositories.</p>
      )}
    </div>
  );
}
