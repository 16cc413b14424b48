/** The graph of a run's workflow, with the tokens at its nodes. It is a chunk of its own, because few pages need the library that draws it. */
import {
  Background,
  Controls,
  type Edge,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from "@xyflow/react";
import { createContext, useContext, useMemo } from "react";
import type { WorkflowDefinition, WorkflowNode } from "../../../src/client/index.ts";
import { NODE_HEIGHT, NODE_WIDTH, placesOf } from "../runs/graph-layout.ts";
import type { RunLog } from "../runs/run-log.ts";
import { transitionText } from "../runs/workflow-graph.ts";
import { RunNode } from "./run-node.tsx";
import "@xyflow/react/dist/style.css";

interface RunGraphProps {
  definition: WorkflowDefinition;
  log: RunLog;
  /** Changes whenever the log has changed. */
  version: number;
  chosen: string | undefined;
  onChoose: (ref: string) => void;
}

type DrawnNode = Node<{ node: WorkflowNode }, "step">;

const GraphContext = createContext<Omit<RunGraphProps, "definition"> | null>(null);

const nodeTypes = { step: StepNode };

export default function RunGraph({ definition, ...live }: RunGraphProps) {
  const { log, version } = live;
  const nodes = useMemo(() => drawnNodes(definition), [definition]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the log changes in place, and its version with it.
  const edges = useMemo(() => drawnEdges(definition, log), [definition, log, version]);
  return (
    <GraphContext value={live}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        colorMode="system"
        fitView
        fitViewOptions={{ maxZoom: 1, padding: 0.15 }}
        minZoom={0.1}
        maxZoom={1.5}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        deleteKeyCode={null}
        aria-label="Graph of the workflow"
      >
        <Background />
        <Controls showInteractive={false} />
      </ReactFlow>
    </GraphContext>
  );
}

function StepNode({ data: { node } }: NodeProps<DrawnNode>) {
  const live = useContext(GraphContext);
  if (live === null) throw new Error("A node is drawn in its graph only.");
  const { log, chosen, onChoose } = live;
  return (
    <>
      <Handle type="target" position={Position.Top} className="invisible" />
      <RunNode
        node={node}
        visits={log.visits(node.ref)}
        chosen={chosen === node.ref}
        onChoose={() => onChoose(node.ref)}
        className="nopan pointer-events-auto h-full"
      />
      <Handle type="source" position={Position.Bottom} className="invisible" />
    </>
  );
}

function drawnNodes(definition: WorkflowDefinition): DrawnNode[] {
  const places = placesOf(definition);
  return definition.nodes.map((node) => ({
    id: node.ref,
    type: "step",
    position: places.get(node.ref) ?? { x: 0, y: 0 },
    width: NODE_WIDTH,
    height: NODE_HEIGHT,
    data: { node },
  }));
}

function drawnEdges({ transitions }: WorkflowDefinition, log: RunLog): Edge[] {
  return transitions.map((transition) => {
    const { ref, from, to } = transition;
    const fired = log.fired(ref);
    const color = fired > 0 ? "var(--color-accent)" : "var(--color-muted)";
    return {
      id: ref,
      source: from,
      target: to,
      label: transitionText(transition),
      animated: false,
      style: { stroke: color, strokeWidth: fired > 0 ? 2 : 1 },
      labelStyle: { fill: "var(--color-ink)" },
      labelBgStyle: { fill: "var(--color-canvas)" },
      markerEnd: { type: MarkerType.ArrowClosed, color },
    };
  });
}
