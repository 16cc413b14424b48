/** Names the agent that answers the reader's next message, below the composer. Renders `null` if the agent is obvious. */
import type { LiveConversation } from "../../../src/client/index.ts";
import { addresseeOf } from "../addressee.ts";

interface AddresseeNoteProps {
  state: LiveConversation;
  text: string;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

export function AddresseeNote({ state, text, nameOf }: AddresseeNoteProps) {
  const { agentId, unknown } = addresseeOf(state, text) ?? {};
  const agents = (state.conversation?.participants ?? []).filter(({ type }) => type === "agent");
  if (agents.length < 2 && unknown === undefined) return null;
  const answers = agentId === undefined ? "" : `${nameOf(agentId)} answers`;
  const others = agents.filter(({ id }) => id !== agentId).map(({ id }) => `@${id}`);
  const rest = others.length === 0 ? "" : `for another agent, write ${others.join(" or ")}`;
  const parts = [
    ...(unknown === undefined ? [] : [`no agent @${unknown} takes part`]),
    ...(answers === "" ? [] : [answers]),
    ...(rest === "" ? [] : [rest]),
  ];
  const line = parts.join("; ");
  return (
    <p
      role="status"
      data-testid="addressee"
      className={`mt-1.5 px-2 text-xs wrap-anywhere ${unknown === undefined ? "text-muted" : "text-caution"}`}
    >
      {line.charAt(0).toUpperCase() + line.slice(1)}.
    </p>
  );
}
