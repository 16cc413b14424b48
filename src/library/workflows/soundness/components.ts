/** The strongly connected components of a graph (Tarjan), without recursion. Pure. */

/** A component's number for each vertex. Every edge leads to a component of the same or a lower number. */
export interface Components {
  of: number[];
  count: number;
}

/** Returns the components of a graph with the vertices 0 to `size` - 1. */
export function componentsOf(size: number, edges: (vertex: number) => readonly number[]): Components {
  const order = new Array<number>(size).fill(-1);
  const low = new Array<number>(size).fill(0);
  const of = new Array<number>(size).fill(-1);
  const open: number[] = [];
  let next = 0;
  let count = 0;
  const walk: { vertex: number; targets: readonly number[]; at: number }[] = [];
  const enter = (vertex: number) => {
    order[vertex] = low[vertex] = next++;
    open.push(vertex);
    walk.push({ vertex, targets: edges(vertex), at: 0 });
  };
  const lower = (vertex: number, value: number) => {
    low[vertex] = Math.min(low[vertex] ?? 0, value);
  };
  const close = (root: number) => {
    for (let vertex = open.pop(); vertex !== undefined; vertex = open.pop()) {
      of[vertex] = count;
      if (vertex === root) break;
    }
    count += 1;
  };
  for (let start = 0; start < size; start++) {
    if (order[start] !== -1) continue;
    enter(start);
    for (let step = walk.at(-1); step !== undefined; step = walk.at(-1)) {
      const target = step.targets[step.at++];
      if (target !== undefined) {
        if (order[target] === -1) enter(target);
        else if (of[target] === -1) lower(step.vertex, order[target] ?? 0);
        continue;
      }
      walk.pop();
      if (low[step.vertex] === order[step.vertex]) close(step.vertex);
      const above = walk.at(-1);
      if (above !== undefined) lower(above.vertex, low[step.vertex] ?? 0);
    }
  }
  return { of, count };
}
