/** A node of a run: its name, its work, and its tokens. A click shows its details. */
import type { WorkflowNode } from "../../../src/client/index.ts";
import type { NodeVisits } from "../runs/run-log.ts";
import { countsText, type NodeState, nodeState } from "../runs/run-texts.ts";
import { kindOf, type NodeKind, ownerText } from "../runs/workflow-graph.ts";
import { Icon, type IconName } from "./icon.tsx";

const icons: Record<NodeKind, IconName> = {
  task: "tool",
  workflow: "agents",
  agent: "agent",
  pass: "chevron",
};

const looks: Record<NodeState, string> = {
  idle: "border-line bg-surface",
  ready: "border-accent bg-tint",
  working: "border-accent bg-tint",
  asking: "border-caution bg-caution-tint",
  waiting: "border-caution bg-caution-tint",
  retrying: "border-caution bg-caution-tint",
  lost: "border-caution bg-caution-tint",
  joined: "border-accent/60 bg-surface",
  completed: "border-accent/60 bg-surface",
  failed: "border-danger bg-danger-tint",
  cancelled: "border-line bg-sunken",
};

interface RunNodeProps {
  node: WorkflowNode;
  visits: NodeVisits;
  chosen: boolean;
  onChoose: () => void;
  className?: string;
}

export function RunNode({ node, visits, chosen, onChoose, className = "" }: RunNodeProps) {
  const state = nodeState(visits);
  const kind = kindOf(node);
  return (
    <button
      type="button"
      onClick={onChoose}
      aria-expanded={chosen}
      data-testid="run-node"
      data-node={node.ref}
      data-state={state}
      className={`w-full rounded-xl border px-3 py-2 text-left aria-expanded:ring-2 aria-expanded:ring-accent ${looks[state]} ${className}`}
    >
      <span className="flex items-center gap-2">
        <Icon name={icons[kind]} className="text-muted" />
        <span className="min-w-0 flex-1 truncate text-sm font-medium">{node.name ?? node.ref}</span>
        {state === "working" && <Icon name="spinner" className="spin text-accent" />}
      </span>
      <span className="block truncate text-xs text-muted">
        {kind !== "pass" && <span className="sr-only">{ownerText(node)}. </span>}
        {countsText(visits)}
      </span>
    </button>
  );
}
