/**
 * Fan-outs and fan-ins. Pure.
 *
 * SOUND-3  A fan-in can fire: branches of its group arrive, and there can be as many as its strategy waits for.
 * SOUND-4  The branches of a fan-out meet at one node, once: the transitions there agree in their `synchronization`.
 * SOUND-5  Fan-outs nest: branches of an inner fan-out meet before their outer branch arrives, no group is in itself, and at most eight are
 *          within each other.
 */
import type { WorkflowDefinition, WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../../shared/errors.ts";
import { canonicalJson, type Json } from "../../../shared/json.ts";
import { MAX_FAN_OUT_DEPTH } from "../workflow-limits.ts";
import type { Places } from "./issue.ts";
import type { Liveness } from "./liveness.ts";
import type { FanOut, Mixed } from "./places.ts";

/** Returns the problems of how fan-outs nest (SOUND-5). With them, it is open what else is reached. */
export function nestingIssues({ atlas }: Liveness, at: Places): InputIssue[] {
  return atlas.mixed.map((mixed) => mixedIssue(mixed, at));
}

/** Returns the problems of fan-ins (SOUND-3, SOUND-4). */
export function fanInIssues(definition: WorkflowDefinition, { atlas }: Liveness, at: Places): InputIssue[] {
  const joined = new Set(atlas.fanOuts.flatMap(({ joins }) => [...joins]));
  const unused = [...atlas.passed].filter((one) => !joined.has(one));
  return [
    ...unused.map((transition) => {
      const { ref, synchronization } = transition;
      const message = `The fan-in of transition "${ref}" never waits: no branch of the group "${synchronization?.siblingGroup}" reaches it. Place it after the fan-out of this group, or remove its \`synchronization\`.`;
      return at.transition(transition, "SOUND-3", message);
    }),
    ...byOrigin(atlas.fanOuts).flatMap((fanOuts) => meetingIssues(definition, fanOuts, at)),
  ];
}

function mixedIssue({ kind, transition, inner }: Mixed, at: Places): InputIssue {
  const { ref, siblingGroup, synchronization } = transition;
  const outer = synchronization?.siblingGroup;
  const message = {
    crossed: `Transition "${ref}" joins the group "${outer}", but receives branches of its inner group "${inner}". Each branch would pass, and the node "${transition.to}" would run more than once. Join the group "${inner}" first.`,
    repeated: `Transition "${ref}" starts branches of the group "${siblingGroup}" within a branch of this group. Join the group before, or use another \`siblingGroup\`.`,
    deep: `Transition "${ref}" starts branches within ${MAX_FAN_OUT_DEPTH} fan-outs, which is the maximum. Join the group "${inner}" before, or move a part into a sub-workflow.`,
  }[kind];
  return at.transition(transition, "SOUND-5", message);
}

function byOrigin(fanOuts: readonly FanOut[]): FanOut[][] {
  return [...Map.groupBy(fanOuts, ({ group, origin }) => `${origin.node} ${group}`).values()];
}

function meetingIssues(definition: WorkflowDefinition, fanOuts: readonly FanOut[], at: Places): InputIssue[] {
  const [fanOut] = fanOuts;
  const joins = [...new Set(fanOuts.flatMap((one) => [...one.joins]))];
  const [first] = joins;
  if (fanOut === undefined || first === undefined) return [];
  const { group, origin } = fanOut;
  const targets = [...new Set(joins.map(({ to }) => to))];
  const other = joins.find(({ to }) => to !== first.to);
  const message = `The branches of the group "${group}" that start at node "${origin.node}" meet at more than one node: ${targets.map((to) => `"${to}"`).join(", ")}. Lead their fan-ins to one node, and branch off after it.`;
  const apart = other === undefined ? [] : [at.transition(other, "SOUND-4", message)];
  const differing = joins.find((one) => one.to === first.to && textOf(one) !== textOf(first));
  if (differing !== undefined) {
    const text = `Transitions "${first.ref}" and "${differing.ref}" are one fan-in: both join the group "${group}" at node "${first.to}". Give both the same \`synchronization\`.`;
    apart.push(at.transition(differing, "SOUND-4", text, "/synchronization"));
  }
  if (apart.length > 0) return apart;
  const most = branchesAtMost(definition, fanOut);
  const short = joins.flatMap((join) => {
    const { strategy } = join.synchronization ?? {};
    if (typeof strategy !== "object" || strategy.mOfN <= most) return [];
    const text = `The fan-in of transition "${join.ref}" waits for ${strategy.mOfN} branches of the group "${group}", but node "${origin.node}" starts at most ${most}. Lower \`mOfN\`, or start more branches.`;
    return [at.transition(join, "SOUND-3", text, "/synchronization/strategy")];
  });
  return short;
}

/** Returns the maximum number of branches that one token starts. Transitions of one priority fire together. */
function branchesAtMost({ transitions }: WorkflowDefinition, { starts }: FanOut): number {
  const live = transitions.filter((one) => starts.has(one));
  const tiers = Map.groupBy(live, ({ priority }) => priority);
  const counts = [...tiers.values()].map((tier) => tier.reduce((sum, one) => sum + tokensOf(one), 0));
  return Math.max(0, ...counts);
}

function tokensOf({ foreach, spawnCount = 1 }: WorkflowTransition): number {
  return foreach === undefined ? spawnCount : Number.POSITIVE_INFINITY;
}

function textOf({ synchronization }: WorkflowTransition): string {
  // SAFETY: a definition is JSON.
  return canonicalJson(synchronization as unknown as Json);
}
