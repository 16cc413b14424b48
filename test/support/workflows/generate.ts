/**
 * Random definitions of workflows: graphs that are built to be sound, sound graphs with a few changes, and graphs of
 * any edges.
 */
import { workflowSchema } from "../../../src/library/workflows/workflow-schema.ts";
import {
  MERGE_STRATEGIES,
  type WorkflowDefinition,
  type WorkflowTransition,
} from "../../../src/protocol/workflow-definition.ts";
import type { Random } from "../../../src/testing/random.ts";
import { changes } from "./changes.ts";

/** A transition without its defaults. */
export type Draft = Partial<WorkflowTransition> & { from: string; to: string };

/** A node in the making. */
export interface DraftNode {
  ref: string;
  runs: boolean;
  writesState: boolean;
  reads: string[];
}

/** A graph in the making. */
export class Sketch {
  readonly nodes: DraftNode[] = [];
  readonly transitions: Draft[] = [];
  #groups = 0;
  #conditions = 0;

  constructor(readonly random: Random) {}

  node(runs = true): string {
    const ref = `n${this.nodes.length}`;
    this.nodes.push({ ref, runs, writesState: false, reads: [] });
    return ref;
  }

  edge(from: string, to: string, more: Partial<WorkflowTransition> = {}): Draft {
    const draft = { from, to, ...more };
    this.transitions.push(draft);
    return draft;
  }

  /** Returns a new condition over the node's own writes. */
  condition(node: string): string {
    const draft = this.nodes.find(({ ref }) => ref === node);
    if (draft !== undefined) draft.runs = true;
    return `output.${node}.c${this.#conditions++ % 6}`;
  }

  group(): string {
    return `g${this.#groups++}`;
  }
}

/** The ways into a part of a graph and out of it. */
interface Block {
  entry: string;
  exit: string;
}

export function generate(random: Random): WorkflowDefinition {
  const sketch = new Sketch(random);
  if (random.chance(0.2)) anyEdges(sketch);
  else {
    block(sketch, random.int(1, 3), false);
    if (random.chance(0.6)) for (let left = random.int(1, 3); left > 0; left--) random.pick(changes)(sketch);
  }
  return finished(sketch);
}

function block(sketch: Sketch, depth: number, inBranch: boolean): Block {
  const { random } = sketch;
  if (depth === 0 || sketch.nodes.length > 14) return single(sketch, inBranch);
  const kinds = [sequence, sequence, choice, fanOut, fanOut, fanOut, loop, aside, split, early];
  return random.pick(kinds)(sketch, depth - 1, inBranch);
}

function single(sketch: Sketch, inBranch: boolean): Block {
  const { random } = sketch;
  const known = sketch.nodes.filter(({ runs }) => runs).map(({ ref }) => ref);
  const ref = sketch.node(random.chance(0.8));
  const draft = sketch.nodes.at(-1);
  if (draft !== undefined && !inBranch && random.chance(0.3)) draft.writesState = true;
  if (draft?.runs && known.length > 0 && random.chance(0.15))
    draft.reads.push(`output.${random.pick(known)}.v`);
  return { entry: ref, exit: ref };
}

function sequence(sketch: Sketch, depth: number, inBranch: boolean): Block {
  const first = block(sketch, depth, inBranch);
  const second = block(sketch, depth, inBranch);
  sketch.edge(first.exit, second.entry);
  return { entry: first.entry, exit: second.exit };
}

function choice(sketch: Sketch, depth: number, inBranch: boolean): Block {
  const from = sketch.node();
  const one = block(sketch, depth, inBranch);
  const other = block(sketch, depth, inBranch);
  const to = sketch.node(sketch.random.chance(0.5));
  sketch.edge(from, one.entry, { condition: sketch.condition(from) });
  sketch.edge(from, other.entry, { priority: 1 });
  sketch.edge(one.exit, to);
  sketch.edge(other.exit, to);
  return { entry: from, exit: to };
}

function fanOut(sketch: Sketch, depth: number, inBranch: boolean): Block {
  const { random } = sketch;
  const [from, group] = [sketch.node(), sketch.group()];
  const branches = random.list(random.int(1, 2), () => block(sketch, depth, true));
  const to = sketch.node(random.chance(0.5));
  const synchronization = synchronizationOf(random, group, to, inBranch);
  for (const { entry, exit } of branches) {
    const count = random.chance(0.4)
      ? { foreach: { collection: `output.${from}.items`, itemVar: "item" } }
      : random.chance(0.6)
        ? { spawnCount: random.int(1, 3) }
        : {};
    const condition = random.chance(0.2) ? { condition: sketch.condition(from) } : {};
    sketch.edge(from, entry, { siblingGroup: group, ...count, ...condition });
    sketch.edge(exit, to, { synchronization });
  }
  return { entry: from, exit: to };
}

function synchronizationOf(random: Random, siblingGroup: string, to: string, inBranch: boolean) {
  const area = inBranch || random.chance(0.5) ? "output" : "state";
  return {
    siblingGroup,
    strategy: random.pick(["any", "all", "all", { mOfN: 1 }, { mOfN: 2 }] as const),
    onTimeout: random.pick(["fail", "proceed_with_available"] as const),
    ...(random.chance(0.2) ? { timeoutMs: 1_000 } : {}),
    ...(random.chance(0.1) ? { maxFailures: 0 } : {}),
    ...(random.chance(0.5)
      ? {
          merge: {
            source: random.pick(["_branch.output", "_branch.output.v"]),
            target: `${area}.m_${to}`,
            strategy: random.pick(MERGE_STRATEGIES),
          },
        }
      : {}),
  };
}

function loop(sketch: Sketch, depth: number, inBranch: boolean): Block {
  const { random } = sketch;
  const inner = block(sketch, depth, inBranch);
  const back = sketch.node();
  const to = sketch.node(random.chance(0.5));
  const condition = random.chance(0.6) ? { condition: sketch.condition(back) } : {};
  sketch.edge(inner.exit, back);
  sketch.edge(back, inner.entry, { loopConfig: { maxIterations: random.int(1, 2) }, ...condition });
  sketch.edge(back, to, { priority: 1 });
  return { entry: inner.entry, exit: to };
}

/** Starts branches without a fan-in. */
function aside(sketch: Sketch, depth: number, inBranch: boolean): Block {
  const from = sketch.node();
  const branch = block(sketch, Math.min(depth, 1), true);
  const to = sketch.node();
  sketch.edge(from, branch.entry, { siblingGroup: sketch.group(), spawnCount: 2 });
  sketch.edge(from, to);
  return inBranch || sketch.random.chance(0.5) ? { entry: from, exit: to } : { entry: from, exit: from };
}

/** Lets two tokens run beside each other. */
function split(sketch: Sketch, depth: number, inBranch: boolean): Block {
  const from = sketch.node();
  const one = block(sketch, depth, inBranch);
  const other = block(sketch, Math.min(depth, 1), inBranch);
  sketch.edge(from, one.entry);
  sketch.edge(from, other.entry);
  if (sketch.random.chance(0.3)) sketch.edge(other.exit, one.exit);
  return { entry: from, exit: one.exit };
}

/** Ends on one of two ways. */
function early(sketch: Sketch, depth: number, inBranch: boolean): Block {
  const from = sketch.node();
  const inner = block(sketch, depth, inBranch);
  sketch.edge(from, inner.entry, { condition: sketch.condition(from) });
  return { entry: from, exit: inner.exit };
}

function anyEdges(sketch: Sketch): void {
  const { random } = sketch;
  const refs = random.list(random.int(2, 7), () => sketch.node());
  const groups = random.list(2, () => sketch.group());
  for (let left = random.int(1, refs.length + 4); left > 0; left--) {
    const from = random.pick(refs);
    const to = random.pick(refs);
    const group = random.pick(groups);
    sketch.edge(from, to, {
      priority: random.small(0, 2),
      ...(random.chance(0.4) ? { condition: sketch.condition(from) } : {}),
      ...(random.chance(0.4) ? { loopConfig: { maxIterations: random.int(1, 2) } } : {}),
      ...(random.chance(0.3)
        ? { siblingGroup: group, spawnCount: random.int(1, 3) }
        : random.chance(0.3)
          ? { synchronization: { siblingGroup: group, strategy: "all", onTimeout: "fail" } }
          : {}),
    });
  }
}

function finished({ nodes, transitions }: Sketch): WorkflowDefinition {
  const merged = transitions.flatMap(({ synchronization }) => synchronization?.merge?.target ?? []);
  const members = [...nodes.map(({ ref }) => ref), ...merged.map((target) => target.replace(/^\w+\./, ""))];
  return workflowSchema.parse({
    inputSchema: { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
    contextSchema: { type: "object", properties: Object.fromEntries(members.map((name) => [name, {}])) },
    initialNode: "n0",
    nodes: nodes.map(({ ref, runs, writesState, reads }) => ({
      ref,
      ...(runs
        ? {
            task: "lib/task",
            inputMapping: { a: "input.a", ...Object.fromEntries(reads.map((read, at) => [`r${at}`, read])) },
            outputMapping: {
              [`output.${ref}`]: "result",
              ...(writesState ? { [`state.${ref}`]: "result.v" } : {}),
            },
          }
        : {}),
    })),
    transitions: transitions.map((draft, index) => ({ ref: `t${index}`, ...draft })),
  });
}
