/** Exports and deletes a conversation, and leads to the memory of its agents. */
import type { ConversationView } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { memoryPath } from "../route.ts";
import { navigate } from "../router.ts";
import { ConfirmedAction } from "./confirmed-action.tsx";
import { ExportLink } from "./export-link.tsx";
import { Link } from "./link.tsx";

interface ConversationActionsProps {
  id: string;
  /** Another agent opened the conversation: it is deleted with the caller's conversation. */
  isCalled: boolean;
  onDeleted: () => void;
}

export function ConversationActions({ id, isCalled, onDeleted }: ConversationActionsProps) {
  return (
    <>
      {!isCalled && (
        <ConfirmedAction
          texts={{ idle: "Delete conversation", asking: "Delete it for good?", working: "Deleting…" }}
          className="text-danger"
          testId="delete-conversation"
          note="Deletes its messages, its files, and memories that agents learned only from it."
          onConfirm={async () => {
            await client.conversations.delete(id);
            navigate("/");
            onDeleted();
          }}
        />
      )}
      <ExportLink of="conversations" id={id} />
    </>
  );
}

interface MemoryLinksProps {
  agentIds: readonly string[];
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

export function MemoryLinks({ agentIds, nameOf }: MemoryLinksProps) {
  return (
    <ul className="px-3 py-2">
      {agentIds.map((agentId) => (
        <li key={agentId}>
          <Link
            to={memoryPath(agentId)}
            data-testid="agent-memory"
            className="block py-1.5 text-sm text-accent hover:underline pointer-coarse:py-2.5"
          >
            Memory of {nameOf(agentId)}
          </Link>
        </li>
      ))}
    </ul>
  );
}

/** Returns the ids of the agents that take part. */
export function agentsOf({ participants }: Pick<ConversationView, "participants">): string[] {
  return participants.flatMap(({ type, id }) => (type === "agent" ? [id] : []));
}
