/** Issues of the soundness check. Pure. */
import type { WorkflowDefinition, WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../../shared/errors.ts";

/** Makes issues that name their place. */
export class Places {
  readonly #nodes: Map<string, number>;
  readonly #transitions: Map<WorkflowTransition, number>;

  constructor({ nodes, transitions }: WorkflowDefinition) {
    this.#nodes = new Map(nodes.map(({ ref }, index) => [ref, index]));
    this.#transitions = new Map(transitions.map((transition, index) => [transition, index]));
  }

  node(ref: string, rule: string, message: string, below = ""): InputIssue {
    return { path: `/nodes/${this.#nodes.get(ref)}${below}`, message: `${rule}: ${message}` };
  }

  transition(one: WorkflowTransition, rule: string, message: string, below = ""): InputIssue {
    return { path: `/transitions/${this.#transitions.get(one)}${below}`, message: `${rule}: ${message}` };
  }
}
