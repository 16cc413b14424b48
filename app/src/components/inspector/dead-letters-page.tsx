/** Messages between actors that were not delivered. Operators can send them again. */
import { useState } from "react";
import type { DeadLetterView } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { messageOf, momentOf, problemText } from "../../format.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { type PageOptions, usePages } from "../../hooks/use-pages.ts";
import { conversationPath, runPath } from "../../route.ts";
import { ConfirmedButton } from "../confirmed-button.tsx";
import { ErrorNote } from "../error-note.tsx";
import { type Fact, Facts } from "../facts.tsx";
import { JsonView } from "../json-view.tsx";
import { Link } from "../link.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import { PageBody } from "../page-body.tsx";
import { PageHeader } from "../page-header.tsx";
import { OperatorsOnly } from "./operators-only.tsx";

const REFRESH_MS = 10_000;

export function DeadLettersPage({ onMenu }: { onMenu: (() => void) | undefined }) {
  usePageTitle("Dead letters");
  return (
    <>
      <PageHeader
        title="Dead letters"
        subtitle="Messages between actors that were not delivered"
        onMenu={onMenu}
      />
      <PageBody>
        <OperatorsOnly what="dead letters">
          <LetterList />
        </OperatorsOnly>
      </PageBody>
    </>
  );
}

async function load(page: PageOptions) {
  const { deadLetters, ...rest } = await client.deadLetters.list(page);
  return { items: deadLetters, ...rest };
}

function LetterList() {
  const { value: letters, error, more, loadMore, reload } = usePages<DeadLetterView>(load, REFRESH_MS);
  return (
    <>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {letters === undefined && error === undefined && <Loading label="Loading dead letters" />}
      {letters?.length === 0 && (
        <p className="px-1 py-2 text-sm text-muted">No dead letters. All messages were delivered.</p>
      )}
      {letters !== undefined && letters.length > 0 && (
        <ul aria-label="Dead letters" className="space-y-2">
          {letters.map((letter) => (
            <Letter key={letter.id} letter={letter} onSent={reload} />
          ))}
        </ul>
      )}
      {more && <LoadMore onClick={loadMore} />}
    </>
  );
}

const STATUS_TEXT = { failed: "Not delivered", unknown: "Outcome unknown" };

function Letter({ letter, onSent }: { letter: DeadLetterView; onSent: () => void }) {
  const [error, setError] = useState<unknown>(undefined);
  const [isSent, setIsSent] = useState(false);
  const { id, type, status, from, to, attempts, diedAt } = letter;
  const facts: Fact[] = [
    ["From", <Address key="from" address={from} />],
    ["To", <Address key="to" address={to} />],
    ["Attempts", `${attempts}`],
    ["Id", id],
  ];
  return (
    <li
      data-testid="dead-letter"
      data-letter={id}
      className="space-y-2 rounded-xl border border-line bg-surface px-4 py-3"
    >
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <h2 className="font-mono text-sm font-medium wrap-anywhere">{type}</h2>
          <p className="text-xs text-muted">
            <span className={status === "failed" ? "text-danger" : "text-caution"}>
              {STATUS_TEXT[status]}
            </span>
            {" · "}
            <time dateTime={diedAt}>{momentOf(diedAt, new Date())}</time>
          </p>
        </div>
        {isSent ? (
          <p role="status" className="py-1.5 text-sm text-accent">
            Sent again
          </p>
        ) : (
          <ConfirmedButton
            texts={{ idle: "Redeliver", asking: "Send it again?", working: "Sending…" }}
            needsSecond
            className="text-accent"
            testId="redeliver"
            onConfirm={async () => {
              await client.deadLetters.redeliver(id);
              setIsSent(true);
              onSent();
            }}
            onError={setError}
          />
        )}
      </div>
      {error !== undefined && <ErrorNote text={problemText(error)} />}
      <p className="text-sm wrap-anywhere">
        <span className="font-mono text-xs text-danger">{letter.error.code}</span> {letter.error.message}
      </p>
      <Facts facts={facts} />
      <details className="text-xs">
        <summary className="py-1 text-accent">Body</summary>
        <JsonView label="Without secrets" value={letter.body} />
      </details>
    </li>
  );
}

/** The actor of a letter, as a link if the console has a page for it. */
function Address({ address: { kind, id } }: { address: DeadLetterView["from"] }) {
  const path =
    kind === "conversation" ? conversationPath(id) : kind === "coordinator" ? runPath(id) : undefined;
  const text = `${kind} ${id}`;
  return path === undefined ? (
    text
  ) : (
    <Link to={path} className="text-accent underline">
      {text}
    </Link>
  );
}
