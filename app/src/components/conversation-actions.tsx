/** Deletes a conversation, and leads to its files and to the memory of its agents. */
import type { ConversationView } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { filesPath, memoryPath } from "../route.ts";
import { navigate } from "../router.ts";
import { ConfirmedAction } from "./confirmed-action.tsx";
import { Link } from "./link.tsx";

interface DeleteConversationProps {
  id: string;
  onDeleted: () => void;
}

export function DeleteConversation({ id, onDeleted }: DeleteConversationProps) {
  return (
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
  );
}

interface ConversationLinksProps {
  id: string;
  agentIds: readonly string[];
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

export function ConversationLinks({ id, agentIds, nameOf }: ConversationLinksProps) {
  return (
    <ul className="px-3 py-2">
      <li>
        <Link
          to={filesPath({ conversation: id })}
          data-testid="menu-files"
          className="block py-1.5 text-sm text-accent hover:underline pointer-coarse:py-2.5"
        >
          Files
        </Link>
      </li>
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
