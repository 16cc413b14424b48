/** A page with two inboxes, the agents, and two views of a run, whose id is in the query. */
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { DramatisClientError } from "../../../src/client/index.ts";
import { useAgents, useApprovals, useRun } from "../../../src/client/react/index.ts";

function codeOf(error: unknown): string {
  return error instanceof DramatisClientError ? error.code : String(error);
}

/** The functions of the hooks, also of components that have left. */
const refreshes = new Set<() => void>();

function Inbox({ name, user }: { name: string; user: string }) {
  const { approvals, loading, error, answer, deny, refresh } = useApprovals({ user });
  refreshes.add(refresh);
  const [failure, setFailure] = useState("");
  const report = (reason: unknown) => setFailure(codeOf(reason));
  return (
    <section aria-label={name} data-loading={loading}>
      {approvals.map((approval) => (
        <p key={approval.operationId}>
          {approval.kind === "tool" ? approval.name : approval.prompt}
          <button type="button" onClick={() => answer(approval, { approved: true }).catch(report)}>
            Approve
          </button>
          <button type="button" onClick={() => deny(approval, "Too expensive.").catch(report)}>
            Deny
          </button>
        </p>
      ))}
      <output>{error?.code ?? failure}</output>
    </section>
  );
}

function Agents() {
  const { agents } = useAgents();
  return (
    <ul aria-label="Agents">
      {agents.map(({ id, name, description = "", examples }) => (
        <li key={id}>{[id, name, description, ...examples].join(" | ")}</li>
      ))}
    </ul>
  );
}

function Run({ id, name }: { id: string; name: string }) {
  const { run, events, status, ended, error, answer, cancel, refresh } = useRun(id);
  refreshes.add(refresh);
  const [failure, setFailure] = useState("");
  const report = (reason: unknown) => setFailure(codeOf(reason));
  return (
    <section aria-label={name} data-run={run?.status} data-status={status} data-ended={ended}>
      <b>{events.map(({ seq }) => seq).join(" ")}</b>
      {run?.gates.map(({ operationId, prompt }) => (
        <button
          key={operationId}
          type="button"
          onClick={() => answer(operationId, { approved: true }).catch(report)}
        >
          {prompt}
        </button>
      ))}
      <button type="button" onClick={() => cancel().catch(report)}>
        Cancel
      </button>
      <output>{error?.code ?? failure}</output>
    </section>
  );
}

function Page({ id }: { id: string }) {
  const [shown, setShown] = useState(true);
  const [hasInbox, setInbox] = useState(true);
  const [user, setUser] = useState("ada");
  return (
    <>
      {hasInbox && <Inbox name="First" user={user} />}
      {hasInbox && <Inbox name="Second" user={user} />}
      <Agents />
      <Run id="no-run" name="Wrong" />
      {shown && <Run id={id} name="Run" />}
      {shown && <Run id={id} name="Same run" />}
      <button type="button" onClick={() => setShown(!shown)}>
        Toggle
      </button>
      <button type="button" onClick={() => setInbox(!hasInbox)}>
        Switch inboxes
      </button>
      <button type="button" onClick={() => setUser("ben")}>
        Next user
      </button>
      <button type="button" onClick={() => [...refreshes].map((refresh) => refresh())}>
        Refresh
      </button>
    </>
  );
}

const root = document.getElementById("root");
const id = new URLSearchParams(location.search).get("id");
if (root !== null && id !== null)
  createRoot(root).render(
    <StrictMode>
      <Page id={id} />
    </StrictMode>,
  );
