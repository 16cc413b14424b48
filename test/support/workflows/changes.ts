/** Changes of a graph. Most of them break it. */
import type { Draft, Sketch } from "./generate.ts";

/** One change. It has no effect if the graph has no fitting element. */
type Change = (sketch: Sketch) => void;

/** Changes one of the transitions that it concerns. */
function one(change: (draft: Draft, sketch: Sketch) => void, concerns = (_: Draft) => true): Change {
  return (sketch) => {
    const found = sketch.transitions.filter(concerns);
    if (found.length > 0) change(sketch.random.pick(found), sketch);
  };
}

const anyNode = ({ random, nodes }: Sketch) => random.pick(nodes).ref;
const anyGroup = ({ random, transitions }: Sketch) =>
  random.pick(["g9", ...transitions.flatMap(({ siblingGroup }) => siblingGroup ?? [])]);

export const changes: readonly Change[] = [
  ({ random, transitions }) => void transitions.splice(random.int(0, transitions.length - 1), 1),
  (sketch) => void sketch.edge(anyNode(sketch), anyNode(sketch)),
  (sketch) => {
    const from = anyNode(sketch);
    sketch.edge(from, anyNode(sketch), { condition: sketch.condition(from) });
  },
  (sketch) => {
    const from = anyNode(sketch);
    sketch.edge(from, anyNode(sketch), {
      condition: sketch.condition(from),
      loopConfig: { maxIterations: 1 },
    });
  },
  one((draft, sketch) => {
    draft.to = anyNode(sketch);
  }),
  one((draft) => {
    delete draft.loopConfig;
  }, hasLoop),
  one((draft) => {
    delete draft.synchronization;
  }, isJoin),
  one((draft) => {
    delete draft.siblingGroup;
  }, isStart),
  one((draft, sketch) => {
    draft.siblingGroup = anyGroup(sketch);
  }, isStart),
  one((draft, sketch) => {
    if (draft.synchronization !== undefined)
      draft.synchronization = { ...draft.synchronization, siblingGroup: anyGroup(sketch) };
  }, isJoin),
  one((draft) => {
    if (draft.synchronization !== undefined)
      draft.synchronization = { ...draft.synchronization, strategy: { mOfN: 4 } };
  }, isJoin),
  one((draft, { random }) => {
    draft.priority = random.int(0, 1);
  }),
  one((draft) => {
    delete draft.condition;
  }),
  one((draft) => {
    draft.condition = "false";
  }),
  ({ random, nodes }) => {
    random.pick(nodes).writesState = true;
  },
  (sketch) => {
    const node = sketch.random.pick(sketch.nodes);
    node.reads.push(
      sketch.random.pick([`output.${anyNode(sketch)}.v`, `state.${anyNode(sketch)}`, "input.b"]),
    );
  },
];

function hasLoop({ loopConfig }: Draft): boolean {
  return loopConfig !== undefined;
}

function isJoin({ synchronization }: Draft): boolean {
  return synchronization !== undefined;
}

function isStart({ siblingGroup }: Draft): boolean {
  return siblingGroup !== undefined;
}
