/** The agents of a conversation, with the current work and the usage of each. The browser's popover handles focus and Escape. */
import { useId } from "react";
import {
  type AgentAtWork,
  type AgentTask,
  type ConversationView,
  type TurnState,
  textOf,
} from "../../../src/client/index.ts";
import { amountsText, previewOf, titleFrom } from "../format.ts";
import { conversationPath } from "../route.ts";
import { waitOf } from "../turns.ts";
import { Avatar } from "./avatar.tsx";
import { Icon } from "./icon.tsx";
import { Link } from "./link.tsx";

interface AgentsMenuProps {
  participants: ConversationView["participants"];
  agents: readonly AgentAtWork[];
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

export function AgentsMenu({ participants, agents, nameOf }: AgentsMenuProps) {
  const id = useId();
  const people = participants.filter(({ type }) => type === "user");
  const working = agents.filter(({ tasks }) => tasks.length > 0).length;
  const label = `Agents: ${agents.length}, ${working} working`;
  return (
    <>
      <button
        type="button"
        popoverTarget={id}
        aria-label={label}
        title={label}
        data-testid="agents"
        className="flex shrink-0 items-center gap-1 rounded-lg p-2 text-xs text-muted tabular-nums hover:text-ink"
      >
        <Icon name="agents" className="size-5" />
        {agents.length}
      </button>
      <section
        id={id}
        popover="auto"
        aria-label="Agents and their work"
        className="fixed inset-auto top-15 right-3 m-0 max-h-[70vh] w-96 max-w-[calc(100vw-1.5rem)] overflow-y-auto rounded-2xl border border-line bg-surface p-2 text-ink shadow-lg"
      >
        <ul className="space-y-1">
          {agents.map((agent) => (
            <AgentRow key={agent.agentId} agent={agent} nameOf={nameOf} />
          ))}
        </ul>
        <div className="space-y-1 px-3 py-1 text-xs text-muted">
          {people.length > 1 && (
            <p className="wrap-anywhere">People: {people.map((one) => one.id).join(", ")}</p>
          )}
          {agents.some(({ spent }) => spent.tokens > 0) && <p>Totals of the answers shown.</p>}
        </div>
      </section>
    </>
  );
}

function AgentRow({ agent, nameOf }: { agent: AgentAtWork; nameOf: (agentId: string) => string }) {
  const { agentId, isParticipant, tasks, spent } = agent;
  const name = nameOf(agentId);
  const used = amountsText(spent);
  return (
    <li data-testid="agent-at-work" data-agent={agentId} className="flex gap-3 rounded-xl px-3 py-2">
      <Avatar name={name} />
      <div className="min-w-0 flex-1 space-y-1">
        <p className="flex flex-wrap items-baseline justify-between gap-x-3">
          <span className="text-sm font-medium">{name}</span>
          {spent.tokens > 0 && (
            <span data-testid="agent-spent" className="text-xs text-muted">
              Used {spent.estimated ? `about ${used}` : used}
            </span>
          )}
        </p>
        {tasks.length === 0 && (
          <p className="text-xs text-muted">{isParticipant ? "Takes part" : "Helped"}</p>
        )}
        {tasks.map((task) => (
          <Task key={task.call?.id ?? task.turn.id} task={task} nameOf={nameOf} />
        ))}
      </div>
    </li>
  );
}

function Task({ task, nameOf }: { task: AgentTask; nameOf: (agentId: string) => string }) {
  const { turn, call } = task;
  const to = call?.agent?.conversationId;
  return (
    <p className="text-xs text-muted wrap-anywhere">
      <span className="text-ink">{call === undefined ? stageOf(turn) : callStage(task, nameOf)}</span>{" "}
      {titleFrom(call === undefined ? questionOf(turn) : previewOf(call.input), 80)}
      {to !== undefined && (
        <>
          {" "}
          <Link to={conversationPath(to)} className="text-accent underline pointer-coarse:py-2.5">
            Open
            <span className="sr-only"> {nameOf(call?.agent?.id ?? "")}’s conversation</span>
          </Link>
        </>
      )}
    </p>
  );
}

function callStage({ turn, call }: AgentTask, nameOf: (agentId: string) => string): string {
  const stage = (call?.agent?.asks ?? []).length > 0 ? "Waits for approval" : "Works";
  return `${stage} for ${nameOf(turn.agentId)}:`;
}

const WAITS = {
  approval: "Waits for approval:",
  person: "Waits for a person:",
  result: "Waits for a result:",
  background: "Has work in the background:",
};

function stageOf(turn: TurnState): string {
  if (turn.phase === "queued") return "Queued:";
  const wait = waitOf(turn);
  if (wait !== null) return WAITS[wait];
  const running = turn.items.flatMap((item) =>
    item.type === "tool" && item.operation.state === "running" ? [item.operation] : [],
  );
  if (running.some(({ agent }) => agent !== undefined)) return "Waits for agents:";
  const tools = running.map(({ name }) => name);
  return tools.length === 0 ? "Answers:" : `Runs ${tools.join(", ")} for:`;
}

/** Returns the text of the message that a turn answers. A message from another agent's turn is not among the items. */
function questionOf({ agentId, items }: TurnState): string {
  const asked = items.find((item) => item.type === "message" && item.message.agentId !== agentId);
  return asked?.type === "message" ? textOf(asked.message.content) : "another agent's message";
}
