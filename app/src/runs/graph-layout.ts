/** Places the nodes of a workflow in layers, from the top down. */
import { Graph, layout } from "@dagrejs/dagre";
import type { WorkflowDefinition } from "../../../src/client/index.ts";
import { readingOrder } from "./workflow-graph.ts";

export const NODE_WIDTH = 210;
export const NODE_HEIGHT = 64;

/** Returns the upper left corner of each node, by its `ref`. */
export function placesOf(definition: WorkflowDefinition): Map<string, { x: number; y: number }> {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 36, ranksep: 60 });
  graph.setDefaultEdgeLabel(() => ({}));
  // The layout follows the nodes in this order. It reverses transitions that lead back.
  const nodes = readingOrder(definition);
  for (const { ref } of nodes) graph.setNode(ref, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const { from, to, ref } of definition.transitions) graph.setEdge(from, to, {}, ref);
  layout(graph);
  return new Map(
    nodes.map(({ ref }) => {
      const { x = 0, y = 0 } = graph.node(ref);
      return [ref, { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2 }];
    }),
  );
}
