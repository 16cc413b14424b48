/** Choice of an agent, by name and description. */
import type { AgentSummary } from "../../../src/client/index.ts";
import { agentDescription, agentName } from "../format.ts";
import { Avatar } from "./avatar.tsx";

interface AgentPickerProps {
  agents: readonly AgentSummary[];
  value: string | undefined;
  onChange: (agentId: string) => void;
}

export function AgentPicker({ agents, value, onChange }: AgentPickerProps) {
  return (
    <fieldset data-testid="agent-picker">
      <legend className="sr-only">Agent</legend>
      <div className="grid grid-cols-2 gap-2 sm:gap-3">
        {agents.map((agent) => (
          <label
            key={agent.id}
            className="flex items-center gap-2 rounded-xl border border-line bg-surface p-2.5 hover:border-accent has-checked:border-accent has-checked:bg-tint sm:items-start sm:gap-3 sm:p-4"
          >
            <Avatar name={agentName(agent)} />
            <span className="min-w-0 flex-1">
              <span className="block truncate font-medium max-sm:text-sm">{agentName(agent)}</span>
              <span className="line-clamp-2 text-sm text-muted max-sm:hidden">{agentDescription(agent)}</span>
            </span>
            <input
              type="radio"
              name="agent"
              value={agent.id}
              checked={agent.id === value}
              onChange={() => onChange(agent.id)}
              className="size-4 shrink-0 sm:mt-1 accent-accent"
            />
          </label>
        ))}
      </div>
    </fieldset>
  );
}
